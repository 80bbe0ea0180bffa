/** Requests to endpoints (L3), over TLS where a policy of their Service says so. */
import { type ClientRequest as BackendRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Endpoint } from '../model/endpoints.ts'
import type { BackendTls } from '../model/route.ts'
import type { ProxyDeps } from './proxyDeps.ts'

/** The most bytes of the headers of a backend's answer. */
const maxAnswerHeaderBytes = 64 * 1024

interface Asked {
  readonly method: string | undefined
  readonly path: string
  readonly headers: readonly string[]
  /** On a connection of its own. */
  readonly isFresh: boolean
}

/** @throws TypeError HTTP/1.1 does not allow a character of the method, the path or a header */
export function requestTo({ agent, freshAgent, tlsTo }: ProxyDeps, { ip, port }: Endpoint, tls: BackendTls | undefined, asked: Asked): BackendRequest {
  const { method, path, headers, isFresh } = asked
  const options = { host: ip, port, method, path, headers: [...headers], maxHeaderSize: maxAnswerHeaderBytes, setHost: false }
  if (!tls) return httpRequest({ ...options, agent: isFresh ? freshAgent : agent })
  const to = tlsTo(tls)
  return httpsRequest({ ...options, ...to.connection, agent: isFresh ? to.freshAgent : to.agent })
}

/** Calls back once a request's connection can take what is sent, over TLS after the handshake. */
export function onReady(outgoing: Pick<BackendRequest, 'reusedSocket'>, socket: Socket, then: () => void): void {
  if (socket instanceof TLSSocket) {
    if (outgoing.reusedSocket) then()
    else socket.once('secureConnect', then)
  } else if (socket.connecting) socket.once('connect', then)
  else then()
}
