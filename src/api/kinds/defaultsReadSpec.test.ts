/** The flag `defaultsReadSpec` of every kind, checked against what its defaults do to random objects. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import type { KubeObject } from '#api/machinery/meta'
import { isObject, type JsonObject } from '#api/machinery/objects'
import { schemaFor } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import { deepCopy } from '#base/frozen'
import { type Random, seededRandom } from '#base/random'
import type { KindStrategy } from './defineKind.ts'
import { strategies } from './index.ts'

const written = ['apiVersion', 'kind', 'metadata', 'status']
const deepest = 6
const objectsPerKind = 1_000

const pick = <T>(random: Random, values: readonly T[]): T => values[random.int(values.length)] as T

/** A random value of a schema: members are often absent, lists and maps short, scalars from few values so that they coincide. */
function randomValue(schema: Schema, random: Random, depth: number): unknown {
  if (schema.enum) return pick(random, schema.enum)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        [...(schema.fields?.values() ?? [])]
          .filter((field) => depth < deepest && (field.required || random.next() < 0.7))
          .map((field) => [field.name, randomValue(field.schema, random, depth + 1)]),
      )
    case 'map':
      return random.next() < 0.4 || !schema.element ? {} : { a: randomValue(schema.element, random, depth + 1) }
    case 'array':
      return random.next() < 0.2 || depth > deepest || !schema.element ? [] : [randomValue(schema.element, random, depth + 1)]
    case 'integer':
    case 'number':
      return pick(random, [0, 1, 80])
    case 'boolean':
      return random.next() < 0.5
    case 'string':
      return schema.format === 'quantity' ? '1' : pick(random, ['', 'a', 'v1', 'LoadBalancer', 'True'])
    default:
      return pick(random, [1, 'a'])
  }
}

const schemasOf = ({ group, kind }: KindStrategy) =>
  builtInResources()
    .filter((facts) => facts.group === group && facts.kind === kind)
    .map(({ version }) => ({ version, schema: schemaFor(group, version, kind) }))

/** True when an object's defaults outside of its spec depend on its spec, or fail without it, for one of many random objects. */
function readsSpec(strategy: KindStrategy, version: string, schema: Schema): boolean {
  const random = seededRandom(42)
  const outside = (object: JsonObject) => {
    const copy = deepCopy(object) as JsonObject
    try {
      strategy.defaults?.(copy as unknown as KubeObject, version)
    } catch (error) {
      return error
    }
    return written.map((field) => copy[field])
  }
  for (let round = 0; round < objectsPerKind; round++) {
    const whole = randomValue(schema, random, 0) as JsonObject
    whole.metadata ??= {}
    const rest = Object.fromEntries(Object.entries(whole).filter(([field, value]) => written.includes(field) || !isObject(value)))
    if (!isEqual(outside(whole), outside(rest))) return true
  }
  return false
}

function isEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}

const hasStatusEndpoint = new Set(
  builtInResources().flatMap(({ group, kind, subresources }) => (subresources.some(({ name }) => name === 'status') ? [`${group}/${kind}`] : [])),
)

for (const strategy of strategies.filter(({ defaults, group, kind }) => defaults && hasStatusEndpoint.has(`${group}/${kind}`))) {
  test(`API-14 ${strategy.group}/${strategy.kind} says whether its defaults outside of the spec depend on the spec`, () => {
    const known = schemasOf(strategy).filter(({ schema }) => schema)
    assert.ok(known.length > 0, 'a schema')
    const reads = known.some(({ version, schema }) => readsSpec(strategy, version, schema as Schema))
    assert.equal(reads, strategy.defaultsReadSpec ?? false)
  })
}

test('API-14 no kind without defaults or without a status endpoint says that its defaults read the spec', () => {
  const wrong = strategies.filter(({ defaults, defaultsReadSpec, group, kind }) => defaultsReadSpec && !(defaults && hasStatusEndpoint.has(`${group}/${kind}`)))
  assert.deepEqual(wrong, [])
})
