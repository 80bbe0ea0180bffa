/** Tokens of users who have logged in (L2): random, in memory, valid until some time after their last use. Upstream: etcd server/auth/simple_token.go (v3.6). */
import { randomInt } from 'node:crypto'
import type { Clock } from '#base/clock'

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
const randomLetters = 32
/** Beyond it the one that was used least recently ends. */
const mostTokens = 100_000

interface Token {
  readonly user: string
  readonly endsMs: number
}

export class Tokens {
  readonly #clock: Clock
  readonly #ttlMs: number
  /** By the time of their last use, the earliest first. */
  readonly #tokens = new Map<string, Token>()

  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock
    this.#ttlMs = ttlMs
  }

  /** @param index a number behind the random part, as etcd has one */
  assign(user: string, index: number): string {
    this.#forget()
    const prefix = Array.from({ length: randomLetters }, () => letters[randomInt(letters.length)]).join('')
    const token = `${prefix}.${index}`
    this.#use(token, user)
    return token
  }

  /** The user of a token, which is valid for longer by this use. Undefined: it is unknown or has ended. */
  userOf(token: string): string | undefined {
    const found = this.#tokens.get(token)
    this.#tokens.delete(token)
    if (!found || found.endsMs <= this.#clock.monotonicMs()) return undefined
    this.#use(token, found.user)
    return found.user
  }

  endOf(user: string): void {
    for (const [token, { user: owner }] of this.#tokens) if (owner === user) this.#tokens.delete(token)
  }

  endAll(): void {
    this.#tokens.clear()
  }

  #use(token: string, user: string): void {
    this.#tokens.set(token, { user, endsMs: this.#clock.monotonicMs() + this.#ttlMs })
  }

  #forget(): void {
    const now = this.#clock.monotonicMs()
    for (const [token, { endsMs }] of this.#tokens) {
      if (endsMs > now && this.#tokens.size < mostTokens) return
      this.#tokens.delete(token)
    }
  }
}
