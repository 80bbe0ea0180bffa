/**
 * How the zones of a cluster are, and how fast pods may be evicted from each (L3): where many nodes fall silent at once, the fault is more likely
 * the network's, or ours. Upstream: pkg/controller/nodelifecycle handleDisruption, ComputeZoneState (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { createTokenBucket, type TokenBucket } from '#client/workqueue/rateLimiter'

export type ZoneState = 'Normal' | 'PartialDisruption' | 'FullDisruption'

export interface ZoneOptions {
  /** Nodes a second that may be evicted from. */
  readonly evictionRate: number
  /** The same where a big zone is partly out. */
  readonly secondaryEvictionRate: number
  /** Zones up to this size are not evicted from at all when they are partly out. */
  readonly largeClusterSizeThreshold: number
  /** The share of silent nodes from which on a zone counts as partly out. */
  readonly unhealthyZoneThreshold: number
}

export const defaultZoneOptions: ZoneOptions = {
  evictionRate: 0.1,
  secondaryEvictionRate: 0.01,
  largeClusterSizeThreshold: 50,
  unhealthyZoneThreshold: 0.55,
}

/** Region and zone in one; '' for nodes that name neither. */
export function zoneKey({ metadata: { labels = {} } }: Frozen<Node>): string {
  const region = labels['topology.kubernetes.io/region'] ?? labels['failure-domain.beta.kubernetes.io/region'] ?? ''
  const zone = labels['topology.kubernetes.io/zone'] ?? labels['failure-domain.beta.kubernetes.io/zone'] ?? ''
  return region === '' && zone === '' ? '' : `${region}:\0:${zone}`
}

const excluded = 'node.kubernetes.io/exclude-disruption'
/** Fewer silent nodes than this are an accident of theirs, whatever their share. */
const fewNodes = 2

export function zoneState(size: number, notReady: number, { unhealthyZoneThreshold }: ZoneOptions): ZoneState {
  if (notReady > 0 && notReady === size) return 'FullDisruption'
  return notReady > fewNodes && notReady / size >= unhealthyZoneThreshold ? 'PartialDisruption' : 'Normal'
}

export function evictionRateOf(state: ZoneState, size: number, options: ZoneOptions): number {
  if (state !== 'PartialDisruption') return options.evictionRate
  return size > options.largeClusterSizeThreshold ? options.secondaryEvictionRate : 0
}

export interface ZoneCensus {
  readonly size: number
  readonly notReady: number
}

/** Nodes by zone, without those that are not to be counted. */
export function censusOf(nodes: readonly Frozen<Node>[]): Map<string, ZoneCensus> {
  const zones = new Map<string, ZoneCensus>()
  for (const node of nodes) {
    if (node.metadata.labels?.[excluded] !== undefined) continue
    const key = zoneKey(node)
    const { size, notReady } = zones.get(key) ?? { size: 0, notReady: 0 }
    const ready = findCondition(node.status?.conditions, 'Ready')?.status === 'True'
    zones.set(key, { size: size + 1, notReady: notReady + (ready ? 0 : 1) })
  }
  return zones
}

interface Zone {
  state: ZoneState
  rate: number
  limiter: TokenBucket | undefined
  /** Names of nodes that wait for their turn, in order. */
  readonly waiting: Set<string>
}

/** Decides when it is a node's turn to be evicted from. */
export interface ZoneEvictor {
  /**
   * Takes in the zones as they are now.
   * @returns whether the cluster has just left the state in which every zone is out
   */
  update(zones: ReadonlyMap<string, ZoneCensus>): { readonly recovered: boolean }
  /** True while every zone is fully disrupted; no node is evicted from then. */
  allOut(): boolean
  /** The node waits for its turn; again changes nothing. */
  add(zone: string, node: string): void
  remove(node: string): void
  /** Nodes that the rate limit admits now. */
  take(): { readonly zone: string; readonly node: string }[]
  /** Whether a node waits in a zone that admits nodes. */
  isWaiting(): boolean
  stateOf(zone: string): ZoneState | undefined
}

/** Each zone has its own pace, which changes with its state; when every zone is out, none has any. */
export function createZoneEvictor(clock: Clock, options: ZoneOptions): ZoneEvictor {
  const zones = new Map<string, Zone>()
  let out = false
  const zoneOf = (key: string) => {
    const zone = zones.get(key) ?? { state: 'Normal', rate: options.evictionRate, limiter: bucket(options.evictionRate), waiting: new Set() }
    zones.set(key, zone)
    return zone
  }
  function bucket(rate: number): TokenBucket | undefined {
    return rate > 0 ? createTokenBucket(clock, rate, 1) : undefined
  }
  function setRate(zone: Zone, rate: number): void {
    if (zone.rate === rate) return
    const exhausted = zone.limiter !== undefined && !zone.limiter.tryTake()
    zone.rate = rate
    zone.limiter = bucket(rate)
    // A changed rate alone admits no node of a zone whose budget was used up.
    if (exhausted) zone.limiter?.tryTake()
  }
  return {
    update(census) {
      const wasOut = out
      for (const key of zones.keys()) if (!census.has(key)) zones.delete(key)
      for (const [key, { size, notReady }] of census) zoneOf(key).state = zoneState(size, notReady, options)
      out = census.size > 0 && [...census.keys()].every((key) => zoneOf(key).state === 'FullDisruption')
      for (const [key, { size }] of census) setRate(zoneOf(key), out ? 0 : evictionRateOf(zoneOf(key).state, size, options))
      return { recovered: wasOut && !out }
    },
    allOut: () => out,
    add: (zone, node) => void zoneOf(zone).waiting.add(node),
    remove(node) {
      for (const { waiting } of zones.values()) waiting.delete(node)
    },
    take() {
      const taken: { zone: string; node: string }[] = []
      for (const [zone, { waiting, limiter }] of zones) {
        for (const node of waiting) {
          if (!limiter?.tryTake()) break
          waiting.delete(node)
          taken.push({ zone, node })
        }
      }
      return taken
    },
    isWaiting: () => [...zones.values()].some(({ waiting, limiter }) => limiter !== undefined && waiting.size > 0),
    stateOf: (zone) => zones.get(zone)?.state,
  }
}
