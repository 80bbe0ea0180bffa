/**
 * The JSONPath of printer columns, selectable fields and scale paths (L1): `.spec.items[0].name`, `.metadata.labels.app\.kubernetes\.io/name`,
 * `.status.conditions[?(@.type=="Ready")].status`, `[*]`, slices and `..name`. Compiled once.
 * Upstream: client-go/util/jsonpath, with missing keys allowed.
 */
import { bareMap } from '#base/bareMap'

/** What one value leads to, in document order, found as it is asked for. */
type Step = (value: unknown, walk: Walk) => Iterable<unknown>

/** One walk along a path. The walks of its filters share its budget. */
interface Walk {
  readonly budget: { left: number }
  /** The objects each descent has been in: a second time it would find the same again. */
  readonly visited: Map<Step, Set<object>>
}

/** So many values one evaluation may look at. A path that needs more finds nothing. */
const maxSteps = 20_000
/** So deep filters may stand in each other. */
const maxNesting = 32

export class JsonPathError extends Error {}

class OutOfSteps extends Error {}

/**
 * Compiles a path; braces around it are optional. The returned function gives all results in document order.
 * @throws JsonPathError when the text is no path
 */
export function compileJsonPath(text: string): (value: unknown) => unknown[] {
  const steps = compileSteps(text, 0)
  return (value) => bounded((budget) => [...results(steps, value, budget)]) ?? []
}

/**
 * Like compileJsonPath, for the first result alone: it looks no further than that.
 * @throws JsonPathError when the text is no path
 */
export function compileFirstOfJsonPath(text: string): (value: unknown) => unknown {
  const steps = compileSteps(text, 0)
  return (value) => bounded((budget) => first(steps, value, budget))
}

function bounded<T>(evaluate: (budget: Walk['budget']) => T): T | undefined {
  try {
    return evaluate({ left: maxSteps })
  } catch (error) {
    if (error instanceof OutOfSteps) return undefined
    throw error
  }
}

function spend({ budget }: Pick<Walk, 'budget'>, steps: number): void {
  budget.left -= steps
  if (budget.left < 0) throw new OutOfSteps()
}

/** Depth first, without recursion: a path may have very many steps. */
function* results(steps: readonly Step[], value: unknown, budget: Walk['budget']): Generator<unknown> {
  const walk: Walk = { budget, visited: new Map() }
  const open: Iterator<unknown>[] = [[value].values()]
  for (let current = open.at(-1); current; current = open.at(-1)) {
    spend(walk, 1)
    const next = current.next()
    if (next.done) open.pop()
    else if (open.length > steps.length) yield next.value
    else open.push((steps[open.length - 1] as Step)(next.value, walk)[Symbol.iterator]())
  }
}

function first(steps: readonly Step[], value: unknown, budget: Walk['budget']): unknown {
  for (const found of results(steps, value, budget)) return found
  return undefined
}

function compileSteps(text: string, nesting: number): Step[] {
  if (nesting > maxNesting) throw new JsonPathError('too many filters in each other')
  return parse(text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : text, nesting)
}

function parse(text: string, nesting: number): Step[] {
  const steps: Step[] = []
  let at = text.startsWith('$') || text.startsWith('@') ? 1 : 0
  while (at < text.length) {
    if (text.startsWith('..', at)) {
      const { name, end } = readName(text, at + 2)
      steps.push(descend(name))
      at = end
    } else if (text[at] === '.') {
      const { name, end } = readName(text, at + 1)
      if (name === '*') steps.push(membersOf)
      else if (name !== '') steps.push(field(name))
      at = end
    } else if (text[at] === '[') {
      const end = closing(text, at)
      steps.push(bracket(text.slice(at + 1, end).trim(), nesting))
      at = end + 1
    } else throw new JsonPathError(`unrecognized character in action: ${JSON.stringify(text[at])}`)
  }
  return steps
}

/** A field's name up to the next dot or bracket; a backslash makes the next character part of the name. */
function readName(text: string, start: number): { name: string; end: number } {
  let name = ''
  let at = start
  for (; at < text.length && text[at] !== '.' && text[at] !== '['; at++) {
    if (text[at] === '\\' && at + 1 < text.length) at++
    name += text[at]
  }
  return { name, end: at }
}

