/**
 * The loop that most proxy modes run (L3): applies the newest model, family by family, again with back-off after a failure, and then deletes the flows
 * that the change made stale. Upstream: syncProxyRules and its BoundedFrequencyRunner (pkg/proxy, v1.36).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Conntrack } from '#host/conntrack'
import type { Family, FamilyModel, ProxyModels, ServiceRule } from './model.ts'
import { staleFlows } from './staleFlows.ts'
import type { SyncObserver } from './syncTracker.ts'

export interface ApplyDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly conntrack: Conntrack
  /** Absent: applications are not measured. */
  readonly sync?: SyncObserver | undefined
}

/** Brings the host to the model of one family, touching only what changed. */
export type ApplyFamily = (model: FamilyModel) => Promise<void>

/** The back-off after failures: doubled each time. */
export const retryMs = { initial: 500, max: 30_000 }

/** Returns when the signal has aborted. */
export async function applyModels(apply: ApplyFamily, deps: ApplyDeps, models: ProxyModels, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  const applied = new Map<Family, readonly ServiceRule[]>()
  let failures = 0
  try {
    let model = await models.next(signal)
    while (!signal.aborted) {
      const failed = await applyFamilies(apply, deps, model, applied)
      if (failed.length === 0) {
        failures = 0
        model = await models.next(signal)
      } else {
        log.error(failed[0], 'Failed to apply service rules', { families: failed.length })
        await clock.sleep(Math.min(retryMs.max, retryMs.initial * 2 ** failures++), signal)
        model = models.newest()
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** A family that fails does not hold up the other. @returns the errors */
async function applyFamilies(
  apply: ApplyFamily,
  deps: ApplyDeps,
  model: readonly FamilyModel[],
  applied: Map<Family, readonly ServiceRule[]>,
): Promise<Error[]> {
  const { clock, log, sync } = deps
  const errors: Error[] = []
  for (const one of model) {
    const startedMs = clock.monotonicMs()
    let failed = true
    try {
      await apply(one)
      await deleteFlows(applied.get(one.family) ?? [], one, deps)
      applied.set(one.family, one.rules)
      failed = false
      log.v(3).info('Applied service rules', { family: one.family, services: one.rules.length })
    } catch (error) {
      errors.push(error as Error)
    }
    sync?.ended(one, (clock.monotonicMs() - startedMs) / 1000, failed)
  }
  return errors
}

async function deleteFlows(before: readonly ServiceRule[], { family, rules }: FamilyModel, { clock, conntrack, sync }: ApplyDeps): Promise<void> {
  const startedMs = clock.monotonicMs()
  let deleted = 0
  for (const flow of staleFlows(before, rules)) deleted += await conntrack.delete(flow)
  sync?.flowsDeleted(family, deleted, (clock.monotonicMs() - startedMs) / 1000)
}
