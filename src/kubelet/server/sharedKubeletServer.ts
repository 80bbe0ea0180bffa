/** One port for the kubelets of many nodes (L3): the Host header of a request names the node's address. */
import { type Handlers, httpsServer, type KubeletServer, type KubeletServerConfig } from './kubeletServer.ts'

/** @param handlersAt of the kubelet with that address; undefined: there is none. Asked for each request, as nodes come and go */
export function createSharedKubeletServer(handlersAt: (address: string) => Handlers | undefined, config: KubeletServerConfig): KubeletServer {
  return httpsServer(
    'kubelet-servers',
    config,
    () =>
      ({ headers }) =>
        handlersAt((headers.host ?? '').replace(/:\d*$/, '')) ?? noNode,
  )
}

const misdirected = 'the Host header names the address of no node of this port'

const noNode: Handlers = {
  request: (_request, response) => void response.writeHead(421, { 'Content-Type': 'text/plain; charset=utf-8' }).end(misdirected),
  upgrade: (_request, socket) =>
    void socket.end(`HTTP/1.1 421 Misdirected Request\r\nContent-Length: ${misdirected.length}\r\nConnection: close\r\n\r\n${misdirected}`),
}
