/**
 * The functions of templates (testing): Go's own, KWOK's functions that need no cluster, and the sprig functions that Stages use.
 * Upstream: Go text/template/funcs.go, kwok pkg/utils/gotpl/funcs.go.
 */
import { toYaml } from '#api/machinery/yaml'
import { formatTime } from '#base/time'
import { TemplateError } from './templateSyntax.ts'

export type TemplateFunctions = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>

/** Nothing, false, zero and what is empty is not true. */
export function isTrue(value: unknown): boolean {
  if (value === null || value === undefined) return false
  if (Array.isArray(value)) return value.length > 0
  if (typeof value === 'object') return Object.keys(value).length > 0
  return Boolean(value)
}

/** As Go prints it; lists and maps go through YAML, because Go's own form is no YAML. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '<no value>'
  if (typeof value === 'object') throw new TemplateError('a list or a map cannot be printed: use YAML')
  return String(value)
}

const isNothing = (value: unknown) => value === undefined || value === null

function compare(a: unknown, b: unknown): number {
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) {
    throw new TemplateError(`${JSON.stringify(a)} and ${JSON.stringify(b)} cannot be compared`)
  }
  return a < (b as typeof a) ? -1 : a > (b as typeof a) ? 1 : 0
}

function index(value: unknown, ...keys: readonly unknown[]): unknown {
  let found = value
  for (const key of keys) {
    if (isNothing(found)) throw new TemplateError(`index ${JSON.stringify(key)}: of nothing`)
    if (Array.isArray(found)) {
      if (typeof key !== 'number' || key < 0 || key >= found.length) {
        throw new TemplateError(`index ${JSON.stringify(key)}: out of range, the list has ${found.length}`)
      }
      found = found[key]
    } else if (typeof found === 'object') found = Object.hasOwn(found as object, String(key)) ? (found as Record<string, unknown>)[String(key)] : undefined
    else throw new TemplateError(`index ${JSON.stringify(key)}: of ${JSON.stringify(found)}`)
  }
  return found
}

/** JSON of a text; of anything else, a text that holds its JSON. */
function quote(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(JSON.stringify(value ?? null))
}

function yaml(value: unknown, indent: unknown = 0): string {
  const text = toYaml(value)
  if (typeof indent !== 'number' || indent <= 0) return text
  return `\n${text}`.replaceAll('\n', `\n${'  '.repeat(indent)}`)
}

function printf(format: unknown, ...values: readonly unknown[]): string {
  let next = 0
  return String(format).replace(/%(.)/g, (_, verb: string) => {
    if (verb === '%') return '%'
    if (!'sdvq'.includes(verb)) throw new TemplateError(`printf: %${verb} is not supported; there are %s, %d, %v and %q`)
    const text = textOf(values[next++])
    return verb === 'q' ? JSON.stringify(text) : text
  })
}

function dict(...pairs: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(pairs.flatMap((key, at) => (at % 2 === 0 ? [[String(key), pairs[at + 1]]] : [])))
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length
  if (typeof value === 'object' && value !== null) return Object.keys(value).length
  throw new TemplateError(`len of ${JSON.stringify(value ?? null)}`)
}

const firstTrue = (...values: readonly unknown[]) => values.find(isTrue) ?? values.at(-1)
const firstFalse = (...values: readonly unknown[]) => (values.every(isTrue) ? values.at(-1) : values.find((value) => !isTrue(value)))

/** Conditions that a kubelet reports for a healthy node. */
export const nodeConditions = [
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
  { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory', message: 'kubelet has sufficient memory available' },
  { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' },
  { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' },
  { type: 'NetworkUnavailable', status: 'False', reason: 'RouteCreated', message: 'RouteController created a route' },
] as const

/** All that need no cluster. */
export function genericFunctions(nowMs: () => number, startMs: number): TemplateFunctions {
  return {
    or: firstTrue,
    and: firstFalse,
    not: (value) => !isTrue(value),
    eq: (a, ...others) => others.some((b) => a === b || (isNothing(a) && isNothing(b))),
    ne: (a, b) => a !== b,
    lt: (a, b) => compare(a, b) < 0,
    le: (a, b) => compare(a, b) <= 0,
    gt: (a, b) => compare(a, b) > 0,
    ge: (a, b) => compare(a, b) >= 0,
    len: sizeOf,
    index,
    print: (...values) => values.map(textOf).join(''),
    printf,
    dict,
    list: (...values) => values,
    default: (fallback, value) => (isTrue(value) ? value : fallback),
    quote: (...values) => values.map((value) => JSON.stringify(textOf(value))).join(' '),
    lower: (value) => textOf(value).toLowerCase(),
    upper: (value) => textOf(value).toUpperCase(),
    trim: (value) => textOf(value).trim(),
    add: (...values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
    Quote: quote,
    YAML: yaml,
    Now: () => formatTime(nowMs()),
    now: () => formatTime(nowMs()),
    StartTime: () => formatTime(startMs),
    Version: () => 'skiff',
    NodeConditions: () => nodeConditions,
  }
}
