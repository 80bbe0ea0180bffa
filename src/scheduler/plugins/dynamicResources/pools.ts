/**
 * The pools of devices that a node can reach (L3), from the resource slices: only the newest generation of each, and nothing of a pool whose slices are
 * not all there yet. Upstream: dynamic-resource-allocation/structured GatherPools (v1.36).
 */

import type { Node, NodeSelector } from '#api/gen/types/core.v1'
import type { CounterSet, Device, ResourceSlice } from '#api/gen/types/resource.v1'
import { nodeSelectorMatches } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { greatest } from '#base/extremes'

type Slice = Frozen<ResourceSlice>

export interface PoolDevice {
  /** `driver/pool/device`. */
  readonly id: string
  readonly device: Frozen<Device>
  readonly slice: Slice
  readonly pool: Pool
}

export interface Pool {
  readonly driver: string
  readonly name: string
  /** Nothing may be taken out of an incomplete or invalid one. */
  readonly state: 'usable' | 'incomplete' | 'invalid'
  /** In slices that the node can reach, by the slices' names. */
  readonly devices: readonly PoolDevice[]
  /** All of it that may use counters, for other nodes too. */
  readonly everywhere: readonly Slice[]
  readonly counterSets: ReadonlyMap<string, Frozen<CounterSet>>
}

export const deviceId = (driver: string, pool: string, device: string): string => `${driver}/${pool}/${device}`

/** The slices of the cluster, ordered for the question which pools a node has. */
export class PoolIndex {
  readonly #ofNode = new Map<string, Slice[]>()
  readonly #shared: Slice[] = []
  readonly #byPool = new Map<string, Slice[]>()
  readonly #known = new Map<string, { readonly node: Frozen<Node>; readonly pools: readonly Pool[] }>()

  constructor(slices: Iterable<Slice>) {
    for (const slice of slices) {
      const { nodeName, sharedCounters } = slice.spec
      if (nodeName && !sharedCounters?.length) append(this.#ofNode, nodeName, slice)
      else this.#shared.push(slice)
      append(this.#byPool, poolKey(slice), slice)
    }
  }

  /** Those without binding conditions first, then by driver and name. */
  poolsOf(node: Frozen<Node>): readonly Pool[] {
    const { name = '' } = node.metadata
    const known = this.#known.get(name)
    if (known?.node === node) return known.pools
    const pools = this.#gather(node)
    this.#known.set(name, { node, pools })
    return pools
  }

  #gather(node: Frozen<Node>): readonly Pool[] {
    const byPool = new Map<string, Slice[]>()
    for (const slice of [...(this.#ofNode.get(node.metadata.name ?? '') ?? []), ...this.#shared])
      if (isRelevant(slice, node)) append(byPool, poolKey(slice), slice)
    const pools: Pool[] = []
    for (const [key, relevant] of byPool) {
      const newest = greatest(relevant.map(({ spec }) => spec.pool.generation))
      const all = this.#byPool.get(key) ?? []
      // A newer generation that has nothing for this node makes the older one out of date all the same.
      if (all.some(({ spec }) => spec.pool.generation > newest)) continue
      pools.push(poolOf(relevant.filter(isOf(newest)), all.filter(isOf(newest))))
    }
    return pools.sort(
      (a, b) => Number(hasBindingConditions(a)) - Number(hasBindingConditions(b)) || compareText(a.driver, b.driver) || compareText(a.name, b.name),
    )
  }
}

const poolKey = ({ spec: { driver, pool } }: Slice): string => `${driver}/${pool.name}`
const isOf =
  (generation: number) =>
  ({ spec }: Slice): boolean =>
    spec.pool.generation === generation
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const hasBindingConditions = ({ devices }: Pool): boolean => devices.some(({ device }) => device.bindingConditions !== undefined)

/** Counters belong to the pool wherever its devices are. */
function isRelevant(slice: Slice, node: Frozen<Node>): boolean {
  const { sharedCounters, perDeviceNodeSelection, devices } = slice.spec
  if (sharedCounters?.length) return true
  return perDeviceNodeSelection ? (devices ?? []).some((device) => reaches(device, node)) : reaches(slice.spec, node)
}

interface NodeSelection {
  readonly nodeName?: string | undefined
  readonly allNodes?: boolean | undefined
  readonly nodeSelector?: Frozen<NodeSelector> | undefined
}

/** Whether a slice, or a device of a slice that leaves it to its devices, can be used on a node. */
export function reaches({ nodeName, allNodes, nodeSelector }: NodeSelection, node: Frozen<Node>): boolean {
  if (nodeName) return nodeName === node.metadata.name
  return allNodes === true || (nodeSelector !== undefined && nodeSelectorMatches(nodeSelector, node))
}

function poolOf(relevant: readonly Slice[], all: readonly Slice[]): Pool {
  const { driver, pool } = (all[0] as Slice).spec
  const devices: PoolDevice[] = []
  const counterSets = new Map<string, Frozen<CounterSet>>()
  const base = { driver, name: pool.name, devices, everywhere: all, counterSets }
  if (all.length !== pool.resourceSliceCount) return { ...base, state: 'incomplete' }
  const state = isValid(relevant, all, counterSets) ? 'usable' : 'invalid'
  const made: Pool = { ...base, state }
  for (const slice of [...relevant].sort((a, b) => compareText(a.metadata.name ?? '', b.metadata.name ?? '')))
    for (const device of slice.spec.devices ?? []) devices.push({ id: deviceId(driver, pool.name, device.name), device, slice, pool: made })
  return made
}

/** Fills `counterSets`. Names must be unique, and counters that devices use must exist. */
function isValid(relevant: readonly Slice[], all: readonly Slice[], counterSets: Map<string, Frozen<CounterSet>>): boolean {
  const names = relevant.flatMap(({ spec }) => (spec.devices ?? []).map(({ name }) => name))
  if (new Set(names).size < names.length) return false
  for (const { spec } of all)
    for (const set of spec.sharedCounters ?? []) {
      if (counterSets.has(set.name)) return false
      counterSets.set(set.name, set)
    }
  const exists = (set: string, counter: string) => Object.hasOwn(counterSets.get(set)?.counters ?? {}, counter)
  return all.every(({ spec }) =>
    (spec.devices ?? []).every((device) =>
      (device.consumesCounters ?? []).every(
        ({ counterSet, counters }) => counterSets.has(counterSet) && Object.keys(counters).every((name) => exists(counterSet, name)),
      ),
    ),
  )
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const there = lists.get(key)
  if (there) there.push(value)
  else lists.set(key, [value])
}
