/**
 * Decides when a failed volume is retried and when an event reports missing volumes (L3): every volume has a separate back-off,
 * and a pod that waits long for volumes gets an event about all of them.
 * Upstream: util/goroutinemap/exponentialbackoff, volumemanager WaitForAttachAndMount (v1.36).
 */
import { least } from '#base/extremes'
import { BackOff } from '../core/backOff.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'

const initialMs = 500
const maxMs = 122_000
/** Claims are not watched: poll as often as upstream syncs a failing pod. */
const claimMaxMs = 10_000
/** How long upstream's sync waits for a pod's volumes before it records the event. */
const podTimeoutMs = 123_000

/** Some volumes of the pod are not mounted, so that containers cannot start. Events are already recorded. */
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
  /** The volume's claim cannot be used yet, for this reason. */
  unprocessed(pod: FrozenPod, volume: string, reason: string): void
  succeeded(uid: string, volume: string): void
  /** The error for a pod that misses these; records the event about them when it is time. */
  notReady(pod: FrozenPod, missing: readonly string[]): VolumesNotReady
  forget(uid: string): void
}

interface PodWait {
  reportedMs: number
  /** Volume → why its claim cannot be used. */
  readonly unprocessed: Map<string, string>
  /** A reason in `unprocessed` is not reported yet. */
  unreported: boolean
}

export function createWaits({ clock, recorder }: Pick<KubeletContext, 'clock' | 'recorder'>): Waits {
  const mounts = new BackOff(clock, initialMs, maxMs)
  const claims = new BackOff(clock, initialMs, claimMaxMs)
  const failures = new Map<string, { readonly atMs: number; readonly backOff: BackOff }>()
  const pods = new Map<string, PodWait>()
  // Ends with a slash: resetting one volume must not reset another whose name starts with the same letters.
  const keyOf = (uid: string, volume: string) => `${uid}/${volume}/`
  const waitOf = (uid: string): PodWait => {
    const known = pods.get(uid) ?? { reportedMs: clock.monotonicMs(), unprocessed: new Map(), unreported: false }
    pods.set(uid, known)
    return known
  }
  const remaining = (key: string): number => {
    const failure = failures.get(key)
    return failure ? failure.backOff.remainingMs(key, failure.atMs) : 0
  }
  const fail = (key: string, backOff: BackOff): boolean => {
    if (remaining(key) > 0) return false
    failures.set(key, { atMs: clock.now(), backOff })
    backOff.next(key, clock.now())
    return true
  }
  return {
    remainingMs: (uid, volume) => remaining(keyOf(uid, volume)),
    failed: (uid, volume) => {
      waitOf(uid).unprocessed.delete(volume)
      return fail(keyOf(uid, volume), mounts)
    },
    unprocessed: (pod, volume, reason) => {
      const uid = pod.metadata.uid ?? ''
      const wait = waitOf(uid)
      wait.unprocessed.set(volume, reason)
      // Reported at once, as upstream does, but not at every poll.
      if (fail(keyOf(uid, volume), claims)) wait.unreported = true
    },
    succeeded: (uid, volume) => {
      const key = keyOf(uid, volume)
      for (const backOff of [mounts, claims]) backOff.reset(key)
      failures.delete(key)
      pods.get(uid)?.unprocessed.delete(volume)
    },
    notReady: (pod, missing) => {
      const uid = pod.metadata.uid ?? ''
      const wait = waitOf(uid)
      const unprocessed = [...wait.unprocessed.keys()]
      const reason = unprocessed.length > 0 ? [...wait.unprocessed.values()].join('; ') : 'context deadline exceeded'
      const names = (list: readonly string[]) => `[${[...list].sort().join(' ')}]`
      const message = `unmounted volumes=${names(missing)}, unattached volumes=[], failed to process volumes=${names(unprocessed)}: ${reason}`
      if (wait.unreported || clock.monotonicMs() - wait.reportedMs >= podTimeoutMs) {
        recorder.event(podReference(pod), 'Warning', 'FailedMount', `Unable to attach or mount volumes: ${message}`)
        wait.reportedMs = clock.monotonicMs()
        wait.unreported = false
      }
      return new VolumesNotReady(message, Math.max(initialMs, least(missing.map((volume) => remaining(keyOf(uid, volume))))))
    },
    forget: (uid) => {
      for (const backOff of [mounts, claims]) backOff.reset(`${uid}/`)
      for (const key of failures.keys()) if (key.startsWith(`${uid}/`)) failures.delete(key)
      pods.delete(uid)
    },
  }
}
