/**
 * Resolves a pod's volume to what is mounted (L3): the volume itself, or the PersistentVolume of its claim.
 * Upstream: kubelet/volumemanager/populator (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { claimNameOf, otherPodsClaim, volumeReaches } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import { nodes, persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import type { Client } from '#client/client'
import type { FrozenPod } from '../core/containers.ts'
import type { FrozenVolume, VolumeSpec } from './volumePlugin.ts'

const groupAnnotation = 'pv.beta.kubernetes.io/gid'

/** How the pod's containers use its volumes: names of those they mount, and of those they get as devices. */
export interface VolumeUse {
  readonly mounts: ReadonlySet<string>
  readonly devices: ReadonlySet<string>
}

export function volumeUse(pod: FrozenPod): VolumeUse {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers ?? [])]
  return {
    mounts: new Set(containers.flatMap(({ volumeMounts }) => (volumeMounts ?? []).map(({ name }) => name))),
    devices: new Set(containers.flatMap(({ volumeDevices }) => (volumeDevices ?? []).map(({ name }) => name))),
  }
}

/** @throws Error with upstream's text when the claim cannot be used (yet). */
export async function resolveVolume(client: Client, pod: FrozenPod, volume: FrozenVolume, use: VolumeUse): Promise<VolumeSpec> {
  const claimName = claimNameOf(pod, volume)
  if (claimName === undefined) return { name: volume.name, volume, readOnly: volume.csi?.readOnly ?? false }
  const { namespace = '' } = pod.metadata
  let claim: Frozen<PersistentVolumeClaim>
  let persistentVolume: Frozen<PersistentVolume>
  try {
    claim = await boundClaim(client, namespace, claimName)
    const foreign = volume.ephemeral && otherPodsClaim(pod, claim)
    if (foreign) throw new Error(foreign)
    persistentVolume = await volumeOf(client, claim)
  } catch (error) {
    throw new Error(`error processing PVC ${namespace}/${claimName}: ${messageOf(error)}`, { cause: error })
  }
  const mode = persistentVolume.spec.volumeMode ?? 'Filesystem'
  const mismatch = (where: string) => new Error(`volume ${volume.name} has volumeMode ${mode}, but is specified in ${where}`)
  if (use.mounts.has(volume.name) && mode !== 'Filesystem') throw mismatch('volumeMounts')
  if (use.devices.has(volume.name) && mode !== 'Block') throw mismatch('volumeDevices')
  return { name: persistentVolume.metadata.name ?? '', persistentVolume, claim, readOnly: volume.persistentVolumeClaim?.readOnly ?? false }
}

async function boundClaim(client: Client, namespace: string, name: string): Promise<Frozen<PersistentVolumeClaim>> {
  const claim = await client
    .of(persistentVolumeClaims)
    .get({ namespace, name })
    .catch((error: unknown) => {
      throw new Error(`failed to fetch PVC from API server: ${messageOf(error)}`, { cause: error })
    })
  // A claim that is being deleted is refused for a new pod: otherwise the deletion would wait for that pod.
  if (claim.metadata.deletionTimestamp) throw new Error('PVC is being deleted')
  if (claim.status?.phase !== 'Bound') throw new Error('PVC is not bound')
  if (!claim.spec.volumeName) throw new Error('PVC has empty pvc.Spec.VolumeName')
  return claim
}

async function volumeOf(client: Client, claim: Frozen<PersistentVolumeClaim>): Promise<Frozen<PersistentVolume>> {
  const name = claim.spec.volumeName ?? ''
  const volume = await client
    .of(persistentVolumes)
    .get({ name })
    .catch((error: unknown) => {
      throw new Error(`failed to fetch PV ${name} from API server: ${messageOf(error)}`, { cause: error })
    })
  const { claimRef } = volume.spec
  if (!claimRef) throw new Error(`found PV object ${name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`)
  if (claimRef.uid !== claim.metadata.uid) {
    throw new Error(`found PV object ${name} but its pv.Spec.ClaimRef.UID ${claimRef.uid} does not point to claim.UID ${claim.metadata.uid}`)
  }
  return volume
}

/** Checks that this node can reach the volume. @throws Error with upstream's text. */
export async function checkNodeAffinity(client: Client, nodeName: string, volume: Frozen<PersistentVolume>): Promise<void> {
  if (!volume.spec.nodeAffinity?.required) return
  const node: Frozen<Node> = await client.of(nodes).get({ name: nodeName }, { resourceVersion: '0' })
  if (!volumeReaches(volume, node)) throw new Error('no matching NodeSelectorTerms')
}

/** The group that the volume's annotation names, unless the pod has it anyway. */
export function extraGroup(volume: Frozen<PersistentVolume> | undefined): number | undefined {
  const text = volume?.metadata.annotations?.[groupAnnotation]
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}
