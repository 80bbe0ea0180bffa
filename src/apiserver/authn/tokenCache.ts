/**
 * Caches the answers of an expensive token authenticator for a while (L3). Concurrent requests with one token share one look-up. The keys are keyed
 * hashes, so that the cache holds no tokens. Upstream: apiserver/pkg/authentication/token/cache.
 */
import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { Metrics } from '#base/metrics'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'
import { tokenCacheMetrics } from './tokenCacheMetrics.ts'

export interface TokenCacheOptions {
  readonly clock: Clock
  readonly metrics: Metrics
  readonly successTtlMs: number
  /** Also for "not a token of this kind". */
  readonly failureTtlMs: number
  /** Whether errors are cached as failures; else the next request tries again. */
  readonly cachesErrors: boolean
}

interface Entry {
  readonly result: TokenResult
  readonly untilMs: number
}

const cacheSize = 32_768
const isAnswer = (result: TokenResult) => result?.decision !== 'rejected'

export function cachedTokens(
  authenticator: TokenAuthenticator,
  { clock, metrics, successTtlMs, failureTtlMs, cachesErrors }: TokenCacheOptions,
): TokenAuthenticator {
  const recorded = tokenCacheMetrics(metrics)
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
      const startedMs = clock.monotonicMs()
      const found = known.get(key)
      if (found && startedMs < found.untilMs) {
        recorded.hit(clock.monotonicMs() - startedMs)
        return found.result
      }
      const missed = () => recorded.missed(clock.monotonicMs() - startedMs)
      const underWay = pending.get(key)
      if (underWay) return recorded.blocked(underWay).finally(missed)
      const result = authenticator.authenticateToken(token, audiences)
      if (!(result instanceof Promise)) {
        recorded.fetched(isAnswer(result))
        missed()
        return remember(key, result)
      }
      const late = recorded.fetching(
        result.then((value) => remember(key, value)).finally(() => pending.delete(key)),
        isAnswer,
      )
      pending.set(key, late)
      return recorded.blocked(late).finally(missed)
    },
  }
}
