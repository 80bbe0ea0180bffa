/** CRD-02: what CEL rules see of custom resources: types, names, sizes, values, and lists that are sets or maps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toJson } from '#cel/json'
import { formatType } from '#cel/types'
import type { JSONSchemaProps } from '../gen/types/apiextensions.v1.ts'
import { declaredSizes, declareSchema } from './declaration.ts'
import { kubernetesEnvironment } from './environment.ts'
import { escapeIdentifier } from './escaping.ts'

const text: JSONSchemaProps = { type: 'string' }
const integer: JSONSchemaProps = { type: 'integer' }
const object = (properties: Record<string, JSONSchemaProps>, more: JSONSchemaProps = {}): JSONSchemaProps => ({ type: 'object', properties, ...more })
const array = (items: JSONSchemaProps, more: JSONSchemaProps = {}): JSONSchemaProps => ({ type: 'array', items, ...more })

function declare(props: JSONSchemaProps, isRoot = false) {
  const declaration = declareSchema(props, 'Self', isRoot)
  assert.ok(declaration)
  return declaration
}

/** The value of a rule on `self`, or what went wrong. */
function evaluate(props: JSONSchemaProps, expression: string, self: unknown, oldSelf: unknown = self, isRoot = false): unknown {
  const declaration = declare(props, isRoot)
  const compiled = kubernetesEnvironment.extend({ variables: { self: declaration.type, oldSelf: declaration.type } }).compile(expression)
  if (!compiled.ok) return compiled.issues.map(({ message }) => message).join('; ')
  const values = new Map([
    ['self', declaration.toValue(self)],
    ['oldSelf', declaration.toValue(oldSelf)],
  ])
  const { value, error } = compiled.program.evaluate(values)
  return error ? error.message : toJson(value)
}

const scalars = object({
  n: integer,
  d: { type: 'number' },
  b: { type: 'boolean' },
  s: text,
  bytes: { type: 'string', format: 'byte' },
  at: { type: 'string', format: 'date-time' },
  day: { type: 'string', format: 'date' },
  span: { type: 'string', format: 'duration' },
  either: { 'x-kubernetes-int-or-string': true },
  maybe: { type: 'string', nullable: true },
  unknown: { 'x-kubernetes-preserve-unknown-fields': true },
})

