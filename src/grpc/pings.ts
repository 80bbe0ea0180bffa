/**
 * Pings of an HTTP/2 connection (L1), from either side: a peer that vanished without an end of its connection is noticed by its silence.
 * Upstream: grpc-go internal/transport/http2_client.go and http2_server.go (keepalive).
 */
import type { Http2Session } from 'node:http2'

export interface KeepAlive {
  /** Time between two pings. */
  readonly pauseMs: number
  /** The peer answers, or sends anything else, within this time. */
  readonly timeoutMs: number
}

/** A timer for more fires at once. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Pings the peer until the session ends, and destroys the session when the peer does not answer.
 * @param isNeeded asked before each ping
 * @param bytesRead of the connection, so far
 */
export function pingPeer(session: Http2Session, { pauseMs, timeoutMs }: KeepAlive, isNeeded: () => boolean, bytesRead: () => number): void {
  let waiting: NodeJS.Timeout | undefined
  // After a long turn the timer fires before the answer is read, which is in the socket by then: two turns let it in.
  const judge = (before: number) =>
    setImmediate(() =>
      setImmediate(() => {
        if (waiting === undefined) return
        waiting = undefined
        if (bytesRead() === before) session.destroy(new Error('the peer does not answer pings'))
      }),
    )
  const timer = setInterval(
    () => {
      if (waiting || session.destroyed || !isNeeded()) return
      const before = bytesRead()
      waiting = setTimeout(() => judge(before), Math.min(timeoutMs, longestTimerMs))
      session.ping((error) => {
        if (error) return
        clearTimeout(waiting)
        waiting = undefined
      })
    },
    Math.min(pauseMs, longestTimerMs),
  )
  timer.unref()
  session.once('close', () => {
    clearInterval(timer)
    clearTimeout(waiting)
    waiting = undefined
  })
}
