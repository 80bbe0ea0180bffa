/** Usage in the form of the API (L3, pure): quantities, times and windows. Computed once per sample, however often it is read. */
import { formatDuration } from '#api/machinery/duration'
import { formatQuantity, quantityOf } from '#api/machinery/quantity'
import { formatTime } from '#base/time'
import type { NodeMetrics, PodMetrics, ResourceUsage } from './kinds.ts'
import type { PodUsage, Usage } from './samples.ts'

export type NodeReading = Pick<NodeMetrics, 'timestamp' | 'window' | 'usage'>
export type PodReading = Pick<PodMetrics, 'timestamp' | 'window' | 'containers'>

export function nodeReading(usage: Usage): NodeReading {
  return { ...measured(usage), usage: resourceUsage(usage) }
}

export function podReading({ containers, earliest }: PodUsage): PodReading {
  return { ...measured(earliest), containers: containers.map(({ name, usage }) => ({ name, usage: resourceUsage(usage) })) }
}

function measured(usage: Usage | undefined) {
  return { timestamp: usage ? formatTime(usage.atMs) : null, window: formatDuration(usage?.windowMs ?? 0) }
}

function resourceUsage({ nanoCores, memoryBytes }: Usage): ResourceUsage {
  return { cpu: formatQuantity({ units: nanoCores, scale: -9, format: 'DecimalSI' }), memory: formatQuantity(quantityOf(memoryBytes, 'BinarySI')) }
}
