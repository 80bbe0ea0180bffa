/**
 * Which PersistentVolumes of one node are to go, and what that takes (L3, pure). A volume goes after the node has removed its directory: the Node is annotated,
 * and a missing annotation that was there before means that the directory is gone.
 */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import { isLocalPathVolume, localPathFinalizer, localPathNode, maxRemovals, requestedRemovals } from '#api/helpers/localPath'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'

type Volume = Frozen<PersistentVolume>

/** remove: the directory first, then the object; release: the object alone; undefined: the volume stays. */
export type Fate = 'remove' | 'release' | undefined

export function fateOf(volume: Volume): Fate {
  if (!isLocalPathVolume(volume)) return undefined
  const { metadata, spec, status } = volume
  const isDeleted = metadata.deletionTimestamp !== undefined
  // Without the finalizer nothing waits for the directory.
  if (isDeleted && !metadata.finalizers?.includes(localPathFinalizer)) return undefined
  if (status?.phase === 'Bound') return undefined
  if (spec?.persistentVolumeReclaimPolicy !== 'Delete') return isDeleted ? 'release' : undefined
  return isDeleted || status?.phase === 'Released' ? 'remove' : undefined
}

/** The Node that holds the volume's directory: by the provisioner's annotation, or by the host name that the volume is bound to. '': unknown. */
export function nodeNameOf({ metadata, spec }: Volume): string {
  const hostname = spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.find(({ key }) => key === 'kubernetes.io/hostname')
  return ownValue(metadata.annotations, localPathNode) ?? hostname?.values?.[0] ?? ''
}

/** The volumes whose removal this controller has seen requested, by name, with the uid of the Node that was asked. */
export type Asked = ReadonlyMap<string, string>

export interface RemovalPlan {
  /** Volumes that can be deleted: their directories are gone, or stay. */
  readonly finished: readonly Volume[]
  /** Volumes whose directories the Node is to be asked to remove now. */
  readonly ask: readonly string[]
  /** Volumes whose removal is not wanted any more. */
  readonly withdraw: readonly string[]
  /** Volumes whose removal the Node is asked for already. */
  readonly waiting: readonly string[]
}

/**
 * @param going volumes of the node with a fate
 * @param stays whether a volume exists that shall not be removed
 */
export function planRemovals(node: Frozen<Node>, going: readonly Volume[], asked: Asked, stays: (name: string) => boolean): RemovalPlan {
  const requested = new Set(requestedRemovals(node))
  const finished: Volume[] = []
  const waiting: string[] = []
  const open: string[] = []
  for (const volume of going) {
    const { name = '' } = volume.metadata
    if (fateOf(volume) === 'release') finished.push(volume)
    else if (requested.has(name)) waiting.push(name)
    else if (asked.get(name) === node.metadata.uid) finished.push(volume)
    else open.push(name)
  }
  const withdraw = [...requested].filter(stays)
  return { finished, waiting, withdraw, ask: open.slice(0, Math.max(0, maxRemovals - requested.size + withdraw.length)) }
}
