/**
 * How much slower this machine computes now than the one on which the bounds of turns were set: they bound the work of a turn, and the same work
 * takes three times as long on a machine that is shared by many.
 */
import { threadMs } from '../../../src/testing/threadTime.ts'

/** Processor time of all rounds where the bounds were set. */
const referenceMs = 120
const rounds = 16
const objects = 4_000

/** Reads, copies, sorts and writes small objects, as long turns do. */
function fixedWork(): number {
  const texts = Array.from({ length: objects }, (_, at) => JSON.stringify({ metadata: { name: `object-${(at * 7919) % objects}`, labels: { at: `${at}` } } }))
  const parsed = texts.map((text) => JSON.parse(text) as { metadata: { name: string; labels: Record<string, string> } })
  parsed.sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  const byName = new Map(parsed.map((object) => [object.metadata.name, { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels } } }]))
  return JSON.stringify([...byName.values()]).length
}

/** Many rounds in one measurement, since the kernel counts a thread's time by ticks of four milliseconds. @returns at least 1 */
export function machineSlowness(): number {
  fixedWork()
  const begun = threadMs()
  for (let round = 0; round < rounds; round++) fixedWork()
  return Math.max(1, (threadMs() - begun) / referenceMs)
}
