/**
 * Values at the edge of what validation may allow, by the schema of a field. Each ladder begins with the largest value that a request can carry and
 * ends with a modest one: after a refusal the next smaller value is tried.
 */
import type { Schema } from '#api/schema/schema'
import { sample } from './fields.ts'

export interface Ladder {
  readonly name: string
  readonly steps: readonly (() => unknown)[]
}

/** Leaves room for the rest of the object, and for its managed fields, which hold each key again. */
const storedBytes = 1_400_000
/** Just below what a request may have. */
const requestBytes = 3_000_000
const counts = [100_000, 10_000, 1000, 100, 16]

/** One ladder is as long as the others are in all: a field is measured once per ladder. */
export function laddersOf(schema: Schema, name: string): Ladder[] {
  if (schema.format === 'quantity') return quantities
  if (schema.format === 'int-or-string') return [...integers('int32'), ...percentages]
  switch (schema.type) {
    case 'integer':
    case 'number':
      return integers(schema.format)
    case 'string':
      return strings(schema, name)
    case 'array':
      return lists(schema.element, name)
    case 'map':
      return maps(schema.element, name)
    case 'any':
      return [
        ladder('wide', [30_000, 1000], (count) => Object.fromEntries(numbers(count).map((at) => [`k${at}`, {}]))),
        ladder('deep', [2000, 500, 50], nested),
        ladder('text', [storedBytes, 1000], (length) => ({ a: 'a'.repeat(length) })),
      ]
    default:
      return []
  }
}

function ladder<T>(name: string, sizes: readonly T[], make: (size: T) => unknown): Ladder {
  return { name, steps: sizes.map((size) => () => make(size)) }
}

const same = (value: unknown): unknown => value
const digits = (length: number): string => '9'.repeat(length)

const quantities: Ladder[] = [
  ladder('exponent', ['1e2147483647', '1e1000000000', '1e30000000', '1E', '1Gi', '1'], same),
  ladder('small exponent', ['1e-2147483647', '1n', '1m'], same),
  ladder('negative exponent of a negative', ['-1e1000000000', '-1'], same),
  ladder('digits', [requestBytes, storedBytes, 1000, 15], digits),
  ladder('digits of Ki', [storedBytes], (length) => `${digits(length)}Ki`),
  ladder('zeros', [storedBytes], (length) => `1${'0'.repeat(length)}`),
  ladder('digits and a letter', [storedBytes], (length) => `${digits(length)}x`),
]

const percentages: Ladder[] = [
  ladder('percent', ['2147483647%', '100%', '50%'], same),
  ladder('digits', [storedBytes, 15], (length) => `${digits(length)}%`),
  ladder('name', [storedBytes, 15], (length) => 'a'.repeat(length)),
]

function integers(format: Schema['format']): Ladder[] {
  const most = format === 'int64' ? [Number.MAX_SAFE_INTEGER] : []
  return [ladder('largest', [...most, 2 ** 31 - 1, 1_000_000, 65_535, 32_767, 1000, 100, 10], same), ladder('smallest', [-(2 ** 31), -1, 0], same)]
}

/** Strings that patterns walk again and again, and such that are taken apart by their separators. */
const pumps = ['0', '/', '.', '-', ' ', ',', '$(A)', '%41', '::', '\n', '(', '[', '"', 'a.', 'a/', '0.', '1h', '=', 'é']

/** Three for each field, others for the next: every field would be tried for an hour otherwise. */
function chosenPumps(name: string): string[] {
  let hash = 7
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) % 1_000_003
  return [0, 1, 2].map((at) => pumps[(hash + at * 7) % pumps.length] as string)
}

function strings({ enum: allowed, format }: Schema, name: string): Ladder[] {
  const long = ladder('long', [requestBytes, storedBytes, 10_000, 1000, 253, 63], (length) => 'a'.repeat(length))
  if (allowed) return [long]
  if (format === 'byte') return [ladder('long', [storedBytes, 1000], (length) => Buffer.alloc((length * 3) / 4).toString('base64')), long]
  if (format === 'date-time' || format === 'micro-time') {
    const fraction = format === 'micro-time' ? '.999999' : ''
    const times = [`9999-12-31T23:59:59${fraction}Z`, `0001-01-01T00:00:00${fraction}Z`]
    return [...times.map((time) => ladder(time, [time], same)), ladder('fraction', [storedBytes], (length) => `2026-01-01T00:00:00.${digits(length)}Z`), long]
  }
  return [
    long,
    ...chosenPumps(name).map((pump) => ladder(JSON.stringify(pump), [storedBytes], (length) => pump.repeat(Math.floor(length / Buffer.byteLength(pump))))),
  ]
}

function lists(element: Schema | undefined, name: string): Ladder[] {
  const of = element ?? { type: 'string' }
  const one = of.type === 'object' ? of : undefined
  const item = (index: number) => sample(of, name, index)
  return [
    ladder('many', counts, (count) => numbers(fitting(item(99_999), count)).map(item)),
    ladder('many, the same', counts, (count) => numbers(fitting(item(1), count)).map(() => item(1))),
    ...(one
      ? [ladder('many, empty', [100_000, 95_000], (count) => numbers(count).map(() => ({})))]
      : [ladder('of one long string', [storedBytes], (length) => ['a'.repeat(length)])]),
  ]
}

function maps(element: Schema | undefined, name: string): Ladder[] {
  const of = element ?? { type: 'string' }
  const value = (index: number) => (of.type === 'string' && !of.format ? 'v' : sample(of, name, index))
  const entry = { k100000: value(99_999) }
  const amounts = of.format === 'quantity' ? quantities : []
  return [
    ...amounts.map(({ name, steps }) => ({ name, steps: steps.map((step) => () => ({ cpu: step(), memory: '1Gi' })) })),
    ladder('many', counts, (count) => Object.fromEntries(numbers(fitting(entry, count)).map((at) => [`k${at}`, value(at)]))),
    ladder('many qualified', counts, (count) =>
      Object.fromEntries(numbers(fitting({ 'example.com/k100000': value(99_999) }, count)).map((at) => [`example.com/k${at}`, value(at)])),
    ),
    ladder('long key', [storedBytes, 253, 63], (length) => ({ ['k'.repeat(length)]: value(0) })),
    ladder('long value', [storedBytes, 200_000, 63], (length) => ({
      k: of.format === 'byte' ? Buffer.alloc((length * 3) / 4).toString('base64') : of.type === 'string' ? 'v'.repeat(length) : value(0),
    })),
  ]
}

/** As many as fit into what can be stored, or fewer. */
function fitting(item: unknown, count: number): number {
  return Math.min(count, Math.floor(storedBytes / (JSON.stringify(item).length + 1)))
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

function nested(depth: number): unknown {
  let value: unknown = {}
  for (let level = 0; level < depth; level++) value = { a: value }
  return value
}
