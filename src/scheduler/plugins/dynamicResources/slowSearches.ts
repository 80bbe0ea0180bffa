/**
 * Searches for devices that are too long for one scheduling cycle (L3): they continue between turns of the event loop, one after the other, while other
 * pods are scheduled, and their pods come back to the queue with the answer. A search sees the cluster as it was when the search began, as upstream's does
 * for its cycle; searchAnswers.ts decides what the answer is worth afterwards.
 * Upstream: the filter timeout of plugins/dynamicresources (v1.36), during which no other pod is scheduled.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Handle } from '../../framework/handle.ts'
import type { Allocation, Leave } from './allocation.ts'
import { FairQueue } from './fairQueue.ts'
import { isSameQuestion, type Question, SearchAnswers, type SearchBasis, type SlowOutcome, type StillHolds } from './searchAnswers.ts'

interface Search extends Question {
  readonly pod: Frozen<Pod>
}

/** Begins on the present state of the cluster. Throws when a claim or class is at fault. */
export type Begin = (question: Question) => { readonly allocation: Allocation; readonly basis: SearchBasis }

interface SlowSearchDeps {
  readonly handle: Handle
  /** Limits the time that one search itself takes; 0 sets a default. */
  readonly timeoutMs: number
  readonly begin: Begin
  readonly stillHolds: StillHolds
}

/** A slice ends after so long and the selector that is evaluated then. All others get as long afterwards: a search takes half of the time. */
const sliceMs = 10
/** Times 256 steps of a search. */
const stepsPerSlice = 100
/** Without a timeout of the user's. */
const longestMs = 60_000

export class SlowSearches {
  readonly #deps: SlowSearchDeps
  readonly #timeoutMs: number
  /** By pod and node; namespaces take turns. */
  readonly #waiting = new FairQueue<Search>()
  readonly #answers: SearchAnswers
  #running: { readonly key: string; readonly search: Search } | undefined

  constructor(deps: SlowSearchDeps) {
    this.#deps = deps
    this.#timeoutMs = deps.timeoutMs > 0 ? deps.timeoutMs : longestMs
    this.#answers = new SearchAnswers(() => deps.handle.clock.monotonicMs(), deps.stillHolds)
  }

  /** @returns what an earlier search found; 'searching' while there is one, undefined when there is none, or not for this question */
  answer(pod: Frozen<Pod>, question: Question): SlowOutcome | 'searching' | undefined {
    const key = keyOfSearch(pod, question)
    if (this.#isSearching(key, question)) return 'searching'
    return this.#answers.get(key, question)
  }

  #isSearching(key: string, question: Question): boolean {
    const search = this.#running?.key === key ? this.#running.search : this.#waiting.get(key)
    return search !== undefined && isSameQuestion(search, question)
  }

  /** The search starts over in its turn. The state of the cycle's attempt is not kept, because any number of pods may wait. */
  add(search: Search): void {
    this.#waiting.set(search.pod.metadata.namespace ?? '', keyOfSearch(search.pod, search), search)
    if (!this.#running) this.#deps.handle.background(this.#run())
  }

  async #run(): Promise<void> {
    const { handle } = this.#deps
    try {
      for (let next = this.#waiting.shift(); next && !handle.signal.aborted; next = this.#waiting.shift()) {
        const { key, value: search } = next
        this.#running = { key, search }
        await this.#finish(key, search)
        handle.activate([search.pod])
      }
    } finally {
      this.#running = undefined
    }
  }

  async #finish(key: string, search: Search): Promise<void> {
    const { begin } = this.#deps
    let basis: SearchBasis | undefined
    try {
      const begun = begin(search)
      basis = begun.basis
      this.#answers.set(key, search, basis, await this.#search(begun.allocation))
    } catch (error) {
      this.#answers.set(key, search, basis, { error })
    }
  }

  /** Only its own slices count as its time: what else the process does is not its fault. */
  async #search(allocation: Allocation): Promise<SlowOutcome> {
    const { clock, signal } = this.#deps.handle
    let spentMs = 0
    for (;;) {
      const startedMs = clock.monotonicMs()
      const outcome = allocation.run(slice(() => clock.monotonicMs(), sliceMs))
      if (outcome) return outcome
      const lastedMs = clock.monotonicMs() - startedMs
      spentMs += lastedMs
      if (spentMs >= this.#timeoutMs) return { failed: 'timeout' }
      await clock.sleep(Math.max(sliceMs, lastedMs), signal)
    }
  }
}

/** Ends after so long, or so many steps: a clock that is not real does not move meanwhile. */
export function slice(nowMs: () => number, ms: number): Leave {
  const untilMs = nowMs() + ms
  let asked = 0
  const isLate = () => nowMs() >= untilMs
  return { isLate, isOver: () => ++asked >= stepsPerSlice || isLate() }
}

const keyOfSearch = ({ metadata }: Frozen<Pod>, { node }: Question): string => `${metadata.uid}/${node.metadata.name}`
