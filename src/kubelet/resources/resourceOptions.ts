/** What limits depend on besides a pod (L3): the machine's page sizes, the kernel's cgroups, the node's gates. */
import type { ContainerResourceOptions } from '../core/cgroupResources.ts'
import type { KubeletContext } from '../core/context.ts'
import { hugepageBytes } from '../core/machineTopology.ts'
import { wholeUnits } from '../core/quantities.ts'
import { gateEnabled } from '../core/resourceConfig.ts'

type Context = Pick<KubeletContext, 'config' | 'machineInfo' | 'host' | 'allocatable'>

/** In bytes; none on machines without that information. */
export function hugepageSizes({ machineInfo }: Pick<Context, 'machineInfo'>): number[] {
  return machineInfo.topology ? [...hugepageBytes(machineInfo.topology).keys()] : []
}

/** For containerResources. */
export function containerResourceOptions(context: Context): ContainerResourceOptions {
  const { config, machineInfo, host, allocatable } = context
  const hasMemoryQos = host?.cgroups.version === 2 && gateEnabled(config, 'MemoryQoS')
  const { cpuCFSQuota, cpuCFSQuotaPeriodMs, memoryThrottlingFactor, memoryReservationPolicy } = config
  return {
    cpuCFSQuota,
    cpuCFSQuotaPeriodMs,
    memoryCapacityBytes: machineInfo.memoryBytes,
    hugepageSizes: hugepageSizes(context),
    ...(hasMemoryQos
      ? {
          memoryQos: { throttlingFactor: memoryThrottlingFactor, reservationPolicy: memoryReservationPolicy, allocatableBytes: wholeUnits(allocatable.memory) },
        }
      : {}),
  }
}
