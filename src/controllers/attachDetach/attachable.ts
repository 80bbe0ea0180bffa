/**
 * The volumes that pods need on their node, and their unique names (L3, pure): volumes of CSI drivers that attach, and PersistentVolumes of iSCSI and Fibre
 * Channel. For the latter nothing is attached outside of the node: the status of the node is the only record, which keeps a volume from a second node.
 * Upstream does the same for such volumes in the pod itself. Here they are left out: a pod may have thousands, and they would all be in the Node's status.
 * Upstream: pkg/controller/volume/attachdetach/util, pkg/volume/csi/csi_attacher.go getAttachmentName, csi_plugin.go CanAttach, pkg/volume/iscsi/iscsi.go
 * and pkg/volume/fc/fc.go GetVolumeName (v1.36).
 */
import { createHash } from 'node:crypto'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { claimNameOf } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'

type Volume = Frozen<PersistentVolume>

/** A volume that is wanted on a node. */
export interface Wanted {
  readonly volume: Volume
  readonly pods: readonly Frozen<Pod>[]
}

/** What the caches know. */
export interface VolumeView {
  claim(namespace: string | undefined, name: string): Frozen<PersistentVolumeClaim> | undefined
  volume(name: string): Volume | undefined
  /** False only where the CSIDriver object sets attachRequired to false. */
  attaches(driver: string): boolean
}

const prefix = 'kubernetes.io/csi/'

/** The volume's name in a node's status. */
export function uniqueName(driver: string, handle: string): string {
  return `${prefix}${driver}^${handle}`
}

/** Driver and handle of a name in a node's status; undefined: not a CSI volume's. */
export function partsOf(name: string): { readonly driver: string; readonly handle: string } | undefined {
  const [driver, handle, ...more] = name.startsWith(prefix) ? name.slice(prefix.length).split('^') : []
  return driver && handle && more.length === 0 ? { driver, handle } : undefined
}

const inTreePlugins = ['kubernetes.io/iscsi', 'kubernetes.io/fc']
/** Nothing bounds the lists of a Fibre Channel volume: a longer name is not put into the status of nodes. */
const maxNameLength = 1_024

/** The plugin that a name in a node's status stands for, of those that attach nothing outside of the node. */
export function inTreePluginOf(name: string): string | undefined {
  return inTreePlugins.find((plugin) => name.startsWith(`${plugin}/`))
}

/** The volumes in a node's status for which there are no VolumeAttachments. */
export function inTreeVolumes({ status }: Frozen<Node>): string[] {
  return (status?.volumesAttached ?? []).map(({ name }) => name).filter((name) => inTreePluginOf(name) !== undefined)
}

/** Undefined: the volume is of another type. */
function inTreeName({ spec: { iscsi, fc } }: Volume): string | undefined {
  if (iscsi) return `kubernetes.io/iscsi/${iscsi.targetPortal}:${iscsi.iqn}:${iscsi.lun}`
  // Lists as Go prints them.
  if (fc?.targetWWNs?.length && fc.lun !== undefined) return `kubernetes.io/fc/[${fc.targetWWNs.join(' ')}]:${fc.lun}`
  return fc?.wwids?.length ? `kubernetes.io/fc/[${fc.wwids.join(' ')}]` : undefined
}

/** The name of a volume that is to be attached; undefined: nothing is. */
function attachableName(volume: Volume, view: VolumeView): string | undefined {
  const { csi } = volume.spec
  if (csi) return view.attaches(csi.driver) ? uniqueName(csi.driver, csi.volumeHandle) : undefined
  const name = inTreeName(volume)
  return name !== undefined && name.length <= maxNameLength ? name : undefined
}

/** The VolumeAttachment for a volume on a node: the name depends on nothing else. */
export function attachmentName(driver: string, handle: string, nodeName: string): string {
  return `csi-${createHash('sha256').update(`${handle}${driver}${nodeName}`).digest('hex')}`
}

/** The volumes that the pods of one node need attached, by unique name. */
export function wantedVolumes(pods: readonly Frozen<Pod>[], view: VolumeView): Map<string, Wanted> {
  const wanted = new Map<string, { readonly volume: Volume; readonly pods: Frozen<Pod>[] }>()
  for (const pod of pods) {
    if (isOver(pod)) continue
    for (const volume of volumesOf(pod, view)) {
      const name = attachableName(volume, view)
      if (name === undefined) continue
      const there = wanted.get(name) ?? { volume, pods: [] }
      there.pods.push(pod)
      wanted.set(name, there)
    }
  }
  return wanted
}

function volumesOf(pod: Frozen<Pod>, view: VolumeView): Volume[] {
  return (pod.spec.volumes ?? []).flatMap((one) => {
    const name = claimNameOf(pod, one)
    const claim = name === undefined ? undefined : view.claim(pod.metadata.namespace, name)
    if (!claim?.spec.volumeName || claim.status.phase !== 'Bound') return []
    const volume = view.volume(claim.spec.volumeName)
    // A volume without a claimRef, or with another, is not bound to the claim yet.
    return volume && volume.spec.claimRef?.uid === claim.metadata.uid ? [volume] : []
  })
}

/** The pod has ended, or is being deleted and runs no container any more. */
function isOver(pod: Frozen<Pod>): boolean {
  if (isPodTerminal(pod)) return true
  return pod.metadata.deletionTimestamp !== undefined && (pod.status?.containerStatuses ?? []).every(({ state }) => state?.terminated || state?.waiting)
}

/** Whether several nodes may have it at once. */
export function mayBeShared({ spec }: Volume): boolean {
  const modes = spec.accessModes ?? []
  return modes.length === 0 || modes.includes('ReadWriteMany') || modes.includes('ReadOnlyMany')
}
