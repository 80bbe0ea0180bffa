/**
 * Which addresses are isolated, and by which policies (L3), pure: pods that the same policies select share one isolation for each direction, so that a new pod of
 * a workload is one more address of it.
 */
import type { CompiledPolicy, Direction } from './compilePolicy.ts'
import type { PodFacts } from './facts.ts'
import type { Term } from './terms.ts'

export const directions: readonly Direction[] = ['ingress', 'egress']

/** A policy that selects at least one pod of the node. */
export interface ActivePolicy {
  readonly id: number
  readonly policy: CompiledPolicy
  readonly terms: Readonly<Partial<Record<Direction, readonly Term[]>>>
}

/** The policies that isolate some pods in one direction: a connection needs one that allows it. */
export interface Isolation {
  readonly id: number
  readonly direction: Direction
  readonly policies: readonly ActivePolicy[]
}

export interface IsolatedPod {
  readonly facts: PodFacts
  readonly isolation: Partial<Record<Direction, Isolation>>
}

export class Isolations {
  readonly #nextId: () => number
  readonly #byKey = new Map<string, { readonly isolation: Isolation; users: number }>()
  /** Address → the isolations of the pods that have it: the last is in force. Those of pods with that address in the API only come first, then the older ones. */
  readonly #byAddress: Readonly<Record<Direction, Map<string, Isolation[]>>> = { ingress: new Map(), egress: new Map() }

  constructor(nextId: () => number) {
    this.#nextId = nextId
  }

  *all(): Generator<Isolation> {
    for (const { isolation } of this.#byKey.values()) yield isolation
  }

  *isolated(direction: Direction): Generator<readonly [string, Isolation]> {
    for (const [address, isolations] of this.#byAddress[direction]) yield [address, isolations.at(-1) as Isolation]
  }

  ofAddress(direction: Direction, address: string): Isolation | undefined {
    return this.#byAddress[direction].get(address)?.at(-1)
  }

  /** Isolates the pod's addresses by these policies, or by none. @param policies in the order of their numbers @returns whether that is a change */
  give({ facts, isolation }: IsolatedPod, direction: Direction, policies: readonly ActivePolicy[]): boolean {
    const before = isolation[direction]
    const key = keyOf(direction, policies)
    if (before ? keyOf(direction, before.policies) === key : policies.length === 0) return false
    const now = policies.length > 0 ? this.#use(key, direction, policies) : undefined
    for (const address of facts.addresses) replace(this.#byAddress[direction], address, before, now, facts.isAnnounced)
    if (before) this.#release(before)
    if (now) isolation[direction] = now
    else delete isolation[direction]
    return true
  }

  #use(key: string, direction: Direction, policies: readonly ActivePolicy[]): Isolation {
    const entry = this.#byKey.get(key) ?? { isolation: { id: this.#nextId(), direction, policies }, users: 0 }
    entry.users++
    this.#byKey.set(key, entry)
    return entry.isolation
  }

  #release({ direction, policies }: Isolation): void {
    const key = keyOf(direction, policies)
    const entry = this.#byKey.get(key)
    if (entry && --entry.users === 0) this.#byKey.delete(key)
  }
}

function replace(isolated: Map<string, Isolation[]>, address: string, before: Isolation | undefined, now: Isolation | undefined, isLast: boolean): void {
  const others = [...(isolated.get(address) ?? [])]
  const at = before ? others.lastIndexOf(before) : -1
  if (at >= 0) others.splice(at, 1)
  const all = !now ? others : isLast ? [...others, now] : [now, ...others]
  if (all.length > 0) isolated.set(address, all)
  else isolated.delete(address)
}

function keyOf(direction: Direction, policies: readonly ActivePolicy[]): string {
  return `${direction} ${policies.map(({ id }) => id).join()}`
}
