/**
 * Ends a connection that carries no further request (L1): what a client had pipelined behind an upgrade is dropped, never read as a request.
 * Upstream: apimachinery/pkg/util/proxy/upgradeaware.go closes a hijacked connection, with a deadline for the last write.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '#base/clock'

/** How long the other end may take to read what was written and to close. */
export const lingerMs = 5_000

/** Writes the last bytes. A connection closed with unread input is reset, and the reset can overtake those bytes: so input is read and dropped for a while. */
export function hangUp(socket: Duplex, clock: Clock, last?: Uint8Array): void {
  if (socket.destroyed) return
  socket.on('error', () => {})
  const timer = clock.timer(lingerMs, () => socket.destroy())
  socket.once('close', () => timer.cancel())
  if (last) socket.end(last)
  else socket.end()
  socket.resume()
}
