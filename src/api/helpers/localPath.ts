/**
 * The protocol between the controller that provisions volumes in directories of nodes and the kubelets that create and remove those directories (L1, pure).
 * The controller asks for a removal by an annotation on the Node; the kubelet takes the annotation off once the directory is gone, so that a kubelet needs no
 * rights on PersistentVolumes. Upstream has no such provisioner; the model is rancher's local-path-provisioner.
 */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { volumeAnnotations } from './volumes.ts'

/** The provisioner's name in StorageClasses and in `pv.kubernetes.io/provisioned-by`. */
export const localPathProvisioner = 'skiff.dev/local-path'

/** Keeps a PersistentVolume until its directory is removed. */
export const localPathFinalizer = 'skiff.dev/local-path'

/** On a PersistentVolume: the Node that holds its directory. */
export const localPathNode = 'skiff.dev/local-path-node'

/** Below the kubelet's root directory, which survives restarts of pods, kubelet and node. */
export const localPathDirectory = 'local-path'

/** The directory of all such volumes on a node whose kubelet has the default root directory. */
const localPathRoot = `/var/lib/kubelet/${localPathDirectory}`

const removalPrefix = 'local-path.skiff.dev/'
const removalValue = 'delete'

/** Removals that a Node may be annotated with at a time: annotations share one limit of the object's size. */
export const maxRemovals = 100

/** Names of volumes that the provisioner makes. As the end of an annotation's key they have at most 63 characters. */
const volumeName = /^pvc-[0-9a-z-]{1,59}$/

/** Whether the provisioner makes volumes with such names. */
export function isLocalPathName(name: string): boolean {
  return volumeName.test(name)
}

export function localPathOf(volume: string): string {
  return `${localPathRoot}/${volume}`
}

export function isLocalPathVolume({ metadata }: Frozen<PersistentVolume>): boolean {
  return ownValue(metadata.annotations, volumeAnnotations.provisionedBy) === localPathProvisioner && isLocalPathName(metadata.name ?? '')
}

export function removalAnnotation(volume: string): string {
  return `${removalPrefix}${volume}`
}

/** Changes of a Node's annotations, for a merge patch. */
export function removalChanges(requested: Iterable<string>, withdrawn: Iterable<string>): Record<string, string | null> {
  const entries = [...requested].map((name) => [removalAnnotation(name), removalValue] as const)
  return Object.fromEntries([...entries, ...[...withdrawn].map((name) => [removalAnnotation(name), null] as const)])
}

/** Volumes whose directories the Node is asked to remove. */
export function requestedRemovals({ metadata }: Frozen<Node>): string[] {
  const { annotations = {} } = metadata
  return Object.keys(annotations).flatMap((key) => {
    if (!key.startsWith(removalPrefix) || annotations[key] !== removalValue) return []
    const name = key.slice(removalPrefix.length)
    return isLocalPathName(name) ? [name] : []
  })
}
