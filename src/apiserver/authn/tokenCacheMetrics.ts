/** Metrics of the token cache: hits, misses and look-ups (L3). Upstream: apiserver/pkg/authentication/token/cache/stats.go (v1.36). */
import type { Metrics } from '#base/metrics'

export interface TokenCacheMetrics {
  hit(durationMs: number): void
  missed(durationMs: number): void
  /** Counts a look-up. @param ok it had an answer */
  fetched(ok: boolean): void
  /** Counts a look-up in flight, and its result. */
  fetching<T>(work: Promise<T>, isOk: (value: T) => boolean): Promise<T>
  /** Counts a request that waits for a look-up. */
  blocked<T>(work: Promise<T>): Promise<T>
}

export function tokenCacheMetrics(metrics: Metrics): TokenCacheMetrics {
  const labels = ['status']
  const name = (rest: string) => `authentication_token_cache_${rest}`
  const seconds = metrics.histogram({ name: name('request_duration_seconds'), help: 'How long it took to know a token, by hit and miss.', labels })
  const requests = metrics.counter({ name: name('request_total'), help: 'Tokens that were asked about, by hit and miss.', labels })
  const fetches = metrics.counter({ name: name('fetch_total'), help: 'Tokens that were looked up, by how that ended.', labels })
  const active = metrics.gauge({ name: name('active_fetch_count'), help: 'Look-ups under way, and requests that wait for them.', labels })
  const asked = (status: string) => {
    const [count, took] = [requests.series({ status }), seconds.series({ status })]
    return (durationMs: number) => {
      count.inc()
      took.observe(durationMs / 1000)
    }
  }
  const fetched = (ok: boolean) => fetches.inc({ status: ok ? 'ok' : 'error' })
  const during = <T>(status: string, work: Promise<T>): Promise<T> => {
    active.inc({ status })
    return work.finally(() => active.dec({ status }))
  }
  return {
    hit: asked('hit'),
    missed: asked('miss'),
    fetched,
    fetching(work, isOk) {
      const ended = work.then(
        (value) => {
          fetched(isOk(value))
          return value
        },
        (error: unknown) => {
          fetched(false)
          throw error
        },
      )
      return during('in_flight', ended)
    },
    blocked: (work) => during('blocked', work),
  }
}
