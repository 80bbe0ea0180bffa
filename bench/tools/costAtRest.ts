/** What a process costs while nothing happens. */
import { setTimeout as sleep } from 'node:timers/promises'
import { shareOfMemoryMB, usageOf } from './machine.ts'

const settleMs = 15_000
const windowMs = 30_000

/** Over half a minute in which nothing happens, once what came before has settled. */
export async function costAtRest(pid: number, signal: AbortSignal) {
  await sleep(settleMs, undefined, { signal })
  const before = usageOf(pid)
  await sleep(windowMs, undefined, { signal })
  const after = usageOf(pid)
  return { cpuPercent: ((after.cpuSeconds - before.cpuSeconds) / (windowMs / 1000)) * 100, rssMB: after.rssMB, pssMB: shareOfMemoryMB(pid) }
}
