/** How Node runs the server of a local cluster (L5); the benchmarks measure whole clusters in processes that run the same way. */
import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'

/** What V8 takes at most by itself, whatever the host has. */
const usualHeapMiB = 4_096

/**
 * The larger nursery: under load a server's garbage is collected a third as often, for a third less time (creates, 50,000 of them). The larger heap: a hundred
 * thousand pods need more than V8 takes by itself, and the server would end. Three quarters of the memory leave room for what is outside of the heap.
 * @param memoryBytes what the host, or the control group of this process, has
 */
export function serverFlags(memoryBytes = Math.min(totalmem(), constrainedMemory() || Number.POSITIVE_INFINITY)): string[] {
  const heapMiB = Math.floor((memoryBytes * 3) / 4 / 2 ** 20)
  return ['--max-semi-space-size=32', ...(heapMiB > usualHeapMiB ? [`--max-old-space-size=${heapMiB}`] : [])]
}
