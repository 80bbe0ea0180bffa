/**
 * Memory that is protected and memory that is slowed down, on cgroup v2 (L3, pure). Off unless feature gate MemoryQoS is on.
 * Upstream: kuberuntime_container_linux.go generateLinuxContainerConfig, KEP 2570 (v1.36).
 */

import type { CgroupLimits } from '#host/cgroups'

export interface MemoryQosOptions {
  readonly throttlingFactor: number
  /** 'None' or 'TieredReservation'. */
  readonly reservationPolicy: string
  readonly allocatableBytes: number
}

const pageBytes = 4096

/** The files of a container's group and what is written to them. Guaranteed containers are never slowed down. */
export function memoryQos(qosClass: string, requestBytes: number, limitBytes: number, options: MemoryQosOptions): Record<string, string> {
  const unified: Record<string, string> = protects(options, requestBytes)
    ? { [qosClass === 'Guaranteed' ? 'memory.min' : 'memory.low']: String(requestBytes) }
    : { 'memory.min': '0', 'memory.low': '0' }
  if (requestBytes === limitBytes) return unified
  const ceiling = limitBytes > 0 ? limitBytes : options.allocatableBytes
  const high = Math.floor((requestBytes + (ceiling - requestBytes) * options.throttlingFactor) / pageBytes) * pageBytes
  if (high > requestBytes) unified['memory.high'] = String(high)
  return unified
}

/** The protection of a pod's own group: its parent must cover what its containers are protected in. */
export function podMemoryProtection(
  qosClass: string,
  requestBytes: number,
  options: Pick<MemoryQosOptions, 'reservationPolicy'>,
): Pick<CgroupLimits, 'memoryMinBytes' | 'memoryLowBytes'> {
  if (!protects(options, requestBytes)) return {}
  return qosClass === 'Guaranteed' ? { memoryMinBytes: requestBytes } : { memoryLowBytes: requestBytes }
}

/** The protection of the groups of QoS classes. Kubepods, the group of Guaranteed pods, is the parent of the Burstable group and covers it too. */
export function classMemoryProtection(
  requests: { readonly guaranteed: number; readonly burstable: number },
  options: Pick<MemoryQosOptions, 'reservationPolicy'>,
) {
  const isOn = protects(options, 1)
  return {
    guaranteed: { memoryMinBytes: isOn ? requests.guaranteed + requests.burstable : 0 },
    burstable: { memoryLowBytes: isOn ? requests.burstable : 0 },
  }
}

function protects({ reservationPolicy }: Pick<MemoryQosOptions, 'reservationPolicy'>, requestBytes: number): boolean {
  return reservationPolicy === 'TieredReservation' && requestBytes > 0
}
