/**
 * Which devices the requests of one search can use (L3). One selector is evaluated at a time and the search may be left after each, because an evaluation
 * may take milliseconds; a request's position in its selectors is kept for every device. Upstream: structured allocator isSelectable (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { DeviceSelector } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { type DeviceSelectors, InterruptedError } from './deviceSelectors.ts'
import { type PoolDevice, reaches } from './pools.ts'

/** A selector of a class or a request. */
export interface OwnedSelector {
  readonly selector: Frozen<DeviceSelector>
  readonly index: number
  /** The class or claim, as errors name it. */
  readonly owner: string
}

/** 'later': time is up. Asked again, the evaluation continues. */
export type Match = boolean | 'later'

/** The next selector to evaluate, or the answer. A failure is an answer too, so that it is not evaluated twice. */
type Progress = number | boolean | { readonly error: unknown }

/** Answers that requests share, because they have the same selectors or the same class; about 5 MB. */
const maxShared = 100_000
/** Evaluations that are interrupted one after the other: fewer are repeated, because the machine may have had other work. */
const maxInterruptions = 10

export class DeviceMatches {
  readonly #selectors: DeviceSelectors
  readonly #node: Frozen<Node>
  /** By request. */
  readonly #progress = new Map<string, Map<PoolDevice, Progress>>()
  /** By expression. */
  readonly #shared = new Map<string, Map<PoolDevice, boolean>>()
  #sharedCount = 0
  #interruptions = 0
  #isLate: () => boolean = () => false

  constructor(selectors: DeviceSelectors, node: Frozen<Node>) {
    this.#selectors = selectors
    this.#node = node
  }

  /** Sets what ends evaluation from now on. */
  leaveWhen(isLate: () => boolean): void {
    this.#isLate = isLate
  }

  /**
   * @param request its name in the search: asked for again, it keeps its answers
   * @returns a function that throws Error when a selector does not compile, or fails on the device
   */
  of(request: string, selectors: readonly OwnedSelector[]): (device: PoolDevice) => Match {
    const progress = this.#progress.get(request) ?? new Map<PoolDevice, Progress>()
    this.#progress.set(request, progress)
    return (device) => {
      let now = progress.get(device) ?? 0
      while (typeof now === 'number') {
        now = this.#next(selectors, now, device)
        progress.set(device, now)
        if (this.#isLate()) return 'later'
      }
      if (typeof now === 'object') throw now.error
      return now
    }
  }

  #next(selectors: readonly OwnedSelector[], position: number, device: PoolDevice): Progress {
    const selector = selectors[position]
    if (!selector) return !device.slice.spec.perDeviceNodeSelection || reaches(device.device, this.#node)
    try {
      return this.#evaluate(selector, device) ? position + 1 : false
    } catch (error) {
      return error instanceof InterruptedError && ++this.#interruptions < maxInterruptions ? position : { error }
    }
  }

  #evaluate({ selector, index, owner }: OwnedSelector, device: PoolDevice): boolean {
    const expression = selector.cel?.expression ?? ''
    const known = this.#shared.get(expression)?.get(device)
    if (known !== undefined) return known
    const answer = this.#selectors.match(selector, index, device.device, device.pool.driver, owner)
    this.#interruptions = 0
    if (this.#sharedCount < maxShared) {
      const answers = this.#shared.get(expression) ?? new Map<PoolDevice, boolean>()
      this.#shared.set(expression, answers.set(device, answer))
      this.#sharedCount++
    }
    return answer
  }
}
