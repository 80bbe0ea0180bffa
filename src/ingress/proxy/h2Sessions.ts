/**
 * Connections to endpoints that speak HTTP/2 in clear text (L3). The requests to an endpoint share one; when as many are open on it as the endpoint allows, the next
 * one gets another connection, so that clients that keep requests open do not keep others out.
 */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Clock } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'

export interface H2Sessions {
  /** A connection with room for one more request, which is counted until `release` is called. */
  take(endpoint: Endpoint): TakenSession
  close(): void
}

export interface TakenSession {
  readonly session: ClientHttp2Session
  release(): void
}

interface Counted {
  readonly session: ClientHttp2Session
  requests: number
}

/** Without requests. */
const idleMs = 60_000
/** An endpoint with so many gets no other one: requests then wait for those before them. */
const mostSessions = 32
/** Until the endpoint has said how many it allows. */
const firstLimit = 100

export function createH2Sessions(clock: Clock, connectTimeoutMs: number): H2Sessions {
  const sessions = new Map<string, Counted[]>()
  const open = (origin: string): Counted => {
    const session = connect(origin, { settings: { enablePush: false } })
    const made: Counted = { session, requests: 0 }
    const forget = () => {
      const rest = (sessions.get(origin) ?? []).filter((one) => one !== made)
      if (rest.length > 0) sessions.set(origin, rest)
      else sessions.delete(origin)
    }
    const late = clock.timer(connectTimeoutMs, () => session.destroy(new Error('the endpoint cannot be connected to')))
    session.once('connect', () => late.cancel())
    session.once('close', () => {
      late.cancel()
      forget()
    })
    session.on('error', () => {})
    session.once('goaway', forget)
    // Lets its requests end.
    session.setTimeout(idleMs, () => session.close())
    sessions.set(origin, [...(sessions.get(origin) ?? []), made])
    return made
  }
  return {
    take: ({ ip, port }) => {
      const origin = `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`
      const usable = (sessions.get(origin) ?? []).filter(({ session }) => !session.closed && !session.destroyed)
      const leastBusy = usable.toSorted((one, other) => one.requests - other.requests)[0]
      const withRoom = usable.find(({ session, requests }) => requests < limitOf(session))
      const taken = withRoom ?? (leastBusy && usable.length >= mostSessions ? leastBusy : open(origin))
      taken.requests++
      return {
        session: taken.session,
        release: () => {
          taken.requests--
        },
      }
    },
    close: () => {
      for (const { session } of [...sessions.values()].flat()) session.destroy()
    },
  }
}

function limitOf({ connecting, remoteSettings }: ClientHttp2Session): number {
  return (connecting ? undefined : remoteSettings.maxConcurrentStreams) ?? firstLimit
}
