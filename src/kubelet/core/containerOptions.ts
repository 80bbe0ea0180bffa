/**
 * What a container gets in addition to its spec (L3, pure): its CPUs and memory nodes, and the devices, mounts, variables and annotations of plugins.
 * Upstream: kubelet/cm/devicemanager/pod_devices.go deviceRunContainerOptions, kubelet/container RunContainerOptions (v1.36).
 */
import type { Device, Mount } from '#grpc/criTypes'
import type { ContainerAllocation } from '#grpc/devicePlugin'

export interface ContainerOptions {
  /** Undefined: as the runtime has it. */
  readonly cpusetCpus?: string | undefined
  readonly cpusetMems?: string | undefined
  readonly devices: readonly Device[]
  readonly mounts: readonly Mount[]
  readonly envs: readonly { readonly key: string; readonly value: string }[]
  readonly annotations: Readonly<Record<string, string>>
  /** `vendor.example/class=name`, for the runtime to resolve. */
  readonly cdiDevices: readonly string[]
}

export const noOptions: ContainerOptions = { devices: [], mounts: [], envs: [], annotations: {}, cdiDevices: [] }

/** If two plugins set the same variable, path or annotation, the first one wins. */
export function mergeAllocations(allocations: readonly ContainerAllocation[], cdiDevices: readonly string[]): ContainerOptions {
  const envs = new Map<string, string>()
  const devices = new Map<string, Device>()
  const mounts = new Map<string, Mount>()
  const annotations = new Map<string, string>()
  const names = new Set<string>(cdiDevices)
  const keep = <T>(map: Map<string, T>, key: string, value: T) => {
    if (!map.has(key)) map.set(key, value)
  }
  for (const allocation of allocations) {
    for (const [key, value] of Object.entries(allocation.envs)) keep(envs, key, value)
    for (const { containerPath, hostPath, permissions } of allocation.devices) keep(devices, containerPath, { containerPath, hostPath, permissions })
    for (const { containerPath, hostPath, readOnly } of allocation.mounts) keep(mounts, containerPath, { containerPath, hostPath, readonly: readOnly })
    for (const [key, value] of Object.entries(allocation.annotations)) keep(annotations, key, value)
    for (const { name } of allocation.cdiDevices) names.add(name)
  }
  return {
    devices: [...devices.values()],
    mounts: [...mounts.values()],
    envs: [...envs].map(([key, value]) => ({ key, value })),
    annotations: Object.fromEntries(annotations),
    cdiDevices: [...names],
  }
}