const rules: [name: string, props: JSONSchemaProps, expression: string, self: unknown, wanted: unknown][] = [
  ['whole numbers are ints', scalars, 'self.n + 1 == 3 && type(self.n) == int', { n: 2 }, true],
  ['numbers are doubles, whole ones too', scalars, 'self.d / 2.0 == 0.5 && type(self.d) == double', { d: 1 }, true],
  ['ints and doubles compare', scalars, 'self.n < self.d', { n: 1, d: 1.5 }, true],
  ['booleans', scalars, '!self.b', { b: false }, true],
  ['bytes are decoded', scalars, "self.bytes == b'hi'", { bytes: 'aGk=' }, true],
  ['times', scalars, 'self.at.getFullYear()', { at: '2024-02-29T12:00:00Z' }, 2024],
  ['dates', scalars, "self.day < timestamp('2024-03-01T00:00:00Z')", { day: '2024-02-29' }, true],
  ['durations', scalars, "self.span >= duration('30m')", { span: '1h' }, true],
  ['a duration that is none', scalars, "self.span >= duration('30m')", { span: 'soon' }, 'Invalid duration soon'],
  ['int or string: an int', scalars, "type(self.either) == int ? self.either < 5 : self.either == 'x'", { either: 4 }, true],
  ['int or string: a string', scalars, "type(self.either) == string && self.either.endsWith('%')", { either: '40%' }, true],
  ['absent fields', scalars, 'has(self.n)', {}, false],
  ['reading an absent field fails', scalars, 'self.n == 1', {}, 'no such key: n'],
  ['optional fields', scalars, 'self.?n.orValue(7)', {}, 7],
  ['a null field counts as absent', scalars, 'has(self.maybe)', { maybe: null }, false],
  ['names of JavaScript are no fields', object({ constructor: text }), 'has(self.constructor)', {}, false],
  ['what is kept unknown is not declared', scalars, 'has(self.unknown)', { unknown: 1 }, "undefined field 'unknown'"],
  ['undeclared names', scalars, 'self.nope', {}, "undefined field 'nope'"],
  [
    'escaped names',
    object({ 'a-b': integer, 'x.y/z': integer, namespace: text, a__b: text }),
    'self.a__dash__b + self.x__dot__y__slash__z',
    { 'a-b': 1, 'x.y/z': 2 },
    3,
  ],
  ['keywords', object({ namespace: text }), "self.__namespace__ == 'x'", { namespace: 'x' }, true],
  ['maps', object({ m: { type: 'object', additionalProperties: integer } }), "self.m.all(k, k.startsWith('a')) && self.m['ab'] == 1", { m: { ab: 1 } }, true],
  ['maps have no prototype', object({ m: { type: 'object', additionalProperties: text } }), "'toString' in self.m", { m: {} }, false],
  ['lists', object({ l: array(integer) }), 'self.l.sum() == 6 && self.l[2] == 3', { l: [1, 2, 3] }, true],
  ['lists of objects', object({ l: array(object({ name: text })) }), 'self.l.map(x, x.name)', { l: [{ name: 'a' }, { name: 'b' }] }, ['a', 'b']],
  [
    'sets compare without order',
    object({ a: array(text, { 'x-kubernetes-list-type': 'set' }), b: array(text) }),
    'self.a == self.b',
    { a: ['x', 'y'], b: ['y', 'x'] },
    true,
  ],
  ['atomic lists compare in order', object({ a: array(text), b: array(text) }), 'self.a == self.b', { a: ['x', 'y'], b: ['y', 'x'] }, false],
  ['sets add as a union', object({ a: array(text, { 'x-kubernetes-list-type': 'set' }) }), "self.a + ['y', 'z']", { a: ['x', 'y'] }, ['x', 'y', 'z']],
  ['sets of fractions', object({ a: array({ type: 'number' }, { 'x-kubernetes-list-type': 'set' }) }), 'self.a == [2.5, 1.5]', { a: [1.5, 2.5] }, true],
]
for (const [name, props, expression, self, wanted] of rules) test(`CRD-02: ${name}`, () => assert.deepEqual(evaluate(props, expression, self), wanted))

test('CRD-02: map lists compare by key and merge when added', () => {
  const item = object({ name: text, port: integer })
  const props = object({ ports: array(item, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }) })
  const self = {
    ports: [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ],
  }
  const swapped = {
    ports: [
      { name: 'b', port: 2 },
      { name: 'a', port: 1 },
    ],
  }
  const changed = {
    ports: [
      { name: 'b', port: 3 },
      { name: 'c', port: 4 },
    ],
  }
  assert.equal(evaluate(props, 'self.ports == oldSelf.ports', self, swapped), true)
  assert.equal(evaluate(props, 'self.ports == oldSelf.ports', self, changed), false)
  assert.deepEqual(evaluate(props, '(self.ports + oldSelf.ports).map(p, p.port)', self, changed), [1, 3, 4])
})

test('CRD-02: whole objects compare by what is declared and by what is not', () => {
  const props = object({ spec: object({ n: integer }, { 'x-kubernetes-preserve-unknown-fields': true }) })
  assert.equal(evaluate(props, 'self.spec == oldSelf.spec', { spec: { n: 1, extra: { a: [1] } } }, { spec: { extra: { a: [1] }, n: 1 } }), true)
  assert.equal(evaluate(props, 'self.spec == oldSelf.spec', { spec: { n: 1, extra: { a: [1] } } }, { spec: { n: 1, extra: { a: [2] } } }), false)
  assert.equal(evaluate(props, 'self.spec == oldSelf.spec', { spec: { n: 1 } }, { spec: { n: 2 } }), false)
  assert.equal(evaluate(props, 'self.spec == oldSelf.spec', { spec: { n: 1 } }, { spec: { other: 1 } }), false)
})

