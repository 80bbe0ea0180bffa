/** A tunnelled port-forward that the API server carries to a kubelet which knows SPDY alone. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { StatusError } from '#api/machinery/status'
import { acceptPortForward } from '#streaming/remoteCommand'
import { realClock } from '#testing/realClock'
import { connectionsOver, openTunnel } from '#testing/tunnelClient'
import type { ServerRequest } from '../core/request.ts'
import { spdyCarrier, wantsTunnel } from './spdyCarrier.ts'
import { tunnel } from './tunnel.ts'

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

async function listening(onUpgrade: OnUpgrade) {
  const server = createServer().on('upgrade', onUpgrade).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

/** A kubelet, and a server in front of it that carries tunnels; answers refusals in words. */
async function carried(kubelet: OnUpgrade) {
  const backend = await listening(kubelet)
  const ended: Promise<unknown>[] = []
  const front = await listening((incoming, socket, head) => {
    socket.on('error', () => {})
    const { method, url, headers } = incoming
    const request = { method, path: url, headers, remoteAddress: '', cancellation: { signal: new AbortController().signal } } as unknown as ServerRequest
    const answer = tunnel(request, { host: '127.0.0.1', port: backend.port, path: '/portForward/d/p' }, spdyCarrier(request))
    if (answer.type !== 'tunnel') throw new Error('no tunnel')
    const refuse = (code: number, words: string) =>
      socket.end(`HTTP/1.1 ${code} Refused\r\nConnection: close\r\nContent-Length: ${words.length}\r\n\r\n${words}`)
    ended.push(
      answer.connect(socket, head, realClock).then(
        (refusal) => refusal?.type === 'bytes' && refuse(refusal.status, String(refusal.bytes)),
        (error: StatusError) => refuse(error.code, error.message),
      ),
    )
  })
  const close = () => {
    for (const { server } of [front, backend]) {
      server.close()
      server.closeAllConnections()
    }
  }
  return { url: `http://127.0.0.1:${front.port}/`, ended, close }
}

/** A kubelet that serves SPDY and notes the headers. */
function spdyKubelet(seen: IncomingHttpHeaders[] = []): OnUpgrade {
  return (request, socket, head) => {
    seen.push(request.headers)
    socket.on('error', () => {})
    void acceptPortForward({ request, socket, head }, [], ({ data }) => void data.pipe(data)).catch(() => {})
  }
}

test('ARC-05 a kubelet that knows SPDY alone gets a SPDY request, and the frames of the tunnel both ways', async () => {
  const seen: IncomingHttpHeaders[] = []
  const { url, ended, close } = await carried(spdyKubelet(seen))
  const forward = connectionsOver(await openTunnel(url))
  const large = 'x'.repeat(3_000_000)
  for (const words of ['ping', large]) {
    const { data } = await forward.connect(80)
    data.end(words)
    assert.equal(await text(data), words)
  }
  const [headers = {}] = seen
  assert.deepEqual([headers.upgrade, headers['x-stream-protocol-version']], ['SPDY/3.1', 'portforward.k8s.io'])
  assert.deepEqual(
    Object.keys(headers).filter((name) => name.startsWith('sec-websocket')),
    [],
  )
  forward.close()
  await ended[0]
  close()
})

test('ARC-05 a client of a carried tunnel that is cut off ends the kubelet’s connection', async () => {
  const closed: Promise<unknown>[] = []
  const { url, ended, close } = await carried((request, socket, head) => {
    closed.push(once(socket, 'close'))
    spdyKubelet()(request, socket, head)
  })
  const tunnelled = await openTunnel(url)
  const { data } = await connectionsOver(tunnelled).connect(80)
  data.write('ping')
  await once(data, 'data')
  tunnelled.terminate()
  await Promise.all([...closed, ...ended])
  close()
})

test('ARC-05 a kubelet that ends its connection ends the carried tunnel', async () => {
  const sockets: Duplex[] = []
  const { url, ended, close } = await carried((request, socket, head) => {
    sockets.push(socket)
    spdyKubelet()(request, socket, head)
  })
  const forward = connectionsOver(await openTunnel(url))
  const { data } = await forward.connect(80)
  data.write('ping')
  await once(data, 'data')
  sockets[0]?.destroy()
  await Promise.all([forward.closed, ...ended])
  close()
})

test('ARC-05 a kubelet’s refusal of a carried tunnel reaches the client as it is', async () => {
  const { url, close } = await carried((_request, socket) => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\npod does not exist'))
  await assert.rejects(openTunnel(url), /^Error: 404: pod does not exist$/)
  close()
})

test('ARC-05 a malformed handshake of a carried tunnel is a bad request', async () => {
  const { url, close } = await carried(spdyKubelet())
  await assert.rejects(openTunnel(url, { method: 'POST' }), /^Error: 400: Invalid HTTP method$/)
  close()
})

const wanted: readonly { protocols: string | undefined; upgrade?: string; want: boolean }[] = [
  { protocols: 'SPDY/3.1+portforward.k8s.io', want: true },
  { protocols: 'v4.channel.k8s.io, SPDY/3.1+portforward.k8s.io', want: true },
  { protocols: 'v4.channel.k8s.io', want: false },
  { protocols: 'SPDY/3.1+portforward.example.com', want: false },
  { protocols: undefined, want: false },
  { protocols: 'SPDY/3.1+portforward.k8s.io', upgrade: 'SPDY/3.1', want: false },
]
for (const { protocols, upgrade = 'websocket', want } of wanted) {
  test(`ARC-05 a ${upgrade} request with protocols ${protocols} ${want ? 'wants' : 'does not want'} a tunnel`, () =>
    assert.equal(wantsTunnel({ headers: { upgrade, 'sec-websocket-protocol': protocols } }), want))
}
