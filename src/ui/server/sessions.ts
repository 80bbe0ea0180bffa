/**
 * Logins of the page (L4): one-time codes and sessions, in memory, bounded, each with an end. A session needs two secrets: the cookie, which
 * scripts cannot read but which browsers also send to other ports of this host, and a key, which the page sends in a header and which no other origin knows.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock, Timer } from '#base/clock'
import type { HttpTransport } from '#client/httpTransport'

export interface Identity {
  readonly user: string
  readonly groups: readonly string[]
}

export interface Session extends Identity {
  readonly key: string
  readonly transport: HttpTransport
  /** Aborted when the session ends: what it has open ends with it. */
  readonly signal: AbortSignal
}

interface OpenSession extends Session {
  readonly sinceMs: number
  usedMs: number
  readonly ending: AbortController
  /** Ends the connections that only this session uses. */
  readonly release: () => void
  timer: Timer
}

const mostSessions = 16
const mostCodes = 16
export const codeLifeMs = 15 * 60_000
export const idleMs = 2 * 3_600_000
export const lifeMs = 24 * 3_600_000

const secret = () => randomBytes(32).toString('base64url')

export class Sessions {
  readonly #clock: Clock
  readonly #byCookie = new Map<string, OpenSession>()
  /** Code to the time when it ends. */
  readonly #codes = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A code that opens one session as the user who started the front. */
  newCode(): string {
    const code = secret()
    this.#keepCode(code, this.#clock.now() + codeLifeMs)
    return code
  }

  /** Uses the code up. @returns what makes it valid again until its end; undefined when it was not valid */
  takeCode(given: string): (() => void) | undefined {
    const [known, endMs = 0] = [...this.#codes].find(([code]) => isSame(code, given)) ?? []
    if (known === undefined) return undefined
    this.#codes.delete(known)
    return this.#clock.now() < endMs ? () => this.#keepCode(known, endMs) : undefined
  }

  #keepCode(code: string, endMs: number): void {
    this.#codes.set(code, endMs)
    dropOldest(this.#codes, mostCodes, (oldest) => this.#codes.delete(oldest))
  }

  open(identity: Identity, transport: HttpTransport, release: () => void): { readonly cookie: string; readonly session: Session } {
    const [cookie, key, ending, now] = [secret(), secret(), new AbortController(), this.#clock.now()]
    const timer = this.#clock.timer(idleMs, () => this.#look(cookie))
    const session = { ...identity, key, transport, release, ending, signal: ending.signal, sinceMs: now, usedMs: now, timer }
    this.#byCookie.set(cookie, session)
    if (this.#byCookie.size > mostSessions) this.close(this.#oldestOfMost())
    return { cookie, session }
  }

  /** The session of these secrets, which counts as used; undefined when there is none any more. */
  find(cookie: string | undefined, key: string | undefined): Session | undefined {
    const session = cookie === undefined ? undefined : this.#byCookie.get(cookie)
    if (!session || cookie === undefined || key === undefined || !isSame(session.key, key)) return undefined
    if (this.#isOver(session)) {
      this.close(cookie)
      return undefined
    }
    session.usedMs = this.#clock.now()
    // The one that was used last stands at the end.
    this.#byCookie.delete(cookie)
    this.#byCookie.set(cookie, session)
    return session
  }

  /** The least recently used session of the user with the most, so that one user's logins do not end the sessions of others. */
  #oldestOfMost(): string {
    const cookies = new Map<string, string[]>()
    for (const [cookie, { user }] of this.#byCookie) cookies.set(user, [...(cookies.get(user) ?? []), cookie])
    const [[oldest = ''] = []] = [...cookies.values()].sort((one, other) => other.length - one.length)
    return oldest
  }

  close(cookie: string): void {
    const session = this.#byCookie.get(cookie)
    if (!session) return
    this.#byCookie.delete(cookie)
    session.timer.cancel()
    session.ending.abort(new Error('the session has ended'))
    session.release()
  }

  closeAll(): void {
    for (const cookie of [...this.#byCookie.keys()]) this.close(cookie)
  }

  #isOver({ usedMs, sinceMs }: OpenSession): boolean {
    const now = this.#clock.now()
    return now - usedMs >= idleMs || now - sinceMs >= lifeMs
  }

  #look(cookie: string): void {
    const session = this.#byCookie.get(cookie)
    if (!session) return
    const nextMs = Math.min(session.usedMs + idleMs, session.sinceMs + lifeMs) - this.#clock.now()
    if (this.#isOver(session)) this.close(cookie)
    else session.timer = this.#clock.timer(nextMs, () => this.#look(cookie))
  }
}

/** Compares digests, so that the time tells nothing about the secret, nor its length. */
function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest())
  return timingSafeEqual(a as Buffer, b as Buffer)
}

function dropOldest<T>(map: Map<string, T>, most: number, drop: (key: string) => void): void {
  if (map.size <= most) return
  const [oldest] = map.keys()
  if (oldest !== undefined) drop(oldest)
}