test('CRD-02: the root and embedded resources have type and name, whatever the schema says', () => {
  const embedded = object({ template: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true } })
  const data = { apiVersion: 'a/v1', kind: 'K', metadata: { name: 'n' }, template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } } }
  assert.equal(evaluate(embedded, 'self.kind + self.metadata.name + self.template.kind + self.template.metadata.name', data, data, true), 'KnPodp')
  assert.equal(evaluate(embedded, 'self.metadata.labels', data, data, true), "undefined field 'labels'")
  assert.equal(evaluate(embedded, 'self.kind', data), "undefined field 'kind'")
})

test('CRD-02: types are named after their path', () => {
  const { type, fields } = declare(object({ spec: object({ list: array(object({ a: text })) }) }))
  assert.equal(formatType(type), 'Self')
  assert.equal(formatType(fields!.get('spec')!.declaration.fields!.get('list')!.declaration.type), 'list(Self.spec.list.@idx)')
})

test('CRD-02: data that does not fit its schema fails the evaluation, not the server', () => {
  assert.equal(evaluate(scalars, 'self.n == 1', { n: 'one' }), 'invalid data, expected int, got string')
  assert.equal(evaluate(scalars, 'self.s == ""', { s: [] }), 'invalid data, expected string, got array')
  assert.equal(evaluate(object({ l: array(text) }), "self.l[0] == 'a'", { l: [null] }), 'invalid data, got null for schema with nullable=false')
})

const requestBytes = 3 * 1024 * 1024
const sizes: [name: string, props: JSONSchemaProps, path: string[], max: number | undefined][] = [
  ['a string without bound fills a request', object({ s: text }), ['self', 's'], requestBytes - 2],
  ['characters take up to four bytes', object({ s: { ...text, maxLength: 10 } }), ['self', 's'], 40],
  ['the longest of an enumeration', object({ s: { ...text, enum: ['a', 'abc'] } }), ['self', 's'], 3],
  ['times are short', object({ s: { ...text, format: 'date-time' } }), ['self', 's'], 32],
  ['a list is bounded by its items', object({ l: array(text) }), ['self', 'l'], Math.floor((requestBytes - 2) / 3)],
  [
    'required fields make items larger',
    object({ l: array(object({ abc: integer }, { required: ['abc'] })) }),
    ['self', 'l'],
    Math.floor((requestBytes - 2) / 11),
  ],
  ['a list with a bound', object({ l: array(text, { maxItems: 7 }) }), ['oldSelf', 'l'], 7],
  ['items of a list', object({ l: array({ ...text, maxLength: 2 }) }), ['self', 'l', '@items'], 8],
  ['a map is bounded by its entries', object({ m: { type: 'object', additionalProperties: text } }), ['self', 'm'], Math.floor((requestBytes - 2) / 8)],
  ['values of a map', object({ m: { type: 'object', additionalProperties: { ...text, maxLength: 1 } } }), ['self', 'm', '@values'], 4],
  ['scalars have no size', object({ n: integer }), ['self', 'n'], 0],
  ['unknown paths', object({ n: integer }), ['self', 'x'], undefined],
]
for (const [name, props, path, max] of sizes) {
  test(`CRD-02: sizes: ${name}`, () => assert.equal(declaredSizes(declare(props))({ path, type: declare(props).type })?.max, max))
}

test('CRD-02: a rule over an unbounded list costs too much, over a bounded one it does not', () => {
  const cost = (maxItems: number | undefined): number => {
    const declaration = declare(object({ l: array({ ...text, maxLength: 30 }, maxItems === undefined ? {} : { maxItems }) }))
    const compiled = kubernetesEnvironment.extend({ variables: { self: declaration.type } }).compile('self.l.all(x, self.l.exists_one(y, x == y))')
    assert.ok(compiled.ok)
    return compiled.estimateCost(declaredSizes(declaration)).max
  }
  assert.ok(cost(undefined) > 10_000_000)
  assert.ok(cost(10) < 10_000)
})

test('CRD-02: names that cannot be written stay out of reach', () => {
  assert.deepEqual(['a', '1a', 'a b', 'é', '', 'a__b', 'in', 'x-y.z/w'].map(escapeIdentifier), [
    'a',
    undefined,
    undefined,
    undefined,
    undefined,
    'a__underscores__b',
    '__in__',
    'x__dash__y__dot__z__slash__w',
  ])
})
