/**
 * Keeps pods apart that cannot share a disk, and a claim with ReadWriteOncePod to one pod (L3). Upstream: plugins/volumerestrictions (v1.36).
 */
import type { Pod, Volume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims } from '#client/builtIn'
import { actions, on } from '../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../framework/cycleState.ts'
import { definePlugin } from '../framework/plugin.ts'
import type { PodInfo } from '../framework/podInfo.ts'
import { reasons, unresolvable, unschedulable } from '../framework/status.ts'
import { volumesText } from './volumesText.ts'

/** The claims that no other pod may use, and how many uses of them there are. */
class OncePodClaims implements StateData {
  readonly #keys: ReadonlySet<string>
  uses: number

  constructor(keys: ReadonlySet<string>, uses: number) {
    this.#keys = keys
    this.uses = uses
  }

  clone(): OncePodClaims {
    return new OncePodClaims(this.#keys, this.uses)
  }

  count(pod: PodInfo, by: 1 | -1): void {
    for (const key of pod.pvcs) if (this.#keys.has(key)) this.uses += by
  }
}
const key = stateKey<OncePodClaims>('PreFilterVolumeRestrictions')

const diskConflict = unschedulable(reasons.diskConflict)
const oncePodConflict = unschedulable(reasons.readWriteOncePod)

export const volumeRestrictions = definePlugin('VolumeRestrictions', (_args, handle) => {
  const claims = handle.lister(persistentVolumeClaims)
  return {
    batchSign: volumesText,
    requeueOn: [
      on('AssignedPod', actions.Delete, (pod, { old }) => {
        if (!old || old.metadata.namespace !== pod.metadata.namespace) return false
        return conflict(pod, old) || pod.spec.volumes?.some((volume) => usesClaim(old, volume.persistentVolumeClaim?.claimName)) === true
      }),
      on('Node', actions.Add),
      on('PersistentVolumeClaim', actions.Add, (pod, { object }) => {
        return object?.metadata.namespace === pod.metadata.namespace && usesClaim(pod, object?.metadata.name)
      }),
    ],
    preFilter: (state, pod, snapshot) => {
      const { namespace } = pod.pod.metadata
      const oncePod = new Set<string>()
      for (const { persistentVolumeClaim } of pod.pod.spec.volumes ?? []) {
        if (!persistentVolumeClaim) continue
        const name = persistentVolumeClaim.claimName
        const claim = claims.get({ namespace, name })
        if (!claim) return unresolvable(reasons.claimNotFound(name))
        if (claim.spec?.accessModes?.includes('ReadWriteOncePod')) oncePod.add(`${namespace}/${name}`)
      }
      let uses = 0
      for (const claim of oncePod) if (snapshot.isPvcUsed(claim)) uses++
      if (uses === 0 && !pod.pod.spec.volumes?.some(isDisk)) return 'skip'
      state.write(key, new OncePodClaims(oncePod, uses))
      return undefined
    },
    addPod: (state, _pod, added) => void state.read(key)?.count(added, 1),
    removePod: (state, _pod, removed) => void state.read(key)?.count(removed, -1),
    filter: (state, { pod }, node) => {
      if (pod.spec.volumes?.some(isDisk)) for (const other of node.pods.values()) if (conflict(pod, other.pod)) return diskConflict
      return (state.read(key)?.uses ?? 0) > 0 ? oncePodConflict : undefined
    },
  }
})

function usesClaim({ spec }: Frozen<Pod>, name: string | undefined): boolean {
  return name !== undefined && spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === name) === true
}

/** Disks named in the pod itself that may not be attached twice. */
function isDisk({ gcePersistentDisk, awsElasticBlockStore, rbd, iscsi }: Frozen<Volume>): boolean {
  return Boolean(gcePersistentDisk ?? awsElasticBlockStore ?? rbd ?? iscsi)
}

function conflict(pod: Frozen<Pod>, other: Frozen<Pod>): boolean {
  return (
    pod.spec.volumes?.some((volume) => isDisk(volume) && other.spec.volumes?.some((theirs) => isDisk(theirs) && isSameDisk(volume, theirs)) === true) === true
  )
}

/** One disk twice; several readers may share most kinds. */
function isSameDisk(a: Frozen<Volume>, b: Frozen<Volume>): boolean {
  const [gce, gceToo] = [a.gcePersistentDisk, b.gcePersistentDisk]
  if (gce && gceToo && gce.pdName === gceToo.pdName && !(gce.readOnly && gceToo.readOnly)) return true
  const [ebs, ebsToo] = [a.awsElasticBlockStore, b.awsElasticBlockStore]
  if (ebs && ebsToo && ebs.volumeID === ebsToo.volumeID) return true
  const [iscsi, iscsiToo] = [a.iscsi, b.iscsi]
  if (iscsi && iscsiToo && iscsi.iqn === iscsiToo.iqn && !(iscsi.readOnly && iscsiToo.readOnly)) return true
  const [rbd, rbdToo] = [a.rbd, b.rbd]
  if (!rbd || !rbdToo || (rbd.readOnly && rbdToo.readOnly)) return false
  return rbd.pool === rbdToo.pool && rbd.image === rbdToo.image && rbd.monitors.some((monitor) => rbdToo.monitors.includes(monitor))
}
