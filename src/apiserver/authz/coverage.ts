/**
 * Whether policy rules cover others (L3, pure), and what is missing where they do not. A rule means the product of its verbs, groups, resources and
 * names; four lists of a few hundred are billions of single permissions. So values that the same held rules mention are compared once, as a class.
 * Upstream: Covers of component-helpers/auth/rbac/validation/policy_comparator.go, which expands the product.
 */
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import type { Frozen } from '#api/machinery/meta'
import { Turns } from '../core/fairLoop.ts'

type Rule = Frozen<PolicyRule>

export interface Coverage {
  /** Single permissions that no held rule covers; empty when all are covered. */
  readonly missing: readonly PolicyRule[]
  /** More is missing than `missing` lists. */
  readonly isCutShort: boolean
}

/** The rules overlap so much that comparing them would take seconds. */
export class RulesTooComplex extends Error {
  constructor() {
    super('the rules are too complex to compare')
  }
}

/** What a refusal lists at most: more single permissions than the largest of the bootstrap roles has. */
const mostMissing = 10_000
const mostMissingCharacters = 262_144
/** A step takes less than a microsecond and less than a hundred bytes. */
const mostSteps = 500_000
const stepsPerTurn = 10_000

/** Gives the event loop its turns. @throws RulesTooComplex */
export async function coverage(held: readonly Rule[], wanted: readonly Rule[]): Promise<Coverage> {
  const turns = new Turns(1)
  const work = compare(held, wanted)
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value
    await turns.after(1)
  }
}

/** The same synchronously, for rules that do not come from a client. */
export function uncovered(held: readonly Rule[], wanted: readonly Rule[]): readonly PolicyRule[] {
  const work = compare(held, wanted)
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value.missing
}

/** Yields after each share of the work. */
type Work<T> = Generator<undefined, T, undefined>

function* compare(held: readonly Rule[], wanted: readonly Rule[]): Work<Coverage> {
  const effort = new Effort(held.length)
  const index = new HeldRules()
  for (const rule of held) {
    index.add(rule)
    if (effort.indexed(sizeOf(rule))) yield
  }
  const found = new Missing()
  for (const rule of wanted) {
    for (const lists of [resourceLists(index, rule), urlLists(index, rule)]) {
      if (lists.some(({ values }) => values.length === 0)) continue
      const box: Side[] = []
      for (const list of lists) box.push(yield* side(list, effort))
      yield* new Comparison(box, effort, found).run()
      if (found.isCutShort) return found
    }
  }
  return found
}

const sizeOf = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: Rule): number =>
  [verbs, apiGroups, resources, resourceNames, nonResourceURLs].reduce((sum, list) => sum + (list?.length ?? 0), 1)

/** Bounds the total work, and tells when to yield to the event loop. */
class Effort {
  #left = mostSteps
  #share = 0
  readonly #cost: number

  constructor(heldRules: number) {
    // A step handles a bit for each held rule.
    this.#cost = 1 + Math.floor(heldRules / 128)
  }

