/**
 * When a volume that failed is tried again, and when its pod is told that it waits for volumes (L3): every volume backs off by itself,
 * and a pod that has missed volumes for long gets an event about all of them.
 * Upstream: util/goroutinemap/exponentialbackoff, volumemanager WaitForAttachAndMount (v1.36).
 */
import { least } from '#base/extremes'
import { BackOff } from '../core/backOff.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'

const initialMs = 500
const maxMs = 122_000
/** Nobody tells us when a claim is bound: it is looked at as often as upstream syncs a pod that fails. */
const claimMaxMs = 10_000
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
  /** Volume → why its claim cannot be used. */
  readonly unprocessed: Map<string, string>
  /** Some of those are to be told. */
  fresh: boolean
}

export function createWaits({ clock, recorder }: Pick<KubeletContext, 'clock' | 'recorder'>): Waits {
  const mounts = new BackOff(clock, initialMs, maxMs)
  const claims = new BackOff(clock, initialMs, claimMaxMs)
  const failures = new Map<string, { readonly atMs: number; readonly backOff: BackOff }>()
  const pods = new Map<string, PodWait>()
  // Ends with a slash: forgetting one volume must not forget another whose name goes on.
  const keyOf = (uid: string, volume: string) => `${uid}/${volume}/`
  const waitOf = (uid: string): PodWait => {
    const known = pods.get(uid) ?? { toldMs: clock.monotonicMs(), unprocessed: new Map(), fresh: false }
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
      // Told at once, as upstream does, but not with every look.
      if (fail(keyOf(uid, volume), claims)) wait.fresh = true
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
      if (wait.fresh || clock.monotonicMs() - wait.toldMs >= podTimeoutMs) {
        recorder.event(podReference(pod), 'Warning', 'FailedMount', `Unable to attach or mount volumes: ${message}`)
        wait.toldMs = clock.monotonicMs()
        wait.fresh = false
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
