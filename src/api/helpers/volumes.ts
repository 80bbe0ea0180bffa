/**
 * Questions about volumes and claims that scheduler and controllers share (L1): which claims a pod has, and which volume would do for a claim.
 * Upstream: component-helpers/storage/volume/pv_helpers.go, helpers.go, storage/ephemeral/ephemeral.go (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '#api/gen/types/core.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { nodeSelectorMatches } from './nodes.ts'
import { isControlledBy } from './owners.ts'

export const volumeAnnotations = {
  /** The claim has been bound once; from then on its volume is looked at as its own. */
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  /** The controller has chosen, not a person. */
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  /** The node that the scheduler has chosen for the first consumer: provisioning may begin. */
  selectedNode: 'volume.kubernetes.io/selected-node',
  /** On a claim: who shall make its volume. */
  storageProvisioner: 'volume.kubernetes.io/storage-provisioner',
  /** The same, by its older name. */
  betaStorageProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  /** On a volume: who has made it, and deletes it. */
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  /** The CSI driver that looks after what an in-tree plugin has made. */
  migratedTo: 'pv.kubernetes.io/migrated-to',
  /** The claim's size before its volume grew, until the file system has grown too. */
  preResizeCapacity: 'volume.alpha.kubernetes.io/pre-resize-capacity',
  /** On a claim: who shall make its volume larger. */
  storageResizer: 'volume.kubernetes.io/storage-resizer',
} as const

/** The provisioner of classes that only bind volumes that exist. */
export const noProvisioner = 'kubernetes.io/no-provisioner'

const betaStorageClass = 'volume.beta.kubernetes.io/storage-class'

/** The storage class, by the annotation that preceded the field or by the field; '': none. */
export function storageClassOf({ metadata, spec }: Frozen<PersistentVolume | PersistentVolumeClaim>): string {
  return metadata.annotations?.[betaStorageClass] ?? spec?.storageClassName ?? ''
}

/** Whether the claim names a class, '' included. A claim that names none gets the default class. */
export function namesStorageClass({ metadata, spec }: Frozen<PersistentVolumeClaim>): boolean {
  return metadata.annotations?.[betaStorageClass] !== undefined || spec?.storageClassName !== undefined
}

/** The default among these classes: the newest of several, of the same age the first by name. */
export function defaultStorageClassOf<T extends Frozen<KubeObject>>(classes: readonly T[]): T | undefined {
  return newestDefault(classes, ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'])
}

/** The newest of those that one of the annotations calls the default; of the same age the first by name. */
export function newestDefault<T extends Frozen<KubeObject>>(classes: readonly T[], annotations: readonly string[]): T | undefined {
  const defaults = classes.filter((one) => annotations.some((annotation) => ownValue(one.metadata.annotations, annotation) === 'true'))
  const created = (one: T) => one.metadata.creationTimestamp ?? ''
  const order = (a: T, b: T) => (created(a) === created(b) ? ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1) : created(a) > created(b) ? -1 : 1)
  return defaults.sort(order)[0]
}

/** The name of the claim behind a volume of a pod; undefined for volumes without. */
export function claimNameOf(pod: Frozen<Pod>, volume: Frozen<Volume>): string | undefined {
  if (volume.persistentVolumeClaim) return volume.persistentVolumeClaim.claimName
  return volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined
}

/** Why a pod cannot have this claim as the one that it brings along; undefined: it is its own. */
export function otherPodsClaim(pod: Frozen<Pod>, claim: Frozen<PersistentVolumeClaim>): string | undefined {
  if (isControlledBy(claim, pod)) return undefined
  const { namespace, name } = claim.metadata
  return `PVC ${namespace}/${name} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`
}

/** Bound for good: the claim names its volume, and the binding is complete. */
export function isFullyBound({ metadata, spec }: Frozen<PersistentVolumeClaim>): boolean {
  return Boolean(spec?.volumeName) && metadata.annotations?.[volumeAnnotations.bindCompleted] !== undefined
}

