/**
 * Claims bound to volumes on the node itself (L3): hostPath and local. Other sources are refused with their name.
 * Upstream: kubelet/volumemanager, pkg/volume/{hostpath,local} (v1.36).
 */
import { stat } from 'node:fs/promises'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { checkHostPath } from './hostPath.ts'
import type { FrozenVolume, VolumePlugin } from './volumePlugin.ts'

/** A generic ephemeral volume's claim is named after the pod and the volume. */
export function claimName(podName: string, volume: FrozenVolume): string {
  return volume.persistentVolumeClaim?.claimName ?? `${podName}-${volume.name}`
}

export const persistentVolume: VolumePlugin = {
  name: 'kubernetes.io/local-volume',
  refreshes: false,
  supports: (volume) => volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined,
  setUp: async ({ context, host }, { pod, volume }) => {
    const name = claimName(pod.metadata.name ?? '', volume)
    const claim = await context.client.of(persistentVolumeClaims).get({ namespace: pod.metadata.namespace, name })
    if (volume.ephemeral && !claim.metadata.ownerReferences?.some((owner) => owner.uid === pod.metadata.uid)) {
      throw new Error(`PVC ${pod.metadata.namespace}/${name} was not created for pod ${pod.metadata.namespace}/${pod.metadata.name} (pod is not owner)`)
    }
    if (claim.status.phase !== 'Bound' || !claim.spec.volumeName) throw new Error(`PVC ${pod.metadata.namespace}/${name} is not bound`)
    const { spec } = await context.client.of(persistentVolumes).get({ name: claim.spec.volumeName })
    if (spec.volumeMode === 'Block') throw new Error(`volume ${claim.spec.volumeName}: block volumes are not supported`)
    if (spec.hostPath) {
      await checkHostPath(host.path(spec.hostPath.path), spec.hostPath.path, spec.hostPath.type ?? '')
      return spec.hostPath.path
    }
    if (spec.local) {
      if (!(await stat(host.path(spec.local.path)).catch(() => undefined))) throw new Error(`local volume path ${spec.local.path} does not exist`)
      return spec.local.path
    }
    throw new Error(`volume ${claim.spec.volumeName}: this kind of volume is not supported by this node`)
  },
}
