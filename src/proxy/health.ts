/**
 * The health of a node's service proxy (L3), pure: a family is unhealthy when a change waits longer than the timeout to be applied; the node is not eligible for
 * traffic while it is being deleted. Unlike upstream, a family whose first rules are late is unhealthy, too. Upstream: pkg/proxy/healthcheck/proxy_health.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Family } from './model.ts'

/** The cluster autoscaler taints a node so before it deletes it. */
const toBeDeletedTaint = 'ToBeDeletedByClusterAutoscaler'
const never = '0001-01-01T00:00:00Z'

export interface HealthReport {
  readonly isHealthy: boolean
  /** Upstream's JSON object. */
  readonly body: Readonly<Record<string, unknown>>
}

interface FamilyState {
  /** Wall clock; undefined: no rules were applied yet. */
  updatedMs?: number | undefined
  /** Monotonic clock: the oldest and the newest change that no applied model holds. */
  oldestQueuedMs?: number | undefined
  newestQueuedMs?: number | undefined
}

export class ProxyHealth {
  readonly #clock: Clock
  readonly #timeoutMs: number
  #families = new Map<Family, FamilyState>()
  #isEligible = false

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  /** Names the families that the proxy serves; others are forgotten. */
  serves(families: readonly Family[]): void {
    this.#families = new Map(families.map((family) => [family, this.#families.get(family) ?? {}]))
  }

  /** A change is to be applied. */
  queued(): void {
    const nowMs = this.#clock.monotonicMs()
    for (const state of this.#families.values()) {
      state.oldestQueuedMs ??= nowMs
      state.newestQueuedMs = nowMs
    }
  }

  /** @param takenMs monotonic: when the model that is applied now was made; it holds all changes until then */
  applied(family: Family, takenMs: number): void {
    const state = this.#families.get(family)
    if (!state) return
    state.updatedMs = this.#clock.now()
    const hasNewer = state.newestQueuedMs !== undefined && state.newestQueuedMs > takenMs
    state.oldestQueuedMs = hasNewer ? state.newestQueuedMs : undefined
    if (!hasNewer) state.newestQueuedMs = undefined
  }

  /** @param node the node of this proxy; undefined: there is none */
  setNode(node: Frozen<Node> | undefined): void {
    this.#isEligible = node !== undefined && !node.metadata.deletionTimestamp && !node.spec?.taints?.some(({ key }) => key === toBeDeletedTaint)
  }

  /** For load balancers: false also while the node is being deleted. */
  healthz(): HealthReport {
    const { isHealthy, body } = this.#report()
    return this.#answer(isHealthy && this.#isEligible, { ...body, nodeEligible: this.#isEligible })
  }

  /** For a supervisor of the process: the node does not matter. */
  livez(): HealthReport {
    const { isHealthy, body } = this.#report()
    return this.#answer(isHealthy, body)
  }

  #report(): HealthReport {
    const nowMs = this.#clock.monotonicMs()
    const isLate = ({ oldestQueuedMs }: FamilyState) => oldestQueuedMs !== undefined && nowMs - oldestQueuedMs >= this.#timeoutMs
    const states = [...this.#families].filter(([, state]) => state.updatedMs !== undefined || isLate(state))
    const status = Object.fromEntries(states.map(([family, state]) => [family, { lastUpdated: timeOf(state.updatedMs), healthy: !isLate(state) }]))
    const isHealthy = states.every(([, state]) => !isLate(state))
    const newest = states.reduce<number | undefined>(
      (latest, [, { updatedMs }]) => (updatedMs === undefined ? latest : Math.max(latest ?? 0, updatedMs)),
      undefined,
    )
    const currentTime = timeOf(this.#clock.now())
    return { isHealthy, body: { lastUpdated: timeOf(newest), currentTime, healthy: isHealthy, ...(states.length > 0 ? { status } : {}) } }
  }

  /** A healthy proxy counts as updated now, as clients of earlier releases expect. */
  #answer(isHealthy: boolean, { lastUpdated, currentTime, nodeEligible, ...rest }: HealthReport['body']): HealthReport {
    const body = { lastUpdated: isHealthy ? currentTime : lastUpdated, currentTime, ...(nodeEligible === undefined ? {} : { nodeEligible }), ...rest }
    return { isHealthy, body }
  }
}

function timeOf(ms: number | undefined): string {
  return ms === undefined ? never : new Date(ms).toISOString()
}