/** Whether the volume is meant for this claim: by name, and by uid if the volume has one. */
export function isBoundToClaim({ spec }: Frozen<PersistentVolume>, { metadata }: Frozen<PersistentVolumeClaim>): boolean {
  const ref = spec?.claimRef
  return ref !== undefined && ref.name === metadata.name && ref.namespace === metadata.namespace && (!ref.uid || ref.uid === metadata.uid)
}

/** The volume as it will be when it is promised to the claim; the same object when it is already. */
export function promisedTo(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): Frozen<PersistentVolume> {
  const { namespace, name, uid, resourceVersion } = claim.metadata
  const isMeant = isBoundToClaim(volume, claim)
  if (isMeant && volume.spec.claimRef?.uid === uid) return volume
  const annotations = { ...volume.metadata.annotations, ...(isMeant ? {} : { [volumeAnnotations.boundByController]: 'yes' }) }
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion }
  return { ...volume, metadata: { ...volume.metadata, annotations }, spec: { ...volume.spec, claimRef } }
}

/** Whether the volume can be reached from the node. */
export function volumeReaches({ spec }: Frozen<PersistentVolume>, node: Frozen<Node>): boolean {
  const required = spec?.nodeAffinity?.required
  return required === undefined || nodeSelectorMatches(required, node)
}

export interface VolumeSearch {
  /** The volume must be reachable from there; absent: anywhere. */
  readonly node?: Frozen<Node> | undefined
  /** Names of volumes that are already reserved for other claims. */
  readonly excluded?: ReadonlySet<string> | undefined
  /** Only volumes that are meant for the claim: others wait until a node is known. */
  readonly onlyPrebound?: boolean | undefined
}

/**
 * The volume meant for the claim, or else the smallest of those that would do.
 * @returns undefined when none does, or when the one that is meant cannot be reached
 */
export function findMatchingVolume(
  claim: Frozen<PersistentVolumeClaim>,
  volumes: Iterable<Frozen<PersistentVolume>>,
  { node, excluded, onlyPrebound }: VolumeSearch = {},
): Frozen<PersistentVolume> | undefined {
  let smallest: Frozen<PersistentVolume> | undefined
  for (const volume of volumes) {
    if (excluded?.has(volume.metadata.name ?? '') || !couldServe(volume, claim)) continue
    const reaches = !node || volumeReaches(volume, node)
    if (isBoundToClaim(volume, claim)) return reaches ? volume : undefined
    if (volume.spec?.claimRef || onlyPrebound || !reaches || !isFreeFor(volume, claim) || (node && !hasModes(volume, claim))) continue
    if (!smallest || compareQuantities(capacity(volume), capacity(smallest)) < 0) smallest = volume
  }
  return smallest
}

/** Size, mode and attributes: what even a volume that is meant for the claim needs. */
function couldServe(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): boolean {
  if (compareQuantities(capacity(volume), claim.spec?.resources?.requests?.storage ?? '0') < 0) return false
  if (!isSameMode(volume, claim) || !isSameAttributesClass(volume, claim)) return false
  return volume.metadata.deletionTimestamp === undefined
}

export function isSameMode(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): boolean {
  return (volume.spec?.volumeMode ?? 'Filesystem') === (claim.spec?.volumeMode ?? 'Filesystem')
}

export function isSameAttributesClass(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): boolean {
  return (volume.spec?.volumeAttributesClassName ?? '') === (claim.spec?.volumeAttributesClassName ?? '')
}

function isFreeFor(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): boolean {
  if (volume.status?.phase !== 'Available' || storageClassOf(volume) !== storageClassOf(claim)) return false
  return !claim.spec?.selector || selectorOf(claim.spec.selector).matches(volume.metadata.labels)
}

/** Every mode of the claim is one of the volume's. */
export function hasModes(volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>): boolean {
  return (claim.spec?.accessModes ?? []).every((mode) => volume.spec?.accessModes?.includes(mode))
}

function capacity({ spec }: Frozen<PersistentVolume>): string {
  return spec?.capacity?.storage ?? '0'
}
