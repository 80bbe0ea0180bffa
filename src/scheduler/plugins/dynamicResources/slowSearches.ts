/**
 * Searches for devices that are too long for one scheduling cycle (L3): they continue between turns of the event loop, one after the other, while other
 * pods are scheduled, and their pods come back to the queue with the answer. Upstream: the filter timeout of plugins/dynamicresources (v1.36), during
 * which no other pod is scheduled.
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import type { Handle } from '../../framework/handle.ts'
import type { Allocation, AllocationOutcome, Leave } from './allocator.ts'
import { temporaryName } from './extendedClaim.ts'

type Claim = Frozen<ResourceClaim>

/** What an answer holds for: with anything else the search begins again. */
export interface SearchBasis {
  readonly node: Frozen<Node>
  readonly claims: readonly Claim[]
  /** The resource slices, in order. */
  readonly index: object
  /** The version of the devices in use. */
  readonly version: number
}

export type SlowOutcome = AllocationOutcome | { readonly failed: 'timeout' } | { readonly error: unknown }

interface Answer {
  readonly basis: SearchBasis
  readonly outcome: SlowOutcome
  readonly atMs: number
}

interface Search {
  readonly pod: Frozen<Pod>
  readonly basis: SearchBasis
  readonly begin: () => Allocation
}

/** Some milliseconds, and as long for all others: a search takes half of the time. */
const sliceMs = 10
/** Times 256 steps of a search. */
const stepsPerSlice = 100
/** Without a timeout of the user's. */
const longestMs = 60_000
const maxAnswers = 1000
/** A pod whose search took too long comes back again and again; upstream searches each time. */
const timeoutHoldsMs = 300_000

export class SlowSearches {
  readonly #handle: Handle
  readonly #timeoutMs: number
  readonly #isCurrent: (basis: SearchBasis) => boolean
  /** By pod and node. */
  readonly #waiting = new Map<string, Search>()
  readonly #answers = new Map<string, Answer>()
  #isRunning = false

  constructor(handle: Handle, timeoutMs: number, isCurrent: (basis: SearchBasis) => boolean) {
    this.#handle = handle
    this.#timeoutMs = timeoutMs > 0 ? timeoutMs : longestMs
    this.#isCurrent = isCurrent
  }

  /** @returns what an earlier search found; undefined when there is none, or not for this basis */
  answer(pod: Frozen<Pod>, basis: SearchBasis): SlowOutcome | undefined {
    const key = keyOfSearch(pod, basis)
    const known = this.#answers.get(key)
    if (known && isSame(known.basis, basis) && !this.#isOver(known)) return forClaims(known, basis.claims)
    this.#answers.delete(key)
    return undefined
  }

  /** What was too long may be shorter on a machine with less work. */
  #isOver({ outcome, atMs }: Answer): boolean {
    return 'failed' in outcome && outcome.failed === 'timeout' && this.#handle.clock.monotonicMs() - atMs > timeoutHoldsMs
  }

  /** Begins it when its turn comes, with no more work before. */
  add(search: Search): void {
    this.#waiting.set(keyOfSearch(search.pod, search.basis), search)
    if (this.#isRunning) return
    this.#isRunning = true
    this.#handle.background(this.#run())
  }

  async #run(): Promise<void> {
    try {
      for (let next = this.#waiting.entries().next(); !next.done; next = this.#waiting.entries().next()) {
        const [key, search] = next.value
        const outcome = await this.#finish(search)
        if (this.#waiting.get(key) === search) this.#waiting.delete(key)
        for (const oldest of this.#answers.keys()) {
          if (this.#answers.size < maxAnswers) break
          this.#answers.delete(oldest)
        }
        if (outcome) this.#answers.set(key, { basis: search.basis, outcome, atMs: this.#handle.clock.monotonicMs() })
        this.#handle.activate([search.pod])
      }
    } finally {
      this.#isRunning = false
    }
  }

  /** @returns undefined when its basis has changed meanwhile */
  async #finish({ basis, begin }: Search): Promise<SlowOutcome | undefined> {
    const { clock } = this.#handle
    const deadlineMs = clock.monotonicMs() + this.#timeoutMs
    try {
      const allocation = this.#isCurrent(basis) ? begin() : undefined
      while (allocation && this.#isCurrent(basis)) {
        const outcome = allocation.run(slice(() => clock.monotonicMs(), sliceMs))
        if (outcome) return outcome
        if (clock.monotonicMs() >= deadlineMs) return { failed: 'timeout' }
        await clock.sleep(sliceMs)
      }
      return undefined
    } catch (error) {
      return { error }
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

const keyOfSearch = ({ metadata }: Frozen<Pod>, { node }: SearchBasis): string => `${metadata.uid}/${node.metadata.name}`

function isSame(a: SearchBasis, b: SearchBasis): boolean {
  return (
    a.node === b.node &&
    a.index === b.index &&
    a.version === b.version &&
    a.claims.length === b.claims.length &&
    a.claims.every((claim, index) => isSameClaim(claim, b.claims[index]))
  )
}

/** The claim for extended resources is made for each cycle: it is the same when it asks for the same. */
function isSameClaim(a: Claim, b: Claim | undefined): boolean {
  if (a === b || !b) return a === b
  return a.metadata.name === temporaryName && b.metadata.name === temporaryName && semanticEqual(a.spec, b.spec)
}

/** The answer, about the claims of this cycle. */
function forClaims({ basis, outcome }: Answer, claims: readonly Claim[]): SlowOutcome {
  if (!('solution' in outcome)) return outcome
  return { solution: outcome.solution.map((one) => ({ ...one, claim: claims[basis.claims.indexOf(one.claim)] ?? one.claim })) }
}
