/** Pods that Permit holds back between the decision and the binding (L3). Upstream: framework/runtime/waiting_pods_map.go. */
import type { Clock } from '#base/clock'
import type { WaitingPod } from './framework/handle.ts'
import type { PodInfo } from './framework/podInfo.ts'
import { type Refusal, unschedulable } from './framework/status.ts'

/** Undefined: allowed. */
export type Verdict = { readonly refusal: Refusal; readonly plugin: string } | undefined

interface Held extends WaitingPod {
  end(verdict: Verdict): void
}

export class WaitingPods {
  readonly #clock: Clock
  readonly #held = new Map<string, Held>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  list(): readonly WaitingPod[] {
    return [...this.#held.values()]
  }

  get(uid: string): WaitingPod | undefined {
    return this.#held.get(uid)
  }

  /** Resolves when every plugin allowed it, one rejected it, the time of one is over, or the signal aborts (then it is rejected). */
  wait(pod: PodInfo, waits: ReadonlyMap<string, number>, signal: AbortSignal): Promise<Verdict> {
    const uid = pod.pod.metadata.uid ?? ''
    return new Promise((resolve) => {
      const pending = new Set(waits.keys())
      const end = (verdict: Verdict) => {
        for (const timer of timers) timer.cancel()
        signal.removeEventListener('abort', stopped)
        if (this.#held.get(uid) === held) this.#held.delete(uid)
        resolve(verdict)
      }
      const reject = (plugin: string, message: string) => end({ plugin, refusal: unschedulable(message) })
      const held: Held = {
        pod,
        get pendingPlugins() {
          return [...pending]
        },
        allow: (plugin) => {
          pending.delete(plugin)
          if (pending.size === 0) end(undefined)
        },
        reject,
        end,
      }
      const stopped = () => reject('', 'the scheduler stops')
      const timers = [...waits].map(([plugin, waitMs]) =>
        this.#clock.timer(waitMs, () => reject(plugin, `rejected due to timeout after waiting ${Math.round(waitMs / 1000)}s at plugin ${plugin}`)),
      )
      this.#held.set(uid, held)
      signal.addEventListener('abort', stopped, { once: true })
      if (signal.aborted) stopped()
    })
  }
}