  /** @throws RulesTooComplex */
  spend(steps: number): boolean {
    this.#left -= steps * this.#cost
    if (this.#left < 0) throw new RulesTooComplex()
    return this.indexed(steps * this.#cost)
  }

  /** The user's own rules need no bound: the cluster stores them. */
  indexed(steps: number): boolean {
    this.#share += steps
    if (this.#share < stepsPerTurn) return false
    this.#share = 0
    return true
  }
}

class Missing implements Coverage {
  readonly missing: PolicyRule[] = []
  isCutShort = false
  #characters = 0

  add(rule: PolicyRule, characters: number): void {
    this.#characters += characters
    if (this.missing.length >= mostMissing || this.#characters > mostMissingCharacters) this.isCutShort = true
    else this.missing.push(rule)
  }
}

/** Sets of held rules are numbers with a bit for each of them. */
type RuleSet = bigint

const none: RuleSet = 0n

/** Finds the held rules that mention a value. */
class Mentions {
  readonly #rules = new Map<string, number[]>()
  readonly #sets = new Map<string, RuleSet>()

  add(values: readonly string[] | undefined, rule: number): void {
    for (const value of values ?? []) {
      const rules = this.#rules.get(value)
      if (rules) rules.push(rule)
      else this.#rules.set(value, [rule])
    }
  }

  of(value: string): RuleSet {
    const rules = this.#rules.get(value)
    if (!rules) return none
    let set = this.#sets.get(value)
    if (set === undefined) {
      set = setOf(rules)
      this.#sets.set(value, set)
    }
    return set
  }

  /** Lengths of the values, each once. */
  lengths(): number[] {
    return [...new Set([...this.#rules.keys()].map((value) => value.length))]
  }
}

/** @param rules in ascending order */
function setOf(rules: readonly number[]): RuleSet {
  const last = rules.at(-1) ?? 0
  const bytes = Buffer.alloc((last >> 3) + 1)
  for (const rule of rules) {
    const at = bytes.length - 1 - (rule >> 3)
    bytes[at] = (bytes[at] as number) | (1 << (rule & 7))
  }
  return BigInt(`0x${bytes.toString('hex')}`)
}

/** The held rules by what they mention. Each method answers which of them cover a wanted value of its kind. */
class HeldRules {
  readonly #verbs = new Mentions()
  readonly #groups = new Mentions()
  readonly #resources = new Mentions()
  readonly #names = new Mentions()
  readonly #urls = new Mentions()
  readonly #urlPrefixes = new Mentions()
  readonly #unnamed: number[] = []
  #count = 0
  #anyName: RuleSet | undefined
  #prefixLengths: readonly number[] | undefined

  add({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: Rule): void {
    const rule = this.#count++
    this.#verbs.add(verbs, rule)
    this.#groups.add(apiGroups, rule)
    this.#resources.add(resources, rule)
    this.#names.add(resourceNames, rule)
    if (!resourceNames?.length) this.#unnamed.push(rule)
    this.#urls.add(nonResourceURLs, rule)
    const patterns = nonResourceURLs?.filter((url) => url.endsWith('*')).map((url) => url.replace(/\*+$/, ''))
    this.#urlPrefixes.add(patterns, rule)
  }

  verb = (verb: string): RuleSet => this.#verbs.of('*') | this.#verbs.of(verb)
  group = (group: string): RuleSet => this.#groups.of('*') | this.#groups.of(group)

  resource = (resource: string): RuleSet => {
    const slash = resource.indexOf('/')
    const ofAnything = slash < 0 ? none : this.#resources.of(`*${resource.slice(slash)}`)
    return this.#resources.of('*') | this.#resources.of(resource) | ofAnything
  }

  name = (name: string): RuleSet => this.anyName() | this.#names.of(name)

  /** Held rules without resourceNames. */
  anyName = (): RuleSet => {
    this.#anyName ??= setOf(this.#unnamed)
    return this.#anyName
  }

  url = (url: string): RuleSet => {
    let set = this.#urls.of(url)
    for (const length of this.prefixLengths()) if (length <= url.length) set |= this.#urlPrefixes.of(url.slice(0, length))
    return set & this.anyName()
  }

  prefixLengths(): readonly number[] {
    this.#prefixLengths ??= this.#urlPrefixes.lengths()
    return this.#prefixLengths
  }
}

/** One of a rule's lists. */
interface List {
  /** Absent for the names of a rule that has none: one value stands for all of them. */
  readonly field: 'apiGroups' | 'resources' | 'resourceNames' | 'nonResourceURLs' | 'verbs' | undefined
  readonly values: readonly string[]
  /** The held rules that cover a value. */
  covering(value: string): RuleSet
  /** How many steps `covering` takes. */
  readonly cost: number
}

/** The verbs come last: a refusal lists them for each group, resource and name. */
function resourceLists(held: HeldRules, { verbs, apiGroups, resources, resourceNames }: Rule): readonly List[] {
  return [
    { field: 'apiGroups', values: apiGroups ?? [], covering: held.group, cost: 1 },
    { field: 'resources', values: resources ?? [], covering: held.resource, cost: 1 },
    resourceNames?.length
      ? { field: 'resourceNames', values: resourceNames, covering: held.name, cost: 1 }
      : { field: undefined, values: [''], covering: held.anyName, cost: 1 },
    { field: 'verbs', values: verbs, covering: held.verb, cost: 1 },
  ]
}

function urlLists(held: HeldRules, { verbs, nonResourceURLs }: Rule): readonly List[] {
  return [
    { field: 'nonResourceURLs', values: nonResourceURLs ?? [], covering: held.url, cost: 1 + held.prefixLengths().length },
    { field: 'verbs', values: verbs, covering: held.verb, cost: 1 },
  ]
}

/** A list whose values are grouped by the held rules that cover them. */
interface Side extends List {
  /** For each value, the held rules that cover it. */
  readonly sets: readonly RuleSet[]
  readonly classes: readonly ValueClass[]
}

/** Values of one side that the same held rules cover. */
interface ValueClass {
  readonly set: RuleSet
  readonly values: string[]
}

function* side(list: List, effort: Effort): Work<Side> {
  const sets: RuleSet[] = []
  const classes = new Map<string, ValueClass>()
  for (const value of list.values) {
    if (effort.spend(list.cost)) yield
    const set = list.covering(value)
    const key = set.toString(32)
    const alike = classes.get(key) ?? { set, values: [] }
    classes.set(key, alike)
    alike.values.push(value)
    sets.push(alike.set)
  }
  return { ...list, sets, classes: [...classes.values()] }
}

/** Compares one wanted rule with the held ones. */
class Comparison {
  readonly #box: readonly Side[]
  readonly #effort: Effort
  readonly #found: Missing
  /** For each side, the held rules that cover all of it and of the sides after it; after the last one, all of them. */
  readonly #coveringRest: readonly RuleSet[]
  readonly #known = new Map<string, boolean>()
  readonly #path: string[] = []

  constructor(box: readonly Side[], effort: Effort, found: Missing) {
    this.#box = box
    this.#effort = effort
    this.#found = found
    const covering: RuleSet[] = [-1n]
    for (const { classes } of box.toReversed()) covering.unshift(classes.reduce((all, { set }) => all & set, covering[0] as RuleSet))
    this.#coveringRest = covering
  }

  *run(): Work<void> {
    if (!(yield* this.#isCovered(0, -1n))) yield* this.#collect(0, -1n)
  }

  /** Whether `rules`, which cover the values chosen on the sides before `at`, cover the rest together. */
  *#isCovered(at: number, rules: RuleSet): Work<boolean> {
    if ((rules & (this.#coveringRest[at] as RuleSet)) !== none) return true
    if (rules === none || at === this.#box.length) return false
    const key = `${at} ${rules.toString(32)}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const isLast = at === this.#box.length - 1
    let isCovered = true
    for (const { set } of this.#box[at]?.classes ?? []) {
      if (this.#effort.spend(1)) yield
      const left = rules & set
      isCovered = isLast ? left !== none : yield* this.#isCovered(at + 1, left)
      if (!isCovered) break
    }
    this.#known.set(key, isCovered)
    return isCovered
  }

  *#collect(at: number, rules: RuleSet): Work<void> {
    const { values, sets, classes } = this.#box[at] as Side
    if (at === this.#box.length - 1) {
      for (const [index, value] of values.entries()) {
        if (this.#effort.spend(1)) yield
        if ((rules & (sets[index] as RuleSet)) === none) this.#report(value)
        if (this.#found.isCutShort) return
      }
      return
    }
    for (const { set, values: alike } of classes) {
      if (yield* this.#isCovered(at + 1, rules & set)) continue
      for (const value of alike) {
        this.#path[at] = value
        yield* this.#collect(at + 1, rules & set)
        if (this.#found.isCutShort) return
      }
    }
  }

  #report(verb: string): void {
    const rule: PolicyRule = { verbs: [verb] }
    let characters = verb.length
    for (const [at, value] of this.#path.entries()) {
      const { field } = this.#box[at] as Side
      characters += value.length
      if (field) rule[field] = [value]
    }
    this.#found.add(rule, characters)
  }
}
