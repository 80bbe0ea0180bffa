/**
 * Follows changes from the informers to the kernel (L3): counts them, measures how long they take, and tells the proxy's health. Upstream: ServiceChangeTracker
 * and EndpointsChangeTracker of pkg/proxy, syncProxyRules of its modes (v1.36).
 */
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { ProxyHealth } from './health.ts'
import { createProxyMetrics } from './metrics.ts'
import type { Family, FamilyModel } from './model.ts'

/** What a mode tells about each application of a family's model. */
export interface SyncObserver {
  /** Ends an application. @param failed true: the kernel does not have the rules */
  ended(model: FamilyModel, seconds: number, failed: boolean): void
  /** Flows that were deleted after an application. */
  flowsDeleted(family: Family, count: number, seconds: number): void
}

export interface SyncTracker extends SyncObserver {
  /** A Service changed. @param key namespace/name */
  serviceChanged(key: string): void
  /** @param old undefined: the slice is new @param slice undefined: it is gone */
  sliceChanged(old: Frozen<EndpointSlice> | undefined, slice: Frozen<EndpointSlice> | undefined): void
  /** Something else changed that rules are made of. */
  otherChanged(): void
  /** A model is made of all changes until now. */
  modelMade(): void
}

const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'
const serviceNameLabel = 'kubernetes.io/service-name'
/** How many times of a Service are kept while its rules fail to be applied: the oldest say enough. */
const mostTriggers = 100

interface TrackerDeps {
  readonly clock: Clock
  readonly metrics: Metrics
  readonly health: ProxyHealth
  /** Those that the proxy serves: rules of others are never applied. */
  readonly families: readonly Family[]
}

/** Trigger times of one family, in milliseconds since 1970, by Service. */
type Triggers = Map<string, number[]>

export function createSyncTracker({ clock, metrics, health, families }: TrackerDeps): SyncTracker {
  const own = createProxyMetrics(metrics)
  const startedMs = clock.now()
  let pendingServices = new Set<string>()
  /** Those that no model holds yet, and those of models that no kernel has yet. */
  const waiting: Record<Family, Triggers> = { IPv4: new Map(), IPv6: new Map() }
  const taken: Record<Family, Triggers> = { IPv4: new Map(), IPv6: new Map() }
  let madeMs = clock.monotonicMs()

  const queued = () => {
    health.queued()
    for (const ip_family of families) own.lastQueued.set(clock.now() / 1000, { ip_family })
  }
  return {
    serviceChanged: (key) => {
      own.serviceChanges.inc()
      pendingServices.add(key)
      own.serviceChangesPending.set(pendingServices.size)
      queued()
    },
    sliceChanged: (old, slice) => {
      own.endpointChanges.inc()
      const one = slice ?? old
      if (!one || (old && slice && placesOf(old) === placesOf(slice))) return
      own.endpointChangesPending.inc()
      queued()
      const family = families.find((name) => name === one.addressType)
      if (family && slice) noteTrigger(waiting[family], slice, startedMs)
      // The slice has the time of its last change, not that of its removal: the times of its Service are not measured.
      if (family && !slice) for (const triggers of [waiting[family], taken[family]]) triggers.delete(serviceOf(one))
    },
    otherChanged: queued,
    modelMade: () => {
      madeMs = clock.monotonicMs()
      pendingServices = new Set()
      own.serviceChangesPending.set(0)
      own.endpointChangesPending.set(0)
      for (const family of families) moveTriggers(waiting[family], taken[family])
    },
    ended: ({ family, rules }, seconds, failed) => {
      const labels = { ip_family: family }
      own.syncSeconds.observe(seconds, labels)
      if (failed) return
      const nowMs = clock.now()
      own.lastSync.set(nowMs / 1000, labels)
      for (const times of taken[family].values()) for (const time of times) own.programmingSeconds.observe(Math.max(0, nowMs - time) / 1000, labels)
      taken[family].clear()
      for (const [traffic_policy, count] of Object.entries(withoutLocalEndpoints(rules))) own.noLocalEndpoints.set(count, { ...labels, traffic_policy })
      health.applied(family, madeMs)
    },
    flowsDeleted: (family, count, seconds) => {
      own.flowSeconds.observe(seconds, { ip_family: family })
      own.flowsDeleted.inc({ ip_family: family }, count)
    },
  }
}

/** What of a slice becomes rules. */
function placesOf({ endpoints, ports, metadata }: Frozen<EndpointSlice>): string {
  return JSON.stringify([metadata.labels?.[serviceNameLabel], endpoints, ports])
}

const serviceOf = ({ metadata }: Frozen<EndpointSlice>) => `${metadata.namespace}/${metadata.labels?.[serviceNameLabel]}`

function noteTrigger(triggers: Triggers, slice: Frozen<EndpointSlice>, startedMs: number): void {
  const time = Date.parse(slice.metadata.annotations?.[triggerTimeAnnotation] ?? '')
  // Before the start no proxy was there to program anything.
  if (time > startedMs) addTimes(triggers, serviceOf(slice), [time])
}

function moveTriggers(from: Triggers, to: Triggers): void {
  for (const [service, times] of from) addTimes(to, service, times)
  from.clear()
}

function addTimes(triggers: Triggers, service: string, times: readonly number[]): void {
  const all = triggers.get(service) ?? []
  all.push(...times.slice(0, mostTriggers - all.length))
  triggers.set(service, all)
}

/** Ports with the policy Local that have endpoints, but none on this node. */
function withoutLocalEndpoints(rules: FamilyModel['rules']): Record<'internal' | 'external', number> {
  const remote = rules.filter(({ clusterEndpoints, localEndpoints }) => clusterEndpoints.length > 0 && localEndpoints.length === 0)
  return {
    internal: remote.filter(({ internalPolicyLocal }) => internalPolicyLocal).length,
    external: remote.filter(({ externalPolicyLocal }) => externalPolicyLocal).length,
  }
}
