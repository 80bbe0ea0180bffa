/**
 * The result of the checks of a custom resource (L1): faults, and the number of visited parts. While alternatives (anyOf and the like) are tried,
 * faults are only counted: most are never reported, and a text costs more than the check. All the work on one object shares one limit.
 */
import type { FieldError } from '../machinery/fieldPath.ts'
import { isObject } from '../machinery/objects.ts'
import { StatusError } from '../machinery/status.ts'

/** A hundred times what validating the largest of real objects takes, and about a second. */
const mostSteps = 5_000_000

/** How much checking one object may still cost. */
export class Allowance {
  #left: number
  readonly #compared = new Map<object, { readonly old: unknown; readonly same: boolean }>()

  constructor(steps = mostSteps) {
    this.#left = steps
  }

  /** @throws StatusError RequestEntityTooLarge when nothing is left */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0)
      throw new StatusError('RequestEntityTooLarge', 'validating the object against the schema of its custom resource definition takes too long')
  }

  /** Deep equality of a part and the old part in its place; each pair is compared once, however many checks ask. */
  same(value: unknown, old: unknown): boolean {
    if (value === old) return true
    if (typeof value !== 'object' || typeof old !== 'object' || value === null || old === null) return false
    const known = this.#compared.get(value)
    if (known && known.old === old) return known.same
    const same = this.#sameMembers(value, old)
    this.#compared.set(value, { old, same })
    return same
  }

  #sameMembers(value: object, old: object): boolean {
    if (Array.isArray(value)) return Array.isArray(old) && value.length === old.length && value.every((item, index) => this.same(item, old[index]))
    if (!isObject(value) || !isObject(old)) return false
    const keys = Object.keys(value)
    return keys.length === Object.keys(old).length && keys.every((key) => Object.hasOwn(old, key) && this.same(value[key], old[key]))
  }
}

export class Findings {
  readonly allowance: Allowance
  readonly errors: FieldError[] = []
  /** Number of visited parts. Among several failed alternatives, the one that visited the most is the closest. */
  visited = 0
  #faults = 0
  /** Faults are counted, none is worded. */
  readonly probing: boolean

  private constructor(allowance: Allowance, probing: boolean) {
    this.allowance = allowance
    this.probing = probing
  }

  static telling(allowance: Allowance): Findings {
    return new Findings(allowance, false)
  }

  static probing(allowance: Allowance): Findings {
    return new Findings(allowance, true)
  }

  /** How many faults there are so far. */
  get faults(): number {
    return this.#faults
  }

  visit(): void {
    this.visited++
    this.allowance.spend(1)
  }

  add(make: () => FieldError): void {
    this.#faults++
    if (!this.probing) this.errors.push(make())
  }

  /** Takes over the faults of an alternative. */
  addAll(other: Findings): void {
    this.#faults += other.#faults
    for (const error of other.errors) this.errors.push(error)
  }

  /** Forgets the faults since there were so many. */
  forgetSince(faults: number): void {
    this.#faults = faults
    if (!this.probing) this.errors.length = faults
  }
}
