/**
 * Checks a pod's storage against its limits (L3, pure): an emptyDir beyond its limit, the pod or a container beyond its ephemeral storage.
 * Upstream: kubelet/eviction/eviction_manager.go localStorageEviction (v1.36).
 */
import { podLimits } from '#api/helpers/podResources'
import { canonicalQuantity, formatQuantity, quantityOf } from '#api/machinery/quantity'
import type { FrozenPod } from '../core/containers.ts'
import { quantity } from '../core/quantities.ts'
import { diskOf, type PodUsage } from './podUsage.ts'

export interface StorageExcess {
  /** What kubelet_evictions counts it under. */
  readonly signal: 'emptydirfs.limit' | 'ephemeralpodfs.limit' | 'ephemeralcontainerfs.limit'
  readonly message: string
}

const storage = 'ephemeral-storage'

/** Whether the pod's disk usage must be measured: a pod without a limit cannot exceed one. */
export function limitsStorage(pod: FrozenPod): boolean {
  const volumes = (pod.spec.volumes ?? []).some((volume) => volume.emptyDir?.sizeLimit !== undefined && volume.emptyDir.medium !== 'Memory')
  return volumes || pod.spec.containers.some((container) => container.resources?.limits?.[storage] !== undefined) || podLimits(pod)[storage] !== undefined
}

/** @param dedicatedImageFs then what containers write is not on the node's own file system, and not counted against their limit */
export function storageExcess(pod: FrozenPod, usage: PodUsage, dedicatedImageFs: boolean): StorageExcess | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const limit = volume.emptyDir?.sizeLimit
    const used = usage.volumes.get(volume.name)?.bytes
    if (limit === undefined || used === undefined || quantity(limit) <= 0 || used <= quantity(limit)) continue
    return { signal: 'emptydirfs.limit', message: `Usage of EmptyDir volume "${volume.name}" exceeds the limit "${canonicalQuantity(limit)}". ` }
  }
  const podLimit = podLimits(pod)[storage]
  if (podLimit !== undefined && diskOf(usage, 'bytes') > podLimit) {
    const limit = podLimitText(pod, podLimit)
    return { signal: 'ephemeralpodfs.limit', message: `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. ` }
  }
  for (const { name, logs, rootfs } of usage.containers) {
    const limit = pod.spec.containers.find((container) => container.name === name)?.resources?.limits?.[storage]
    const used = logs.bytes + (dedicatedImageFs ? 0 : rootfs.bytes)
    if (limit === undefined || quantity(limit) === 0 || used <= quantity(limit)) continue
    return { signal: 'ephemeralcontainerfs.limit', message: `Container ${name} exceeded its local ephemeral storage limit "${canonicalQuantity(limit)}". ` }
  }
  return undefined
}

/** A sum keeps the units of what it was summed up from. */
function podLimitText(pod: FrozenPod, bytes: number): string {
  const first = pod.spec.containers.map((container) => container.resources?.limits?.[storage]).find((limit) => limit !== undefined)
  return formatQuantity(quantityOf(bytes, first === undefined || /i$/.test(first) ? 'BinarySI' : 'DecimalSI'))
}
