/**
 * Connections to endpoints that speak HTTP/2 in clear text (L3). The requests to an endpoint share one; when as many are open on it as the endpoint allows, the next
 * one gets another connection, so that clients that keep requests open do not keep others out.
 */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Clock, Timer } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'

export interface H2Sessions {
  /** A connection for one more request, which is counted until `release` is called. @throws Error when there is none, and the endpoint cannot be connected to */
  take(endpoint: Endpoint): Promise<TakenSession>
  close(): void
}

export interface TakenSession {
  readonly session: ClientHttp2Session
  release(): void
}

interface Counted {
  readonly session: ClientHttp2Session
  /** Resolves when the endpoint has said how many requests it allows: it refuses those beyond, also the ones that were sent before. */
  readonly ready: Promise<void>
  isReady: boolean
  requests: number
}

/** Without requests. The timeout of Node's session would begin again with some frames of the endpoint. */
const idleMs = 60_000
/** An endpoint with so many gets no other one: requests then wait for those before them. */
const mostSessions = 32
/** To all endpoints, without requests. */
const mostIdle = 256

export function createH2Sessions(clock: Clock, connectTimeoutMs: number): H2Sessions {
  const sessions = new Map<string, Counted[]>()
  /** Those without requests, in the order in which they lost their last one. */
  const idle = new Map<Counted, Timer>()

  const rest = (one: Counted) => {
    idle.set(
      one,
      clock.timer(idleMs, () => one.session.close()),
    )
    const [oldest] = idle.size > mostIdle ? idle.keys() : []
    if (!oldest) return
    wake(oldest)
    oldest.session.close()
  }
  const wake = (one: Counted) => {
    idle.get(one)?.cancel()
    idle.delete(one)
  }

  const open = (origin: string): Counted => {
    const session = connect(origin, { settings: { enablePush: false } })
    const ready = new Promise<void>((resolve, reject) => {
      session.once('remoteSettings', () => resolve())
      session.once('close', () => reject(new Error('the endpoint cannot be connected to')))
    })
    const made: Counted = { session, ready, isReady: false, requests: 0 }
    ready.then(
      () => {
        made.isReady = true
        rest(made)
      },
      () => {},
    )
    const forget = () => {
      const others = (sessions.get(origin) ?? []).filter((one) => one !== made)
      if (others.length > 0) sessions.set(origin, others)
      else sessions.delete(origin)
    }
    const late = clock.timer(connectTimeoutMs, () => session.destroy())
    session.once('remoteSettings', () => late.cancel())
    session.once('close', () => {
      late.cancel()
      wake(made)
      forget()
    })
    session.on('error', () => {})
    session.once('goaway', forget)
    sessions.set(origin, [...(sessions.get(origin) ?? []), made])
    return made
  }

  const lend = (chosen: Counted): TakenSession => {
    chosen.requests++
    wake(chosen)
    const release = () => {
      chosen.requests--
      if (chosen.requests === 0 && !chosen.session.closed) rest(chosen)
    }
    return { session: chosen.session, release }
  }

  return {
    take: async ({ ip, port }) => {
      const origin = `http://${ip.includes(':') ? `[${ip}]` : ip}:${port}`
      for (;;) {
        const usable = (sessions.get(origin) ?? []).filter(({ session }) => !session.closed && !session.destroyed)
        const chosen = usable.find(hasRoom) ?? (usable.length < mostSessions ? undefined : leastBusy(usable))
        if (chosen?.isReady) return lend(chosen)
        const opening = chosen ?? usable.find(({ isReady }) => !isReady) ?? open(origin)
        await opening.ready
        // A connection for no request would be followed by another one without end: each round gives one request a connection, or fails.
        if (limitOf(opening) === 0 || !sessions.get(origin)?.includes(opening)) throw new Error('the endpoint takes no request')
      }
    },
    close: () => {
      for (const { session } of [...sessions.values()].flat()) session.destroy()
    },
  }
}

const limitOf = ({ session }: Counted) => session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY

const hasRoom = (one: Counted) => one.isReady && one.requests < limitOf(one)

const leastBusy = (usable: readonly Counted[]) => usable.reduce((least, one) => (one.requests < least.requests ? one : least))
