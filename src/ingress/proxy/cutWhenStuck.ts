/** Clients of HTTP/2 that do not read what they have asked for (L3). */
import type { Http2ServerResponse } from 'node:http2'
import type { Readable } from 'node:stream'
import type { Timer } from '#base/clock'
import { cut } from './answer.ts'
import type { ProxyDeps } from './proxyDeps.ts'

/**
 * Ends a stream of HTTP/2 whose client takes nothing of the answer for a while: it would keep its place among the requests in flight. The connection is not
 * idle when it carries pings, and frames of the connection renew Node's own timeout of a stream.
 */
export function cutWhenStuck({ clock, limits }: ProxyDeps, incoming: Readable, response: Http2ServerResponse): void {
  const { stream } = response
  let received = 0
  let before = 0
  incoming.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  const look = (): Timer =>
    clock.timer(limits.idleTimeoutMs, () => {
      const taken = received - stream.writableLength
      if (stream.writableLength > 0 && taken === before) cut(response)
      else timer = look()
      before = taken
    })
  let timer = look()
  response.once('close', () => timer.cancel())
}
