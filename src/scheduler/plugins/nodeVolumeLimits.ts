/**
 * Keeps a node from getting more volumes of a CSI driver than the driver can attach there (L3): those of the pods there, those still attached, and
 * those that would be made. Upstream: plugins/nodevolumelimits/csi.go (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { CSINode, VolumeAttachment } from '#api/gen/types/storage.v1'
import { claimNameOf, storageClassOf } from '#api/helpers/volumes'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { csiNodes, persistentVolumeClaims, persistentVolumes, storageClasses, volumeAttachments } from '#client/builtIn'
import type { Lister } from '#client/cache/lister'
import { actions, on } from '../framework/clusterEvent.ts'
import type { Handle } from '../framework/handle.ts'
import { definePlugin } from '../framework/plugin.ts'
import { reasons, unresolvable, unschedulable } from '../framework/status.ts'
import { volumesText } from './volumesText.ts'

const refused = unschedulable(reasons.maxVolumeCount)

/** Each volume once, `driver/handle`, with its driver. */
type Volumes = Map<string, string>

export const nodeVolumeLimits = definePlugin('NodeVolumeLimits', (_args, handle) => {
  const claims = handle.lister(persistentVolumeClaims)
  const volumes = handle.lister(persistentVolumes)
  const classes = handle.lister(storageClasses)
  const drivers = handle.lister(csiNodes)
  const attached = attachmentsByNode(handle)

  const add = (found: Volumes, volume: Frozen<PersistentVolume> | undefined): boolean => {
    const csi = volume?.spec.csi
    if (csi) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver)
    return volume !== undefined
  }
  /** A volume that does not exist yet will be made by the class's driver; its handle is not known, so the claim stands in. */
  const addOf = (found: Volumes, claim: Frozen<PersistentVolumeClaim>) => {
    if (claim.spec.volumeName && add(found, volumes.get({ name: claim.spec.volumeName }))) return
    const provisioner = classes.get({ name: storageClassOf(claim) })?.provisioner
    if (provisioner) found.set(`${provisioner}/claim ${keyOf(claim)}`, provisioner)
  }
  return {
    batchSign: volumesText,
    requeueOn: [
      on('CSINode', actions.Add),
      on('CSINode', actions.Update, (_pod, { old, object }) => !old || !object || moreOf(old, object)),
      on('AssignedPod', actions.Delete, (_pod, { old }) => old?.spec.volumes?.some((volume) => claimNameOf(old, volume) !== undefined) === true),
      on('PersistentVolumeClaim', actions.Add, (pod, { object }) => {
        if (object?.metadata.namespace !== pod.metadata.namespace) return false
        return pod.spec.volumes?.some((volume) => claimNameOf(pod, volume) === object?.metadata.name) === true
      }),
      on('VolumeAttachment', actions.Delete, ({ metadata, spec }, { old }) => {
        const name = old?.spec.source.persistentVolumeName
        const volumeOf = (claimName: string) => claims.get({ namespace: metadata.namespace, name: claimName })?.spec.volumeName
        return spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim && volumeOf(persistentVolumeClaim.claimName) === name) === true
      }),
    ],
    preFilter: (_state, { pvcs }) => (pvcs.length === 0 ? 'skip' : undefined),
    filter: (_state, { pvcs }, node) => {
      const limits = limitsOf(drivers, node.name)
      const wanted: Volumes = new Map()
      for (const key of pvcs) {
        const claim = claims.get(refOfKey(key))
        if (!claim) return unresolvable(`looking up PVC ${key}: ${reasons.claimNotFound(refOfKey(key).name)}`)
        if (limits.size > 0) addOf(wanted, claim)
      }
      if (wanted.size === 0) return undefined
      const there: Volumes = new Map()
      for (const key of node.pvcRefCounts.keys()) {
        const claim = claims.get(refOfKey(key))
        if (claim) addOf(there, claim)
      }
      for (const { spec } of attached(node.name)) if (spec.source.persistentVolumeName) add(there, volumes.get({ name: spec.source.persistentVolumeName }))
      for (const key of there.keys()) wanted.delete(key)
      const count = (of: Volumes, driver: string) => [...of.values()].filter((other) => other === driver).length
      for (const driver of new Set(wanted.values())) {
        const limit = limits.get(driver)
        if (limit !== undefined && count(there, driver) + count(wanted, driver) > limit) return refused
      }
      return undefined
    },
  }
})

function limitsOf(drivers: Lister<CSINode>, name: string): ReadonlyMap<string, number> {
  const limits = new Map<string, number>()
  for (const { name: driver, allocatable } of drivers.get({ name })?.spec.drivers ?? [])
    if (allocatable?.count !== undefined) limits.set(driver, allocatable.count)
  return limits
}

/** Whether some driver can attach more than before. */
function moreOf(old: Frozen<CSINode>, node: Frozen<CSINode>): boolean {
  const before = new Map(old.spec.drivers.map(({ name, allocatable }) => [name, allocatable?.count]))
  return node.spec.drivers.some(({ name, allocatable }) => (allocatable?.count ?? 0) > (before.get(name) ?? 0))
}

/** Indexed by node, because the filter needs them for each node. */
function attachmentsByNode(handle: Handle): (nodeName: string) => Iterable<Frozen<VolumeAttachment>> {
  const byNode = new Map<string, Map<string, Frozen<VolumeAttachment>>>()
  const set = (attachment: Frozen<VolumeAttachment>) => {
    const of = byNode.get(attachment.spec.nodeName) ?? new Map<string, Frozen<VolumeAttachment>>()
    byNode.set(attachment.spec.nodeName, of.set(keyOf(attachment), attachment))
  }
  handle.watch(volumeAttachments, {
    onAdd: set,
    onUpdate: (_old, attachment) => set(attachment),
    onDelete: (attachment) => {
      const of = byNode.get(attachment.spec.nodeName)
      of?.delete(keyOf(attachment))
      if (of?.size === 0) byNode.delete(attachment.spec.nodeName)
    },
  })
  return (nodeName) => byNode.get(nodeName)?.values() ?? []
}
