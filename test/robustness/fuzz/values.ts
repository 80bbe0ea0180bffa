/** Random values: objects that a schema allows, and JSON values with something wrong in them. */
import type { Schema } from '#api/schema/schema'
import type { Chance } from './chance.ts'

const words = [
  ...['a', 'b', 'default', 'fuzz', 'kube-system', 'web-0', 'x.example.com', 'example.com/x', 'kubernetes.io/x', 'UPPER_case', '-', 'a'.repeat(64)],
  ...['', ' ', '0', '10', '-1', '1e3', '1Gi', '100m', '50%', 'true', 'null', '10.0.0.1', '10.96.0.0/12', 'fe80::1', '::/0', '2026-01-01T00:00:00Z'],
  ...['2026-01-01T00:00:00.000000Z', '* * * * *', '1h30m', '/', '/x/../y', 'http://x', 'YQ==', '{}', '[]', 'a=b', 'a in (b)', '$(x)', 'Always', 'TCP'],
  ...['ClusterIP', 'Never', 'Delete', 'self.a == 1', 'object.spec.x', '(', '[a-', '(a+)+$', 'é', '\u0000', '\ud800', '😀', '__proto__', 'constructor'],
]
const numbers = [0, 1, -1, 2, 7, 80, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 53, -(2 ** 53), 1e21, 0.5, -0, 1e300]

export function word(chance: Chance): string {
  return chance.once(60) ? chance.pick(words).repeat(200) : chance.pick(words)
}

/** A value of the schema's shape; deeper, fewer optional fields. */
export function randomValue(schema: Schema, chance: Chance, depth = 0): unknown {
  if (depth > 12) return null
  if (schema.enum && !chance.once(5)) return chance.pick(schema.enum)
  switch (schema.type) {
    case 'object':
      return objectOf(schema, chance, depth)
    case 'map':
      return Object.fromEntries(
        several(chance, depth).map(() => [word(chance), schema.element ? randomValue(schema.element, chance, depth + 1) : word(chance)]),
      )
    case 'array':
      return several(chance, depth).map(() => (schema.element ? randomValue(schema.element, chance, depth + 1) : word(chance)))
    case 'string':
      return word(chance)
    case 'integer':
    case 'number':
      return chance.pick(numbers)
    case 'boolean':
      return chance.once(2)
    case 'any':
      return schema.format === 'quantity' || schema.format === 'int-or-string' ? chance.pick([...words, ...numbers]) : oddValue(chance)
  }
}

function objectOf(schema: Schema, chance: Chance, depth: number): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const field of schema.fields?.values() ?? []) {
    if (field.required || chance.once(3 + depth * 2)) object[field.name] = randomValue(field.schema, chance, depth + 1)
  }
  return object
}

function several(chance: Chance, depth: number): undefined[] {
  return new Array<undefined>(chance.int(depth > 6 ? 1 : 3)).fill(undefined)
}

/** Something that is probably not what is expected. */
export function oddValue(chance: Chance): unknown {
  return chance.weighted<() => unknown>([
    [4, () => null],
    [6, () => word(chance)],
    [6, () => chance.pick(numbers)],
    [2, () => chance.once(2)],
    [3, () => []],
    [3, () => ({})],
    [2, () => [word(chance), chance.pick(numbers), null]],
    [2, () => ({ [word(chance)]: word(chance) })],
    [1, () => nested(chance.pick([5, 50, 500]), chance.once(2))],
  ])()
}

function nested(depth: number, inArrays: boolean): unknown {
  let value: unknown = {}
  for (let level = 0; level < depth; level++) value = inArrays ? [value] : { a: value }
  return value
}

/** Changes a few places of a value, which it takes over. */
export function mutate(value: unknown, chance: Chance, schema?: Schema): unknown {
  for (let change = chance.int(3); change >= 0; change--) {
    const at = randomPlace(value, chance, schema)
    if (!at) return oddValue(chance)
    changeAt(at, chance)
  }
  return value
}

interface Place {
  readonly parent: Record<string, unknown> | unknown[]
  readonly key: string
  readonly schema: Schema | undefined
}

function changeAt({ parent, key, schema }: Place, chance: Chance): void {
  const holder = parent as Record<string, unknown>
  const change = chance.int(7)
  if (change === 0) delete holder[key]
  else if (change === 1 && schema) holder[key] = randomValue(schema, chance, 3)
  else if (change === 2 && Array.isArray(parent)) parent.push(...parent.slice(0, 3))
  else if (change === 3 && !Array.isArray(parent)) defineOwn(holder, word(chance), oddValue(chance))
  else if (change === 4 && schema?.type === 'object') addField(holder, key, schema, chance)
  else holder[key] = oddValue(chance)
}

/** `__proto__` is a name like any other in JSON. */
function defineOwn(holder: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(holder, name, { value, enumerable: true, writable: true, configurable: true })
}

function addField(holder: Record<string, unknown>, key: string, schema: Schema, chance: Chance): void {
  const field = chance.pick([...(schema.fields?.values() ?? [])])
  const object = holder[key]
  if (field && typeof object === 'object' && object !== null) defineOwn(object as Record<string, unknown>, field.name, randomValue(field.schema, chance, 2))
}

function randomPlace(value: unknown, chance: Chance, schema: Schema | undefined): Place | undefined {
  let at: Place | undefined
  let current = value
  let type = schema
  for (let depth = 0; typeof current === 'object' && current !== null; depth++) {
    const keys = Object.keys(current)
    if (keys.length === 0 || (depth > 0 && chance.once(4))) break
    const key = chance.pick(keys)
    const parent = current as Record<string, unknown>
    type = type?.fields?.get(key)?.schema ?? type?.element
    at = { parent, key, schema: type }
    current = parent[key]
  }
  return at
}
