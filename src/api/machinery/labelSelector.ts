/**
 * Label selectors (L1): the query text (`a=b,c in (d,e),!f`) and the object form (matchLabels, matchExpressions), compiled to one predicate.
 * Upstream: apimachinery/pkg/labels/selector.go, apis/meta/v1/helpers.go and apis/meta/v1/validation (v1.36).
 */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { bareMap } from '#base/bareMap'
import type { DeepReadonly } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { type FieldError, FieldPath, fieldError } from './fieldPath.ts'
import { isLabelValue, isQualifiedName } from './names.ts'
import { badRequest } from './status.ts'

export type LabelMap = Readonly<Record<string, string>>

export type SelectorOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'

export interface LabelRequirement {
  readonly key: string
  readonly operator: SelectorOperator
  readonly values: readonly string[]
}

/** A compiled selector. All requirements must hold; none means everything. */
export interface Selector {
  readonly requirements: readonly LabelRequirement[]
  /** Selects everything. */
  readonly isEmpty: boolean
  matches(labels: LabelMap | undefined): boolean
  /** The query text, requirements ordered by key. */
  toString(): string
}

const noLabels: LabelMap = {}

/** Matches every object: what an empty selector means. */
export const everything: Selector = compile([])

/** Matches no object: what an absent (null) LabelSelector means. */
export const nothing: Selector = { requirements: [], isEmpty: false, matches: () => false, toString: () => '' }

/** The selector of a query parameter. @throws Status BadRequest with upstream's message */
export function parseLabelSelector(text: string): Selector {
  const requirements = new Parser(tokenize(text)).parse()
  return requirements.length === 0 ? everything : compile(requirements)
}

