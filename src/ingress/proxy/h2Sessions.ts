/**
 * Connections to endpoints that speak HTTP/2 (L3), in clear text or as a policy says over TLS. The requests to an endpoint share one; when as many are open on it as the endpoint allows, the next
 * one gets another connection, so that clients that keep requests open do not keep others out.
 */
import { type ClientHttp2Session, connect } from 'node:http2'
import type { Clock, Timer } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'
import type { BackendTls } from '../model/route.ts'
import type { TlsTo } from './backendTls.ts'

export interface H2Sessions {
  /** A connection for one more request, which is counted until `release` is called. @throws Error when there is none, and the endpoint cannot be connected to */
  take(endpoint: Endpoint, tls?: BackendTls): Promise<TakenSession>
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

export function createH2Sessions(clock: Clock, connectTimeoutMs: number, tlsTo: (tls: BackendTls) => TlsTo): H2Sessions {
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

  const open = (key: string, authority: string, tls: BackendTls | undefined): Counted => {
    const secured = tls ? { ...tlsTo(tls).connection, ALPNProtocols: ['h2'] } : {}
    const session = connect(`${tls ? 'https' : 'http'}://${authority}`, { settings: { enablePush: false }, ...secured })
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
      const others = (sessions.get(key) ?? []).filter((one) => one !== made)
      if (others.length > 0) sessions.set(key, others)
      else sessions.delete(key)
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
    sessions.set(key, [...(sessions.get(key) ?? []), made])
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
    take: async ({ ip, port }, tls) => {
      const authority = `${ip.includes(':') ? `[${ip}]` : ip}:${port}`
      const key = `${authority} ${tls?.id ?? ''}`
      for (;;) {
        const usable = (sessions.get(key) ?? []).filter(({ session }) => !session.closed && !session.destroyed)
        const chosen = usable.find(hasRoom) ?? (usable.length < mostSessions ? undefined : leastBusy(usable))
        if (chosen?.isReady) return lend(chosen)
        const opening = chosen ?? usable.find(({ isReady }) => !isReady) ?? open(key, authority, tls)
        await opening.ready
        // A connection for no request would be followed by another one without end: each round gives one request a connection, or fails.
        if (limitOf(opening) === 0 || !sessions.get(key)?.includes(opening)) throw new Error('the endpoint takes no request')
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
