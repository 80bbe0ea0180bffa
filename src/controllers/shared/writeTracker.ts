/**
 * Knows whether a cache has caught up with one's own writes (L3): acting on an older view would create twice.
 * Upstream: k8s.io/endpointslice/util/endpointslice_tracker.go (v1.36); resourceVersions of one resource can be compared as numbers.
 */
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'

export interface WriteTracker {
  wrote(group: string, object: Frozen<KubeObject>): void
  removed(group: string, object: Frozen<KubeObject>): void
  /** Call from the informer's onDelete: a deleted object will not be seen again. */
  sawDelete(object: Frozen<KubeObject>): void
  /** True when the cache shows everything written for the group. */
  isCurrent(group: string, get: (key: string) => Frozen<KubeObject> | undefined): boolean
  forget(group: string): void
}

interface Write {
  readonly key: string
  readonly uid: string
  /** Undefined: the object was removed. */
  readonly resourceVersion: number | undefined
}

export function createWriteTracker(): WriteTracker {
  const groups = new Map<string, Map<string, Write>>()
  const note = (group: string, { metadata }: Frozen<KubeObject>, resourceVersion: number | undefined) => {
    const writes = groups.get(group) ?? new Map<string, Write>()
    groups.set(group, writes)
    const uid = metadata.uid ?? ''
    writes.set(uid, { key: keyOf({ metadata }), uid, resourceVersion })
  }
  const isSeen = ({ uid, resourceVersion }: Write, now: Frozen<KubeObject> | undefined) =>
    resourceVersion === undefined ? now?.metadata.uid !== uid : now?.metadata.uid === uid && Number(now.metadata.resourceVersion) >= resourceVersion
  return {
    wrote: (group, object) => note(group, object, Number(object.metadata.resourceVersion)),
    removed: (group, object) => note(group, object, undefined),
    sawDelete: ({ metadata }) => {
      for (const writes of groups.values()) writes.delete(metadata.uid ?? '')
    },
    isCurrent: (group, get) => {
      const writes = groups.get(group)
      if (!writes) return true
      for (const write of writes.values()) {
        if (!isSeen(write, get(write.key))) return false
        writes.delete(write.uid)
      }
      groups.delete(group)
      return true
    },
    forget: (group) => void groups.delete(group),
  }
}
