/**
 * The health checks `etcd` and `etcd-readiness` (L3): the store answers a consistent read in time. Upstream:
 * apiserver/pkg/storage/storagebackend/factory/etcd3.go newETCD3Check, apiserver/pkg/server/options/etcd.go (v1.36).
 */
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { orAborted } from '#base/orAborted'
import type { Store } from '#store/store'
import type { HealthCheck } from '../core/health.ts'

export interface StoreCheckTimes {
  /** --etcd-healthcheck-timeout; default 2 s. */
  readonly healthMs?: number | undefined
  /** --etcd-readycheck-timeout; default 2 s. */
  readonly readyMs?: number | undefined
}

interface StoreCheckDeps {
  readonly store: Pick<Store, 'latestRevision'>
  readonly clock: Clock
  /** 0: the watch caches are not filled yet. */
  readonly cachedRevision: () => number
}

const defaultTimeoutMs = 2000

export function storeChecks({ store, clock, cachedRevision }: StoreCheckDeps, { healthMs, readyMs }: StoreCheckTimes): HealthCheck[] {
  const answers = storeAnswers(store, clock, healthMs ?? defaultTimeoutMs)
  return [
    { name: 'etcd', check: () => (cachedRevision() > 0 ? answers() : 'the watch caches are not filled yet') },
    { name: 'etcd-readiness', livez: false, check: storeAnswers(store, clock, readyMs ?? defaultTimeoutMs) },
  ]
}

/** Asks at most once in half of the timeout: those who ask in between get the last answer, or wait for it. */
function storeAnswers(store: Pick<Store, 'latestRevision'>, clock: Clock, timeoutMs: number): HealthCheck['check'] {
  let last: { readonly atMs: number; readonly answer: Promise<string | undefined> | undefined } | undefined
  const ask = async (): Promise<string | undefined> => {
    using limit = deadlineScope({ clock, ms: timeoutMs, reason: () => new Error(`no answer within ${timeoutMs} ms`) })
    try {
      await orAborted(Promise.resolve(store.latestRevision({ signal: limit.signal })), limit.signal)
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }
  return () => {
    const nowMs = clock.monotonicMs()
    if (!last || nowMs - last.atMs >= timeoutMs / 2) last = { atMs: nowMs, answer: ask() }
    return last.answer
  }
}
