/**
 * What searches between cycles have found (L3), until the next cycle of the pod asks. The cluster may have changed since the search began: a solution holds
 * while its devices are free, a refusal until some device is given back.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { ResourceClaim } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import type { AllocationOutcome, ClaimSolution } from './allocation.ts'
import { temporaryName } from './extendedClaim.ts'

type Claim = Frozen<ResourceClaim>

export interface Question {
  readonly node: Frozen<Node>
  readonly claims: readonly Claim[]
}

/** The state of the cluster that a refusal holds for. */
export interface SearchBasis {
  /** The resource slices and device classes, in order. */
  readonly index: object
  /** The number of releases of devices. */
  readonly releases: number
}

export type SlowOutcome = AllocationOutcome | { readonly failed: 'timeout' } | { readonly error: unknown }

export interface StillHolds {
  basis(basis: SearchBasis): boolean
  solution(solution: readonly ClaimSolution[], node: Frozen<Node>): boolean
}

interface Answer {
  readonly question: Question
  /** Absent when the search could not begin. */
  readonly basis: SearchBasis | undefined
  readonly outcome: SlowOutcome
  readonly atMs: number
  /** How often in a row a search for the question took too long. */
  readonly timeouts: number
  isGiven: boolean
}

const maxAnswers = 1000
/** A pod whose search took too long is retried repeatedly; upstream searches each time. */
const timeoutHoldsMs = 300_000
/** The wait after the first timeout, whatever changes in the cluster: upstream's longest back-off. It doubles with each further timeout. */
const firstWaitMs = 10_000

export class SearchAnswers {
  readonly #nowMs: () => number
  readonly #stillHolds: StillHolds
  readonly #answers = new Map<string, Answer>()

  constructor(nowMs: () => number, stillHolds: StillHolds) {
    this.#nowMs = nowMs
    this.#stillHolds = stillHolds
  }

  set(key: string, { node, claims }: Question, basis: SearchBasis | undefined, outcome: SlowOutcome): void {
    const question = { node, claims }
    const before = this.#answers.get(key)
    const isTimeout = 'failed' in outcome && outcome.failed === 'timeout'
    const timeouts = isTimeout ? 1 + (before && isSameQuestion(before.question, question) ? before.timeouts : 0) : 0
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size < maxAnswers) break
      this.#answers.delete(oldest)
    }
    this.#answers.set(key, { question, basis, outcome, atMs: this.#nowMs(), timeouts, isGiven: false })
  }

  get(key: string, question: Question): SlowOutcome | undefined {
    const known = this.#answers.get(key)
    const isSame = known !== undefined && isSameQuestion(known.question, question)
    if (isSame && this.#holds(known, question)) {
      known.isGiven = true
      return forClaims(known, question.claims)
    }
    // The next search for the question needs the number of timeouts.
    if (!isSame || known.timeouts === 0) this.#answers.delete(key)
    return undefined
  }

  #holds({ outcome, basis, atMs, timeouts, isGiven }: Answer, { node }: Question): boolean {
    if ('solution' in outcome) return this.#stillHolds.solution(outcome.solution, node)
    // An error brings the pod back after a wait, so it may be out of date; without it, a cluster that changes all the time would never show one.
    const isError = 'error' in outcome || outcome.failed === 'timeout'
    if (isError && !isGiven) return true
    const ageMs = this.#nowMs() - atMs
    // Where slices or claims change all the time, a long search would otherwise begin again with each back-off of its pod.
    if (timeouts > 0 && ageMs < Math.min(timeoutHoldsMs, firstWaitMs * 2 ** (timeouts - 1))) return true
    // A search that took too long may be shorter when the machine is less busy.
    if (isError && ageMs > timeoutHoldsMs) return false
    return basis !== undefined && this.#stillHolds.basis(basis)
  }
}

/** Compares the fields of the node by which devices are chosen, and no others: its status changes all the time. */
export function isSameQuestion(a: Question, b: Question): boolean {
  return (
    (a.node === b.node || (a.node.metadata.uid === b.node.metadata.uid && semanticEqual(a.node.metadata.labels, b.node.metadata.labels))) &&
    a.claims.length === b.claims.length &&
    a.claims.every((claim, index) => isSameClaim(claim, b.claims[index]))
  )
}

/** The claim for extended resources is made for each cycle: it is the same when it asks for the same. */
function isSameClaim(a: Claim, b: Claim | undefined): boolean {
  if (a === b || !b) return a === b
  const isTemporary = a.metadata.name === temporaryName && b.metadata.name === temporaryName
  return (isTemporary || a.metadata.uid === b.metadata.uid) && semanticEqual(a.spec, b.spec)
}

/** The answer, about the claims of this cycle. */
function forClaims({ question, outcome }: Answer, claims: readonly Claim[]): SlowOutcome {
  if (!('solution' in outcome)) return outcome
  return { solution: outcome.solution.map((one) => ({ ...one, claim: claims[question.claims.indexOf(one.claim)] ?? one.claim })) }
}
