/** What limits depend on besides a pod (L3): the machine's page sizes, the kernel's cgroups, the node's gates. */
import type { ContainerResourceOptions, PodCgroupOptions } from '../core/cgroupResources.ts'
import type { KubeletContext } from '../core/context.ts'
import { hugepageBytes } from '../core/machineTopology.ts'
import type { MemoryQosOptions } from '../core/memoryQos.ts'
import { wholeUnits } from '../core/quantities.ts'
import { gateEnabled } from '../core/resourceConfig.ts'

type Context = Pick<KubeletContext, 'config' | 'machineInfo' | 'host' | 'allocatable'>

/** In bytes; none on machines without that information. */
export function hugepageSizes({ machineInfo }: Pick<Context, 'machineInfo'>): number[] {
  return machineInfo.topology ? [...hugepageBytes(machineInfo.topology).keys()] : []
}

/** For containerResources. */
export function containerResourceOptions(context: Context): ContainerResourceOptions {
  const { config, machineInfo, host } = context
  const { cpuCFSQuota, cpuCFSQuotaPeriodMs, swapBehavior } = config
  const { memoryBytes, swapBytes = 0 } = machineInfo
  const cgroupVersion = host?.cgroups.version
  return {
    cpuCFSQuota,
    cpuCFSQuotaPeriodMs,
    memoryCapacityBytes: memoryBytes,
    hugepageSizes: hugepageSizes(context),
    endsWholeContainer: cgroupVersion === 2 && config.singleProcessOOMKill !== true,
    memoryQos: memoryQosOptions(context),
    swap: cgroupVersion && host.cgroups.hasSwapLimits ? { cgroupVersion, swapBehavior, memoryBytes, swapBytes } : undefined,
  }
}

/** For podCgroupLimits. */
export function podCgroupOptions(context: Context): PodCgroupOptions {
  return { ...context.config, hugepageSizes: hugepageSizes(context), memoryQos: memoryQosOptions(context) }
}

/** Undefined where memory is not protected. */
export function memoryQosOptions({ config, host, allocatable }: Omit<Context, 'machineInfo'>): MemoryQosOptions | undefined {
  if (host?.cgroups.version !== 2 || !gateEnabled(config, 'MemoryQoS')) return undefined
  const { memoryThrottlingFactor: throttlingFactor, memoryReservationPolicy: reservationPolicy } = config
  return { throttlingFactor, reservationPolicy, allocatableBytes: wholeUnits(allocatable.memory) }
}