/** The bracket that closes the one at `start`, past quotes and nested ones. */
function closing(text: string, start: number): number {
  let depth = 0
  let quote = ''
  for (let at = start; at < text.length; at++) {
    const char = text[at] as string
    if (quote !== '') {
      if (char === quote && text[at - 1] !== '\\') quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '[') depth++
    else if (char === ']' && --depth === 0) return at
  }
  throw new JsonPathError('unterminated array')
}

function bracket(body: string, nesting: number): Step {
  if (body === '*') return membersOf
  const quoted = /^(['"])(.*)\1$/s.exec(body)
  if (quoted) return field(quoted[2] as string)
  if (body.startsWith('?(') && body.endsWith(')')) return filter(body.slice(2, -1), nesting)
  if (/^-?\d+(,-?\d+)*$/.test(body)) return elements(body.split(',').map(Number))
  const slice = /^(-?\d*):(-?\d*)(?::(\d+))?$/.exec(body)
  if (!slice) throw new JsonPathError(`invalid array index ${body}`)
  const [, from, to, step = '1'] = slice
  return (value, walk) => {
    if (!Array.isArray(value)) return []
    const part = value.slice(from === '' ? 0 : Number(from), to === '' ? undefined : Number(to))
    spend(walk, part.length)
    return part.filter((_, index) => index % Number(step) === 0)
  }
}

function elements(indexes: readonly number[]): Step {
  return function* (value) {
    if (!Array.isArray(value)) return
    for (const index of indexes) yield* value.slice(index, index === -1 ? undefined : index + 1)
  }
}

function field(name: string): Step {
  return (value) => (typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? [(value as Record<string, unknown>)[name]] : [])
}

function descend(name: string): Step {
  const isAny = name === '' || name === '*'
  const step: Step = function* (start, walk) {
    const visited = walk.visited.get(step) ?? new Set()
    walk.visited.set(step, visited)
    const rest = [start]
    while (rest.length > 0) {
      const value = rest.pop()
      if (typeof value !== 'object' || value === null || visited.has(value)) continue
      visited.add(value)
      if (isAny) yield value
      else if (Object.hasOwn(value, name)) yield (value as Record<string, unknown>)[name]
      const members: unknown[] = Object.values(value)
      spend(walk, members.length)
      for (let at = members.length - 1; at >= 0; at--) rest.push(members[at])
    }
  }
  return step
}

function membersOf(value: unknown): Iterable<unknown> {
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}

const comparisons: Readonly<Record<string, (left: unknown, right: unknown) => boolean>> = bareMap({
  '==': (left, right) => left === right,
  '!=': (left, right) => left !== right,
  '<': (left, right) => (left as number) < (right as number),
  '>': (left, right) => (left as number) > (right as number),
  '<=': (left, right) => (left as number) <= (right as number),
  '>=': (left, right) => (left as number) >= (right as number),
})

/** `@.type=="Ready"`, or a path alone, which asks whether it is there. */
function filter(text: string, nesting: number): Step {
  const match = /^(.*?)(==|!=|<=|>=|<|>)(.*)$/s.exec(text)
  const left = compileSteps((match?.[1] ?? text).trim(), nesting + 1)
  const holds = match ? (comparisons[match[2] as string] as (left: unknown, right: unknown) => boolean) : undefined
  const right = match ? operand((match[3] as string).trim(), nesting) : undefined
  return function* (value, { budget }) {
    if (!Array.isArray(value)) return
    for (const item of value) {
      const found = results(left, item, budget).next()
      if (!found.done && (!holds || holds(found.value, right?.(item, budget)))) yield item
    }
  }
}

function operand(text: string, nesting: number): (item: unknown, budget: Walk['budget']) => unknown {
  const quoted = /^(['"])(.*)\1$/s.exec(text)
  if (quoted) return () => quoted[2]
  if (text === 'true' || text === 'false') return () => text === 'true'
  if (text !== '' && !Number.isNaN(Number(text))) return () => Number(text)
  const steps = compileSteps(text, nesting + 1)
  return (item, budget) => first(steps, item, budget)
}
