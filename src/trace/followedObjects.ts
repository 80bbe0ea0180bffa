/** Objects that readers follow for a time (L2), and the objects that these own. */
import { objectKey } from '#api/debug/traces'
import type { TraceClock } from './traceClock.ts'

interface Followed {
  readonly uid: string | undefined
  readonly untilMs: number
  /** A reader has asked for it; it is not here because a request touched it. */
  readonly isAsked: boolean
}

const mostFollowed = 1000
/** How long objects created by an explained request are followed. */
export const followMs = 120_000

export class FollowedObjects {
  readonly #clock: TraceClock
  /** By objectKey, in order of insertion; expiry follows that order only roughly. */
  readonly #objects = new Map<string, Followed>()
  readonly #uids = new Set<string>()
  /** By namespace: how many are followed there, since a creation in it may be of a descendant. */
  readonly #namespaces = new Map<string, number>()
  #nextEndMs = Number.POSITIVE_INFINITY

  constructor(clock: TraceClock) {
    this.#clock = clock
  }

  /** Builds no key while nothing is followed, which is usual. */
  has(resource: string, namespace: string, name: string): boolean {
    this.#expire()
    return this.#objects.size > 0 && this.#objects.has(objectKey(resource, namespace, name))
  }

  hasUid(uid: string): boolean {
    this.#expire()
    return this.#uids.has(uid)
  }

  isInNamespace(namespace: string): boolean {
    this.#expire()
    return this.#namespaces.has(namespace)
  }

  add(key: string, uid?: string): void {
    this.#add(key, uid, followMs, false)
  }

  /** Objects that requests touch do not displace it. @returns false when as many are asked for as are followed at all */
  ask(key: string, ms: number): boolean {
    return this.#add(key, undefined, ms, true)
  }

  #add(key: string, uid: string | undefined, ms: number, isAsked: boolean): boolean {
    this.#expire()
    const before = this.#objects.get(key)
    if (!before && this.#objects.size >= mostFollowed && !this.#dropFirst()) return false
    if (before) this.#delete(key, before)
    const untilMs = Math.max(this.#clock.now() + ms, before?.untilMs ?? 0)
    const followed = { uid: uid ?? before?.uid, untilMs, isAsked: isAsked || before?.isAsked === true }
    this.#objects.set(key, followed)
    if (followed.uid !== undefined) this.#uids.add(followed.uid)
    const namespace = namespaceOf(key)
    this.#namespaces.set(namespace, (this.#namespaces.get(namespace) ?? 0) + 1)
    this.#nextEndMs = Math.min(this.#nextEndMs, untilMs)
    return true
  }

  /** Drops the oldest one that no rule is about. @returns false when there is none */
  #dropFirst(): boolean {
    for (const [key, followed] of this.#objects) {
      if (followed.isAsked) continue
      this.#delete(key, followed)
      return true
    }
    return false
  }

  #expire(): void {
    if (this.#objects.size === 0) return
    const nowMs = this.#clock.now()
    if (nowMs < this.#nextEndMs) return
    this.#nextEndMs = Number.POSITIVE_INFINITY
    for (const [key, followed] of this.#objects) {
      if (followed.untilMs <= nowMs) this.#delete(key, followed)
      else this.#nextEndMs = Math.min(this.#nextEndMs, followed.untilMs)
    }
  }

  #delete(key: string, { uid }: Followed): void {
    this.#objects.delete(key)
    if (uid !== undefined) this.#uids.delete(uid)
    const namespace = namespaceOf(key)
    const left = (this.#namespaces.get(namespace) ?? 1) - 1
    if (left > 0) this.#namespaces.set(namespace, left)
    else this.#namespaces.delete(namespace)
  }
}

function namespaceOf(key: string): string {
  const parts = key.split('/')
  return parts.length === 3 ? (parts[1] as string) : ''
}
