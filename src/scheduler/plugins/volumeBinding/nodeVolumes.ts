/**
 * Which volumes a pod would get on a node (L3): existing ones that would do, and ones that can be made there.
 * Upstream: plugins/volumebinding/binder.go FindPodVolumes (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { CSIDriver, CSIStorageCapacity, StorageClass } from '#api/gen/types/storage.v1'
import { findMatchingVolume, noProvisioner, storageClassOf, volumeAnnotations, volumeReaches } from '#api/helpers/volumes'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities, type QuantityInput } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import type { Lister } from '#client/cache/lister'
import { reasons } from '../../framework/status.ts'
import type { AssumedObjects } from './assumedObjects.ts'
import type { PodClaims } from './podClaims.ts'

export interface VolumeChoice {
  readonly claim: Frozen<PersistentVolumeClaim>
  readonly volume: Frozen<PersistentVolume>
}

export interface NodeVolumes {
  readonly choices: readonly VolumeChoice[]
  readonly provisions: readonly Frozen<PersistentVolumeClaim>[]
}

export interface VolumeSources {
  readonly volumes: AssumedObjects<PersistentVolume>
  readonly classes: Lister<StorageClass>
  readonly drivers: Lister<CSIDriver>
  readonly capacities: Lister<CSIStorageCapacity>
}

/** The pod's volumes on the node, or why it cannot have them there. */
export function findNodeVolumes({ boundVolumes, delayed }: PodClaims, node: Frozen<Node>, sources: VolumeSources): NodeVolumes | readonly string[] {
  const problems = boundProblems(boundVolumes, node)
  const chosen = delayed.filter(({ metadata }) => metadata.annotations?.[volumeAnnotations.selectedNode] !== undefined)
  if (chosen.some(({ metadata }) => metadata.annotations?.[volumeAnnotations.selectedNode] !== node.metadata.name))
    return inOrder([...problems, reasons.noVolumeToBind])
  const { choices, left } = matchVolumes(
    delayed.filter((claim) => !chosen.includes(claim)),
    node,
    sources.volumes,
  )
  const provisions = [...chosen, ...left]
  const problem = provisioningProblem(provisions, node, sources)
  if (problem !== undefined) problems.push(problem)
  return problems.length > 0 ? inOrder(problems) : { choices, provisions }
}

const order: readonly string[] = [reasons.volumeNodeAffinity, reasons.noVolumeToBind, reasons.notEnoughStorage, reasons.boundVolumeMissing]

function inOrder(problems: readonly string[]): readonly string[] {
  return order.filter((reason) => problems.includes(reason))
}

function boundProblems(volumes: PodClaims['boundVolumes'], node: Frozen<Node>): string[] {
  for (const volume of volumes) {
    if (!volume) return [reasons.boundVolumeMissing]
    if (!volumeReaches(volume, node)) return [reasons.volumeNodeAffinity]
  }
  return []
}

/** The smallest claims choose first, so that they take the smallest volumes. */
function matchVolumes(
  claims: readonly Frozen<PersistentVolumeClaim>[],
  node: Frozen<Node>,
  volumes: AssumedObjects<PersistentVolume>,
): { readonly choices: readonly VolumeChoice[]; readonly left: readonly Frozen<PersistentVolumeClaim>[] } {
  const choices: VolumeChoice[] = []
  const left: Frozen<PersistentVolumeClaim>[] = []
  const excluded = new Set<string>()
  for (const claim of [...claims].sort((a, b) => compareQuantities(sizeOf(a) ?? '0', sizeOf(b) ?? '0'))) {
    const volume = findMatchingVolume(claim, volumes.group(storageClassOf(claim)), { node, excluded })
    if (volume) {
      excluded.add(volume.metadata.name ?? '')
      choices.push({ claim, volume })
    } else left.push(claim)
  }
  return { choices, left }
}

function sizeOf({ spec }: Frozen<PersistentVolumeClaim>): string | undefined {
  return spec.resources?.requests?.storage
}

/** @throws Error when a claim has no class, or the class is gone */
function provisioningProblem(claims: readonly Frozen<PersistentVolumeClaim>[], node: Frozen<Node>, sources: VolumeSources): string | undefined {
  for (const claim of claims) {
    const name = storageClassOf(claim)
    if (name === '') throw new Error(`no class for claim "${keyOf(claim)}"`)
    const storageClass = sources.classes.get({ name })
    if (!storageClass) throw new Error(`failed to find storage class "${name}"`)
    if (!storageClass.provisioner || storageClass.provisioner === noProvisioner || !isAllowed(storageClass, node)) return reasons.noVolumeToBind
    if (!hasCapacity(claim, storageClass, node, sources)) return reasons.notEnoughStorage
  }
  return undefined
}

/** Terms are alternatives; no terms allow every node. */
function isAllowed({ allowedTopologies = [] }: Frozen<StorageClass>, { metadata }: Frozen<Node>): boolean {
  if (allowedTopologies.length === 0) return true
  return allowedTopologies.some(({ matchLabelExpressions: all = [] }) => {
    return all.length > 0 && all.every(({ key, values }) => values.includes(ownValue(metadata.labels, key) ?? ''))
  })
}

/** Only drivers that publish their capacity are held to it. */
function hasCapacity(
  claim: Frozen<PersistentVolumeClaim>,
  storageClass: Frozen<StorageClass>,
  { metadata }: Frozen<Node>,
  { drivers, capacities }: VolumeSources,
): boolean {
  const size = sizeOf(claim)
  if (size === undefined || drivers.get({ name: storageClass.provisioner })?.spec.storageCapacity !== true) return true
  const suffices = (capacity: Frozen<CSIStorageCapacity>) => {
    const limit = capacityLimit(capacity)
    return limit !== undefined && compareQuantities(limit, size) >= 0
  }
  const isHere = ({ nodeTopology }: Frozen<CSIStorageCapacity>) => nodeTopology !== undefined && selectorOf(nodeTopology).matches(metadata.labels)
  return capacities.list({ matches: (one) => one.storageClassName === storageClass.metadata.name && suffices(one) && isHere(one) }).length > 0
}

/** The largest volume that can be made; the driver's own word about it counts before the free space. */
export function capacityLimit({ maximumVolumeSize, capacity }: Frozen<CSIStorageCapacity>): QuantityInput | undefined {
  return maximumVolumeSize ?? capacity
}