/** The selector of an object's field; undefined selects nothing, an empty one everything. @throws Status BadRequest when it is malformed */
export function selectorOf(selector: DeepReadonly<LabelSelector> | undefined): Selector {
  if (!selector) return nothing
  const requirements = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => requirement(key, '=', [value]))
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const known = objectOperators[operator]
    if (!known) throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`)
    requirements.push(requirement(key, known, values ?? []))
  }
  return requirements.length === 0 ? everything : compile(requirements)
}

/** The selector of a plain map (a Service's or ReplicationController's); undefined and empty select everything. Values are not checked. */
export function selectorOfMap(labels: LabelMap | undefined): Selector {
  for (const _ in labels) return new MapSelector(labels)
  return everything
}

/** A map may have a hundred thousand labels: matching reads it as it is, and only what lists requirements sorts them. */
class MapSelector implements Selector {
  readonly isEmpty = false
  readonly #labels: LabelMap
  #compiled: Selector | undefined

  constructor(labels: LabelMap) {
    this.#labels = labels
  }

  matches(labels: LabelMap | undefined): boolean {
    const given = labels ?? noLabels
    for (const key in this.#labels) if (!Object.hasOwn(given, key) || given[key] !== this.#labels[key]) return false
    return true
  }

  get requirements(): readonly LabelRequirement[] {
    return this.#whole().requirements
  }

  toString(): string {
    return this.#whole().toString()
  }

  #whole(): Selector {
    this.#compiled ??= compile(Object.entries(this.#labels).map(([key, value]) => ({ key, operator: '=', values: [value] })))
    return this.#compiled
  }
}

/** Selects what both do. */
export function both(a: Selector, b: Selector): Selector {
  if (a === nothing || b === nothing) return nothing
  if (a.isEmpty) return b
  return b.isEmpty ? a : compile([...a.requirements, ...b.requirements])
}

/** `a=b,c in (d)` for an object's field, `<none>` for an empty or absent one: how tables show it. */
export function formatLabelSelector(selector: DeepReadonly<LabelSelector> | undefined): string {
  return selectorOf(selector).toString() || '<none>'
}

/** The faults of a LabelSelector field. Upstream: ValidateLabelSelector. */
export function validateLabelSelector(selector: DeepReadonly<LabelSelector> | undefined, path: FieldPath): FieldError[] {
  if (!selector) return []
  const errors = validateLabels(selector.matchLabels, path.child('matchLabels'))
  for (const [i, { key, operator, values }] of (selector.matchExpressions ?? []).entries()) {
    const at = path.child('matchExpressions').index(i)
    if (operator === 'In' || operator === 'NotIn') {
      if (!values?.length) errors.push(fieldError.required(at.child('values'), "must be specified when `operator` is 'In' or 'NotIn'"))
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values?.length) errors.push(fieldError.forbidden(at.child('values'), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    } else errors.push(fieldError.invalid(at.child('operator'), operator, 'not a valid selector operator'))
    errors.push(...validateLabelName(key, at.child('key')))
    for (const [j, value] of (values ?? []).entries())
      errors.push(...isLabelValue(value).map((fault) => fieldError.invalid(at.child('values').index(j), value, fault)))
  }
  return errors
}

/** The faults of a map of labels. */
export function validateLabels(labels: LabelMap | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  for (const key in labels) {
    const value = labels[key] as string
    errors.push(...validateLabelName(key, path))
    errors.push(...isLabelValue(value).map((fault) => fieldError.invalid(path, value, fault)))
  }
  return errors
}

export function validateLabelName(name: string, path: FieldPath): FieldError[] {
  return isQualifiedName(name).map((fault) => fieldError.invalid(path, name, fault))
}

const objectOperators: Readonly<Record<string, SelectorOperator>> = bareMap({ In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' })
const binaryOperators = 'in, notin, =, ==, !=, gt, lt'

function compile(requirements: readonly LabelRequirement[]): Selector {
  const ordered = [...requirements].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  const conditions = ordered.map((part): Condition => ({ ...part, accepted: new Set(part.values) }))
  return {
    requirements: ordered,
    isEmpty: ordered.length === 0,
    matches(labels) {
      for (const part of conditions) if (!holds(part, labels ?? noLabels)) return false
      return true
    },
    toString: () => ordered.map(printRequirement).join(','),
  }
}

/** A selector may name tens of thousands of values, and is held against every object. */
interface Condition extends LabelRequirement {
  readonly accepted: ReadonlySet<string>
}

function holds({ key, operator, values, accepted }: Condition, labels: LabelMap): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return value !== undefined && accepted.has(value)
    case '!=':
    case 'notin':
      return value === undefined || !accepted.has(value)
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case 'gt':
    case 'lt': {
      if (value === undefined || !integer.test(value)) return false
      const [a, b] = [BigInt(value), BigInt(values[0] ?? '0')]
      return operator === 'gt' ? a > b : a < b
    }
  }
}

const integer = /^[+-]?\d+$/

function printRequirement({ key, operator, values }: LabelRequirement): string {
  const list = [...values].sort().join(',')
  switch (operator) {
    case '!':
      return `!${key}`
    case 'exists':
      return key
    case 'in':
    case 'notin':
      return `${key} ${operator} (${list})`
    case 'gt':
      return `${key}>${list}`
    case 'lt':
      return `${key}<${list}`
    default:
      return `${key}${operator}${list}`
  }
}

/** Checks and makes one requirement. Upstream: labels.NewRequirement. */
function requirement(key: string, operator: SelectorOperator, values: readonly string[]): LabelRequirement {
  const errors: FieldError[] = []
  const path = FieldPath.of('values')
  const keyFaults = isQualifiedName(key)
  if (keyFaults.length > 0) errors.push(fieldError.invalid(FieldPath.of('key'), key, keyFaults.join('; ')))
  if ((operator === 'in' || operator === 'notin') && values.length === 0)
    errors.push(fieldError.invalid(path, values, "for 'in', 'notin' operators, values set can't be empty"))
  if ((operator === 'exists' || operator === '!') && values.length > 0)
    errors.push(fieldError.invalid(path, values, 'values set must be empty for exists and does not exist'))
  if ((operator === 'gt' || operator === 'lt') && !integer.test(values[0] ?? ''))
    errors.push(fieldError.invalid(path.index(0), values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
  for (const [i, value] of values.entries()) {
    const faults = isLabelValue(value)
    if (faults.length > 0) errors.push(fieldError.invalid(path.index(i).key(key), value, faults.join('; ')))
  }
  if (errors.length > 0) {
    const texts = errors.map((error) => `${error.field}: ${error.body}`)
    throw badRequest(texts.length === 1 ? (texts[0] as string) : `[${texts.join(', ')}]`)
  }
  return { key, operator, values }
}

interface Token {
  readonly type: 'identifier' | 'operator' | ',' | '(' | ')' | '!' | 'end' | 'error'
  readonly text: string
}

const symbols = '=!(),><'
const symbolTokens: Readonly<Record<string, Token['type']>> = bareMap({
  ')': ')',
  ',': ',',
  '!': '!',
  '==': 'operator',
  '=': 'operator',
  '>': 'operator',
  '<': 'operator',
  '!=': 'operator',
  '(': '(',
})

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    if (/\s/.test(char)) {
      at++
    } else if (symbols.includes(char)) {
      const two = text.slice(at, at + 2)
      const symbol = symbolTokens[two] ? two : char
      tokens.push({ type: symbolTokens[symbol] ?? 'error', text: symbol })
      at += symbol.length
    } else {
      const start = at
      while (at < text.length && !symbols.includes(text[at] as string) && !/\s/.test(text[at] as string)) at++
      const word = text.slice(start, at)
      tokens.push({ type: 'identifier', text: word })
    }
  }
  return tokens
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { type: 'end', text: '' }
  }

  #take(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = []
    for (;;) {
      const token = this.#peek()
      if (token.type === 'end') return requirements
      if (token.type !== 'identifier' && token.type !== '!') throw badRequest(`found '${token.text}', expected: !, identifier, or 'end of string'`)
      requirements.push(this.#requirement())
      const after = this.#take()
      if (after.type === 'end') return requirements
      if (after.type !== ',') throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`)
      const next = this.#peek()
      if (next.type !== 'identifier' && next.type !== '!') throw badRequest(`found '${next.text}', expected: identifier after ','`)
    }
  }

  #requirement(): LabelRequirement {
    try {
      const negated = this.#peek().type === '!'
      if (negated) this.#take()
      const key = this.#take()
      if (key.type !== 'identifier') throw badRequest(`found '${key.text}', expected: identifier`)
      const faults = isQualifiedName(key.text)
      if (faults.length > 0) throw badRequest(`<nil>: Invalid value: ${JSON.stringify(key.text)}: ${faults.join('; ')}`)
      if (negated) return requirement(key.text, '!', [])
      const next = this.#peek()
      if (next.type === 'end' || next.type === ',') return requirement(key.text, 'exists', [])
      const operator = operatorOf(this.#take())
      const values = operator === 'in' || operator === 'notin' ? this.#values() : this.#exactValue()
      return requirement(key.text, operator, [...new Set(values)].sort())
    } catch (error) {
      throw badRequest(`unable to parse requirement: ${messageOf(error)}`)
    }
  }

  #exactValue(): string[] {
    const token = this.#peek()
    if (token.type === 'end' || token.type === ',') return ['']
    this.#at++
    if (token.type !== 'identifier') throw badRequest(`found '${token.text}', expected: identifier`)
    return [token.text]
  }

  /** `(a,b)`; empty places are empty values. */
  #values(): string[] {
    const open = this.#take()
    if (open.type !== '(') throw badRequest(`found '${open.text}' expected: '('`)
    const values: string[] = []
    for (;;) {
      const token = this.#take()
      if (token.type === 'identifier') {
        values.push(token.text)
        const after = this.#take()
        if (after.type === ')') return values
        if (after.type !== ',') throw badRequest(`found '${after.text}', expected: ',' or ')'`)
        if (this.#peek().type === ')') values.push('')
      } else if (token.type === ',') {
        values.push('')
      } else if (token.type === ')') {
        return values.length === 0 ? [''] : values
      } else throw badRequest(`found '${token.text}', expected: ',', ')' or identifier`)
    }
  }
}

function operatorOf(token: Token): SelectorOperator {
  switch (token.text) {
    case '=':
    case '==':
    case '!=':
    case 'in':
    case 'notin':
      return token.text
    case '>':
      return 'gt'
    case '<':
      return 'lt'
    default:
      throw badRequest(`found '${token.text}', expected: ${binaryOperators}`)
  }
}
