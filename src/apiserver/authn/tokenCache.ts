/**
 * Remembers for a while what an authenticator said of a token (L3): for those whose answers are dear. Several requests with one token share one
 * look-up. Tokens are filed under a keyed hash, so that memory holds none. Upstream: apiserver/pkg/authentication/token/cache.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'

export interface TokenCacheOptions {
  readonly clock: Clock
  readonly successTtlMs: number
  /** Also of "not a token of this kind". */
  readonly failureTtlMs: number
  /** Whether answers that could not be had count as failures; else the next request tries again. */
  readonly cachesErrors: boolean
}

interface Entry {
  readonly result: TokenResult
  readonly untilMs: number
}

const cacheSize = 32_768

export function cachedTokens(authenticator: TokenAuthenticator, { clock, successTtlMs, failureTtlMs, cachesErrors }: TokenCacheOptions): TokenAuthenticator {
  const secret = randomBytes(32)
  const known = new LruCache<string, Entry>(cacheSize)
  const pending = new Map<string, Promise<TokenResult>>()
  const keyOf = (token: string, audiences: readonly string[]) => {
    const hash = createHmac('sha256', secret).update(`${token.length} ${token}`)
    for (const audience of audiences) hash.update(` ${audience.length} ${audience}`)
    return hash.digest('base64')
  }
  const remember = (key: string, result: TokenResult) => {
    const isGood = result?.decision === 'authenticated'
    const ttlMs = isGood ? successTtlMs : result && !cachesErrors ? 0 : failureTtlMs
    if (ttlMs > 0) known.set(key, { result, untilMs: clock.monotonicMs() + ttlMs })
    return result
  }
  return {
    name: authenticator.name,
    authenticateToken(token, audiences) {
      const key = keyOf(token, audiences)
      const found = known.get(key)
      if (found && clock.monotonicMs() < found.untilMs) return found.result
      const underWay = pending.get(key)
      if (underWay) return underWay
      const result = authenticator.authenticateToken(token, audiences)
      if (!(result instanceof Promise)) return remember(key, result)
      const late = result.then((value) => remember(key, value)).finally(() => pending.delete(key))
      pending.set(key, late)
      return late
    },
  }
}
