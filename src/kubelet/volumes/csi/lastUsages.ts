/**
 * The last usage that drivers reported for each volume (L3). A driver may take long: a request for the kubelet's statistics waits one second for it.
 * Upstream: kubelet/server/stats/volume_stat_calculator.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { VolumeUsage } from '../../core/volumeStats.ts'

/** A driver is asked again after this time. */
const freshMs = 60_000
const patienceMs = 1_000

export interface LastUsages {
  /** @throws what `ask` throws, and an Error while there is no answer */
  usage(path: string, ask: () => Promise<VolumeUsage>): Promise<VolumeUsage>
  forget(path: string): void
}

interface Known {
  last?: { readonly usage: VolumeUsage; readonly atMs: number }
  asking?: Promise<VolumeUsage> | undefined
}

export function createLastUsages(clock: Clock): LastUsages {
  const known = new Map<string, Known>()
  const start = (entry: Known, ask: () => Promise<VolumeUsage>) => {
    const asking = ask().then((usage) => {
      entry.last = { usage, atMs: clock.monotonicMs() }
      return usage
    })
    const done = () => {
      entry.asking = undefined
    }
    asking.then(done, done)
    return asking
  }
  return {
    usage: async (path, ask) => {
      const entry = known.get(path) ?? {}
      known.set(path, entry)
      if (entry.last && clock.monotonicMs() - entry.last.atMs < freshMs) return entry.last.usage
      entry.asking ??= start(entry, ask)
      const impatient = new AbortController()
      const waited = clock.sleep(patienceMs, impatient.signal).catch(() => {})
      const usage = await Promise.race([entry.asking, waited]).finally(() => impatient.abort())
      const answer = usage ?? entry.last?.usage
      if (!answer) throw new Error('the driver has not answered yet')
      return answer
    },
    forget: (path) => void known.delete(path),
  }
}
