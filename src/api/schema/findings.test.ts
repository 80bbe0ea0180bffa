import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { isStatus } from '../machinery/status.ts'
import { Allowance } from './findings.ts'
import { compileValidation } from './structuralValidation.ts'

const schema = (props: object) => props as JSONSchemaProps
const numbers = (length: number, from = 0) => Array.from({ length }, (_, index) => index + from)
const bodies = (errors: readonly { body: string }[]) => errors.map(({ body }) => body)

/** Whether validating takes no more than so many steps. */
function isWithin(props: object, value: unknown, steps: number, old?: unknown): boolean {
  try {
    compileValidation(schema(props), '', steps)(value, ...(old === undefined ? [] : [old]))
    return true
  } catch (error) {
    assert.ok(isStatus(error, 'RequestEntityTooLarge'), String(error))
    return false
  }
}

const nested = (depth: number): object => (depth === 0 ? { enum: ['never'] } : { anyOf: [nested(depth - 1)], properties: { a: {} } })
const deep = (depth: number): unknown => (depth === 0 ? {} : { a: deep(depth - 1) })
const deepSchema = (depth: number): object => (depth === 0 ? { required: ['b'] } : { required: ['b'], properties: { a: deepSchema(depth - 1) } })

const costs = [
  {
    name: 'an alternative that fits ends the search',
    props: { items: { anyOf: [{}, ...numbers(3_000).map((n) => ({ enum: [n] }))] } },
    value: numbers(3_000),
    steps: 6_100,
  },
  { name: 'choices are looked up, not searched', props: { items: { enum: numbers(3_000) } }, value: numbers(3_000), steps: 3_100 },
  { name: 'nested alternatives are tried once per level, not twice', props: nested(100), value: 'x', steps: 6_000 },
  { name: 'a long text costs by its length', props: { pattern: 'a+$' }, value: 'a'.repeat(16_000), steps: 1_100 },
] as const
for (const { name, props, value, steps } of costs) {
  test(`CRD-05 validation: ${name}`, () => {
    assert.equal(isWithin(props, value, steps), true)
    assert.equal(isWithin(props, value, Math.floor(steps / 10)), false)
  })
}

test('CRD-05 validation: an object with more alternatives to try than a second has time for is refused', () => {
  const props = { items: { anyOf: numbers(4_000).map((n) => ({ required: [`a${n}`] })) } }
  assert.throws(() => compileValidation(schema(props))(numbers(3_000).map(() => ({}))), /takes too long/)
})

test('CRD-05 validation: only the faults of the nearest alternative are worded', () => {
  const near = { properties: { kind: { enum: ['b'] }, size: { minimum: 5 } } }
  const props = { anyOf: [{ required: ['x'] }, near, { required: ['y'] }] }
  assert.deepEqual(bodies(compileValidation(schema(props))({ kind: 'a', size: 1 })), [
    'Invalid value: "": "" must validate at least one schema (anyOf)',
    'Unsupported value: "a": supported values: "b"',
    'Invalid value: 1: size in body should be greater than or equal to 5',
  ])
})

test('CRD-05 validation: allOf tells the faults of all, and what was wrong before stays tolerated inside alternatives', () => {
  const props = { properties: { list: { allOf: [{ minItems: 3 }, { maxItems: 1 }, {}] }, name: { anyOf: [{ pattern: '^b' }, { pattern: '^c' }] } } }
  const validate = compileValidation(schema(props))
  assert.deepEqual(bodies(validate({ list: [1, 2] })), [
    'Invalid value: 2: list in body should have at least 3 items',
    'Too many: 2: must have at most 1 items',
    'Invalid value: "": "list" must validate all the schemas (allOf)',
  ])
  assert.deepEqual(bodies(validate({ list: [1, 2], name: 'a' }, { list: [1, 2], name: 'a', other: 1 })), [])
})

test('CRD-05 validation: old and new parts are compared once, whatever the depth', () => {
  const allowance = new Allowance()
  let reads = 0
  const counted = (value: Record<string, unknown>) =>
    new Proxy(value, {
      ownKeys(target) {
        reads++
        return Reflect.ownKeys(target)
      },
    })
  const chain = (depth: number): Record<string, unknown> => counted(depth === 0 ? {} : { a: chain(depth - 1) })
  const [value, old] = [chain(200), chain(200)]
  const pairs: [unknown, unknown][] = []
  for (let [a, b]: [unknown, unknown] = [value, old]; a !== undefined; [a, b] = [(a as { a?: unknown }).a, (b as { a?: unknown }).a]) pairs.push([a, b])
  for (const [a, b] of pairs.reverse()) assert.equal(allowance.same(a, b), true)
  assert.ok(reads <= 2 * 201, `${reads} reads`)
  assert.equal(compileValidation(schema(deepSchema(200)))(deep(200), deep(200)).length, 0)
})
