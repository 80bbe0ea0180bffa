/**
 * Memory that is protected and memory that is slowed down, on cgroup v2 (L3, pure). Off unless feature gate MemoryQoS is on.
 * Upstream: kuberuntime_container_linux.go generateLinuxContainerConfig, KEP 2570 (v1.36).
 */

export interface MemoryQosOptions {
  readonly throttlingFactor: number
  /** 'None' or 'TieredReservation'. */
  readonly reservationPolicy: string
  readonly allocatableBytes: number
}

const pageBytes = 4096

/** The files of a container's group and what is written to them. Guaranteed containers are never slowed down. */
export function memoryQos(qosClass: string, requestBytes: number, limitBytes: number, options: MemoryQosOptions): Record<string, string> {
  const unified: Record<string, string> = {}
  if (options.reservationPolicy === 'TieredReservation' && requestBytes > 0) {
    unified[qosClass === 'Guaranteed' ? 'memory.min' : 'memory.low'] = String(requestBytes)
  }
  if (requestBytes === limitBytes) return unified
  const ceiling = limitBytes > 0 ? limitBytes : options.allocatableBytes
  const high = Math.floor((requestBytes + (ceiling - requestBytes) * options.throttlingFactor) / pageBytes) * pageBytes
  if (high > requestBytes) unified['memory.high'] = String(high)
  return unified
}
