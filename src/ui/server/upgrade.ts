/** Passes a WebSocket of the page on to the server (L4): the handshake with the session's credentials, the messages as they are. */
import type http from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { abortScope } from '#base/abortScope'
import { readEarly } from '#http/earlyInput'
import { execProtocol } from '../model/execChannels.ts'
import { plainProtocol, tableForm } from '../model/protocols.ts'
import { offeredProtocols } from './guard.ts'
import { refusalOf, tellRefusal } from './refusedUpgrade.ts'
import type { Session } from './sessions.ts'

const passedHeaders = ['upgrade', 'sec-websocket-key', 'sec-websocket-version'] as const

/** Resolves when the tunnel has ended, or the refusal of an exec is sent over it. @throws StatusError when the server refuses another WebSocket */
export async function passUpgrade({ transport, signal }: Session, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { url: target = '/', headers } = request
  const { others, wantsTable } = offeredProtocols(headers['sec-websocket-protocol'])
  using left = abortScope(signal)
  const early = readEarly(socket, (error) => left.abort(error))
  const live = await transport.upgrade(
    { method: 'GET', target, headers: { ...handshake(headers, others), ...(wantsTable ? { accept: tableForm } : {}) }, body: undefined },
    left.signal,
  )
  if (!live.socket) {
    const refusal = await refusalOf(live)
    if (!others.includes(execProtocol)) throw refusal
    return tellRefusal(refusal, request, socket, Buffer.concat([head, early.end()]))
  }
  const tunnel = live.socket
  const sent = early.end()
  left.signal.addEventListener('abort', () => tunnel.destroy(), { once: true })
  const protocol = live.headers['sec-websocket-protocol'] ?? plainProtocol
  socket.write(
    [
      'HTTP/1.1 101 Switching Protocols',
      'upgrade: websocket',
      'connection: Upgrade',
      `sec-websocket-accept: ${live.headers['sec-websocket-accept']}`,
      `sec-websocket-protocol: ${protocol}`,
      '\r\n',
    ].join('\r\n'),
  )
  socket.write(live.head)
  tunnel.write(Buffer.concat([head, sent]))
  await Promise.all([pipeline(socket, tunnel), pipeline(tunnel, socket)]).catch(() => {
    tunnel.destroy()
    socket.destroy()
  })
}

function handshake(headers: http.IncomingHttpHeaders, protocols: readonly string[]): Record<string, string> {
  const named = passedHeaders.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]] as const] : []))
  return {
    ...Object.fromEntries(named),
    connection: 'Upgrade',
    'user-agent': 'skiff-ui',
    ...(protocols.length === 0 ? {} : { 'sec-websocket-protocol': protocols.join(', ') }),
  }
}
