/**
 * The attached volumes that pods of this node use (L3), by their names in the Node's status: controllers detach none of those. A volume is mounted once the API server
 * has its name. Upstream: kubelet/volumemanager GetVolumesInUse, kubelet/nodestatus/setters.go VolumesInUse (v1.36).
 */
import type { Clock } from '#base/clock'

export interface VolumesInUse {
  /** Adds the volume. Resolves when it is in the Node's status. @throws Error when it is not there in time */
  use(podUid: string, name: string): Promise<void>
  /** Adds a volume that an earlier kubelet may have mounted. It counts if the Node's status has it. */
  restore(podUid: string, name: string): void
  /** None of the pod's volumes is mounted any more. */
  release(podUid: string): void
  /** The names for the Node's status. @param before those that it has */
  names(before: readonly string[]): string[]
  /** The Node's status has these names. */
  reported(names: readonly string[]): void
}

/** For nodes that report no status. */
export const untracked: VolumesInUse = { use: async () => {}, restore: () => {}, release: () => {}, names: () => [], reported: () => {} }

/** As often as upstream's kubelet reports. */
const patienceMs = 10_000

/** @param changed called when the Node's status is to be written */
export function createVolumesInUse(clock: Clock, changed: () => void): VolumesInUse {
  /** Pod → name → whether this kubelet uses it. */
  const used = new Map<string, Map<string, boolean>>()
  const waiting = new Map<string, Set<() => void>>()
  let known: ReadonlySet<string> = new Set()

  const add = (podUid: string, name: string, isOwn: boolean) => {
    const ofPod = used.get(podUid) ?? new Map<string, boolean>()
    used.set(podUid, ofPod)
    ofPod.set(name, isOwn)
  }
  const untilReported = async (name: string): Promise<void> => {
    const listeners = waiting.get(name) ?? new Set<() => void>()
    waiting.set(name, listeners)
    const done = new AbortController()
    const listener = () => done.abort()
    listeners.add(listener)
    changed()
    await clock.sleep(patienceMs, done.signal).catch(() => {})
    listeners.delete(listener)
    if (listeners.size === 0 && waiting.get(name) === listeners) waiting.delete(name)
    if (!known.has(name)) throw new Error("Volume has not been added to the list of VolumesInUse in the node's volume status")
  }

  return {
    use: async (podUid, name) => {
      add(podUid, name, true)
      if (!known.has(name)) await untilReported(name)
    },
    restore: (podUid, name) => add(podUid, name, false),
    release: (podUid) => {
      if (used.delete(podUid)) changed()
    },
    names: (before) => {
      const names = [...used.values()].flatMap((ofPod) => [...ofPod].filter(([name, isOwn]) => isOwn || before.includes(name)).map(([name]) => name))
      return [...new Set(names)].sort()
    },
    reported: (names) => {
      known = new Set(names)
      for (const [name, listeners] of waiting) {
        if (!known.has(name)) continue
        waiting.delete(name)
        for (const listener of listeners) listener()
      }
    },
  }
}
