/**
 * When a volume that failed is tried again, and when its pod is told that it waits for volumes (L3): every volume backs off by itself,
 * and a pod that has missed volumes for long gets an event about all of them.
 * Upstream: util/goroutinemap/exponentialbackoff, volumemanager WaitForAttachAndMount (v1.36).
 */
import type { KubeletContext } from '../context.ts'
import { BackOff } from '../pods/backOff.ts'
import type { FrozenPod } from '../pods/containers.ts'
import { podReference } from '../pods/podReference.ts'

const initialMs = 500
const maxMs = 122_000
/** How long upstream's sync waits for the volumes of one pod before it says so. */
const podTimeoutMs = 123_000

/** Some volumes of the pod are not there: containers cannot start. Events have been recorded. */
export class VolumesNotReady extends Error {
  /** Milliseconds until the next try makes sense. */
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number) {
    super(message)
    this.name = 'VolumesNotReady'
    this.retryAfterMs = retryAfterMs
  }
}

export interface Waits {
  /** How long the volume must still wait; 0: try now. */
  remainingMs(uid: string, volume: string): number
  /** Notes a failed try. True when it is worth an event: not again while the volume waits. */
  failed(uid: string, volume: string): boolean
  /** The claim behind the volume cannot be used yet, for this reason. */
  unprocessed(pod: FrozenPod, volume: string, reason: string): void
  succeeded(uid: string, volume: string): void
  /** The error for a pod that misses these; records the event about them when it is time. */
  notReady(pod: FrozenPod, missing: readonly string[]): VolumesNotReady
  forget(uid: string): void
}

interface PodWait {
  toldMs: number
  readonly unprocessed: Map<string, string>
}

export function createWaits({ clock, recorder }: Pick<KubeletContext, 'clock' | 'recorder'>): Waits {
  const backOff = new BackOff(clock, initialMs, maxMs)
  const failedAtMs = new Map<string, number>()
  const pods = new Map<string, PodWait>()
  const keyOf = (uid: string, volume: string) => `${uid}/${volume}`
  const waitOf = (uid: string): PodWait => {
    const known = pods.get(uid) ?? { toldMs: clock.monotonicMs(), unprocessed: new Map() }
    pods.set(uid, known)
    return known
  }
  const remainingMs = (uid: string, volume: string) => {
    const sinceMs = failedAtMs.get(keyOf(uid, volume))
    return sinceMs === undefined ? 0 : backOff.remainingMs(keyOf(uid, volume), sinceMs)
  }
  const failed = (uid: string, volume: string): boolean => {
    if (remainingMs(uid, volume) > 0) return false
    const nowMs = clock.now()
    failedAtMs.set(keyOf(uid, volume), nowMs)
    backOff.next(keyOf(uid, volume), nowMs)
    return true
  }
  return {
    remainingMs,
    failed,
    unprocessed: (pod, volume, reason) => {
      const uid = pod.metadata.uid ?? ''
      // Told at once, as upstream does, but not with every look.
      if (failed(uid, volume)) waitOf(uid).unprocessed.set(volume, reason)
    },
    succeeded: (uid, volume) => {
      backOff.reset(keyOf(uid, volume))
      failedAtMs.delete(keyOf(uid, volume))
    },
    notReady: (pod, missing) => {
      const uid = pod.metadata.uid ?? ''
      const wait = waitOf(uid)
      const unprocessed = new Map(wait.unprocessed)
      const overdue = clock.monotonicMs() - wait.toldMs >= podTimeoutMs
      const reason = unprocessed.size > 0 ? [...unprocessed.values()].join('; ') : 'timed out waiting for the condition'
      const names = (list: readonly string[]) => `[${[...list].sort().join(' ')}]`
      const message = `unmounted volumes=${names(missing)}, unattached volumes=[], failed to process volumes=${names([...unprocessed.keys()])}: ${reason}`
      if (unprocessed.size > 0 || overdue) {
        recorder.event(podReference(pod), 'Warning', 'FailedMount', `Unable to attach or mount volumes: ${message}`)
        wait.toldMs = clock.monotonicMs()
        wait.unprocessed.clear()
      }
      return new VolumesNotReady(message, Math.max(initialMs, Math.min(...missing.map((volume) => remainingMs(uid, volume)))))
    },
    forget: (uid) => {
      backOff.reset(`${uid}/`)
      for (const key of failedAtMs.keys()) if (key.startsWith(`${uid}/`)) failedAtMs.delete(key)
      pods.delete(uid)
    },
  }
}
