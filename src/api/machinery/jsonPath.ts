/**
 * The JSONPath of printer columns, selectable fields and scale paths (L1): `.spec.items[0].name`, `.metadata.labels.app\.kubernetes\.io/name`,
 * `.status.conditions[?(@.type=="Ready")].status`, `[*]`, slices and `..name`. Compiled once.
 * Upstream: client-go/util/jsonpath, with missing keys allowed.
 */
import { bareMap } from '#base/bareMap'

type Values = readonly unknown[]
type Step = (values: Values) => unknown[]

export class JsonPathError extends Error {}

/**
 * Compiles a path; braces around it are optional. The returned function gives all results in document order.
 * @throws JsonPathError when the text is no path
 */
export function compileJsonPath(text: string): (value: unknown) => unknown[] {
  const steps = parse(text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : text)
  return (value) => {
    let values: Values = [value]
    for (const step of steps) values = step(values)
    return [...values]
  }
}

function parse(text: string): Step[] {
  const steps: Step[] = []
  let at = text.startsWith('$') || text.startsWith('@') ? 1 : 0
  while (at < text.length) {
    if (text.startsWith('..', at)) {
      const { name, end } = readName(text, at + 2)
      steps.push(descend(name))
      at = end
    } else if (text[at] === '.') {
      const { name, end } = readName(text, at + 1)
      if (name === '*') steps.push((values) => values.flatMap(membersOf))
      else if (name !== '') steps.push(field(name))
      at = end
    } else if (text[at] === '[') {
      const end = closing(text, at)
      steps.push(bracket(text.slice(at + 1, end).trim()))
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

function bracket(body: string): Step {
  if (body === '*') return (values) => values.flatMap(membersOf)
  const quoted = /^(['"])(.*)\1$/s.exec(body)
  if (quoted) return field(quoted[2] as string)
  if (body.startsWith('?(') && body.endsWith(')')) return filter(body.slice(2, -1))
  if (/^-?\d+(,-?\d+)*$/.test(body)) {
    const indexes = body.split(',').map(Number)
    return (values) =>
      values.flatMap((value) => (Array.isArray(value) ? indexes.flatMap((index) => value.slice(index, index === -1 ? undefined : index + 1)) : []))
  }
  const slice = /^(-?\d*):(-?\d*)(?::(\d+))?$/.exec(body)
  if (!slice) throw new JsonPathError(`invalid array index ${body}`)
  const [, from, to, step = '1'] = slice
  return (values) =>
    values.flatMap((value) =>
      Array.isArray(value)
        ? value.slice(from === '' ? 0 : Number(from), to === '' ? undefined : Number(to)).filter((_, index) => index % Number(step) === 0)
        : [],
    )
}

function field(name: string): Step {
  return (values) =>
    values.flatMap((value) => (typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? [(value as Record<string, unknown>)[name]] : []))
}

function descend(name: string): Step {
  const found = (value: unknown): unknown[] => {
    if (typeof value !== 'object' || value === null) return []
    const here = name === '' || name === '*' ? [value] : Object.hasOwn(value, name) ? [(value as Record<string, unknown>)[name]] : []
    return [...here, ...Object.values(value).flatMap(found)]
  }
  return (values) => values.flatMap(found)
}

function membersOf(value: unknown): unknown[] {
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
function filter(text: string): Step {
  const match = /^(.*?)(==|!=|<=|>=|<|>)(.*)$/s.exec(text)
  const left = compileJsonPath((match?.[1] ?? text).trim())
  if (!match) return (values) => values.flatMap((value) => (Array.isArray(value) ? value.filter((item) => left(item).length > 0) : []))
  const holds = comparisons[match[2] as string] as (left: unknown, right: unknown) => boolean
  const right = operand((match[3] as string).trim())
  return (values) =>
    values.flatMap((value) =>
      Array.isArray(value)
        ? value.filter((item) => {
            const found = left(item)
            return found.length > 0 && holds(found[0], right(item))
          })
        : [],
    )
}

function operand(text: string): (item: unknown) => unknown {
  const quoted = /^(['"])(.*)\1$/s.exec(text)
  if (quoted) return () => quoted[2]
  if (text === 'true' || text === 'false') return () => text === 'true'
  if (text !== '' && !Number.isNaN(Number(text))) return () => Number(text)
  const path = compileJsonPath(text)
  return (item) => path(item)[0]
}
