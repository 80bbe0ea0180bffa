/** Connections to endpoints that speak HTTP/2 in clear text (L3): one for each endpoint, which all of its requests share. */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Clock } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'

export interface H2Sessions {
  of(endpoint: Endpoint): ClientHttp2Session
  close(): void
}

/** Without requests. */
const idleMs = 60_000

export function createH2Sessions(clock: Clock, connectTimeoutMs: number): H2Sessions {
  const sessions = new Map<string, ClientHttp2Session>()
  return {
    of: ({ ip, port }) => {
      const origin = `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`
      const there = sessions.get(origin)
      if (there && !there.closed && !there.destroyed) return there
      const made = connect(origin, { settings: { enablePush: false } })
      const forget = () => {
        if (sessions.get(origin) === made) sessions.delete(origin)
      }
      const late = clock.timer(connectTimeoutMs, () => made.destroy(new Error('the endpoint cannot be connected to')))
      made.once('connect', () => late.cancel())
      made.once('close', () => {
        late.cancel()
        forget()
      })
      made.on('error', () => {})
      made.once('goaway', forget)
      // Lets its requests end.
      made.setTimeout(idleMs, () => made.close())
      sessions.set(origin, made)
      return made
    },
    close: () => {
      for (const session of sessions.values()) session.destroy()
    },
  }
}
