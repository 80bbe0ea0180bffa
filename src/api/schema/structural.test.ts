import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { KubeObject } from '../machinery/meta.ts'
import { apply } from '../managedFields/apply.ts'
import { applyDefaults } from './defaults.ts'
import { compileStructural, listSchemaOf, pruneUnknownFields } from './structural.ts'
import { normalizeStored } from './structuralDecode.ts'
import { compileValidation } from './structuralValidation.ts'

const props: JSONSchemaProps = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', pattern: '^[a-z]+$', maxLength: 5 },
        replicas: { type: 'integer', minimum: 1, maximum: 10, default: 3 },
        ratio: { type: 'number', minimum: 0, exclusiveMinimum: true, multipleOf: 0.1 },
        mode: { type: 'string', enum: ['A', 'B'], default: 'A', nullable: true },
        note: { type: 'string', nullable: true },
        port: { 'x-kubernetes-int-or-string': true },
        labels: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: 1 },
        items: {
          type: 'array',
          minItems: 1,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['key'],
          items: { type: 'object', required: ['key'], properties: { key: { type: 'string' }, value: { type: 'string', default: 'v' } } },
        },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { known: { type: 'object', properties: {} } } },
        pod: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
        when: { type: 'string', format: 'date-time' },
      },
      oneOf: [{ required: ['name'] }, { required: ['nothing'] }],
    },
  },
}
const schema = compileStructural('com.example.v1.Foo', props)
const foo = (spec: object) => ({ apiVersion: 'example.com/v1', kind: 'Foo', metadata: { name: 'f' }, spec })

test('CRD-01 unknown fields are pruned unless they are preserved', () => {
  const object = foo({
    name: 'a',
    nme: 'typo',
    items: [{ key: 'k', other: 1 }],
    labels: { x: 'y' },
    free: { anything: { goes: true }, known: { gone: 1 } },
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', odd: 1 }, spec: {} },
  })
  assert.deepEqual(pruneUnknownFields(object, schema), ['spec.nme', 'spec.items[0].other', 'spec.free.known.gone', 'spec.pod.metadata.odd'])
  assert.deepEqual(
    object,
    foo({
      name: 'a',
      items: [{ key: 'k' }],
      labels: { x: 'y' },
      free: { anything: { goes: true }, known: {} },
      pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} },
    }),
  )
})

test('CRD-01 defaults of the schema are applied in lists too', () => {
  const object = foo({ name: 'a', items: [{ key: 'k' }] })
  applyDefaults(object, schema)
  assert.deepEqual(object.spec, { name: 'a', items: [{ key: 'k', value: 'v' }], replicas: 3, mode: 'A' })
})

test('a CRD without a schema keeps everything, its list has items', () => {
  const open = compileStructural('com.example.v1.Open', undefined)
  assert.deepEqual(pruneUnknownFields(foo({ x: { y: 1 } }), open), [])
  assert.equal(listSchemaOf('com.example.v1.OpenList', open).fields?.get('items')?.schema.element, open)
})

test('server-side apply of a custom resource follows its list markers', () => {
  const common = { schema, force: false, apiVersion: 'example.com/v1', nowMs: 0 }
  const one = apply({ ...common, live: undefined, applied: foo({ items: [{ key: 'a', value: '1' }] }) as unknown as KubeObject, manager: 'one' })
  const two = apply({ ...common, live: one, applied: foo({ items: [{ key: 'b', value: '2' }] }) as unknown as KubeObject, manager: 'two' }) as KubeObject & {
    spec: unknown
  }
  assert.deepEqual(two.spec, {
    items: [
      { key: 'a', value: '1' },
      { key: 'b', value: '2' },
    ],
  })
})

const validate = compileValidation(props)
const faults: readonly (readonly [object, string])[] = [
  [{ name: 'a', replicas: 'x' }, 'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'],
  [{ name: 'a', replicas: 0 }, 'spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1'],
  [{ name: 'a', replicas: 11 }, 'spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10'],
  [{ name: 'a', ratio: 0 }, 'spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0'],
  [{ name: 'a', ratio: 0.25 }, 'spec.ratio: Invalid value: 0.25: spec.ratio in body should be a multiple of 0.1'],
  [{ name: 'A' }, `spec.name: Invalid value: "A": spec.name in body should match '^[a-z]+$'`],
  [{ name: 'abcdef' }, 'spec.name: Too long: may not be more than 5 bytes'],
  [{ name: 'a', mode: 'C' }, 'spec.mode: Unsupported value: "C": supported values: "A", "B"'],
  [{ name: 'a', items: [] }, 'spec.items: Invalid value: 0: spec.items in body should have at least 1 items'],
  [{ name: 'a', items: [{}] }, 'spec.items[0].key: Required value'],
  [{ name: 'a', labels: { x: 1 } }, 'spec.labels.x: Invalid value: "integer": spec.labels.x in body must be of type string: "integer"'],
  [{ name: 'a', labels: { x: '1', y: '2' } }, 'spec.labels: Too many: 2: must have at most 1 items'],
  [{ name: 'a', port: 1.5 }, 'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"'],
  [{ name: 'a', when: 'now' }, 'spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'],
  [{ name: 'a', nothing: 1 }, '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
]
for (const [spec, want] of faults) {
  test(`CRD-01 refused: ${want}`, () =>
    assert.deepEqual(
      validate(foo(spec)).map(({ field, body }) => `${field}: ${body}`),
      [want],
    ))
}

test('CRD-01 what is missing is required; a nullable null and a good object pass', () => {
  assert.deepEqual(
    validate({}).map(({ field, body }) => `${field}: ${body}`),
    ['spec: Required value'],
  )
  assert.deepEqual(validate(foo({ name: 'a', note: null, ratio: 0.3, port: 'http', when: '2024-01-01T00:00:00Z' })), [])
})

test('CRD-02 what was wrong before and is unchanged is let through, item by item in lists with keys', () => {
  const old = foo({ name: 'A', replicas: 11, items: [{ key: 'k', value: 1 }, { key: 'l' }], labels: { x: 1 } })
  assert.deepEqual(validate(old, old), [])
  const changed = foo({
    name: 'A',
    replicas: 12,
    items: [
      { key: 'l', value: 2 },
      { key: 'k', value: 1 },
    ],
    labels: { x: 1, y: 'z' },
  })
  assert.deepEqual(
    validate(changed, old).map(({ field }) => field),
    ['spec.replicas', 'spec.labels', 'spec.items[0].value'],
  )
})

test('CRD-01 null is no choice of an enumeration, and of failed alternatives the nearest tells why', () => {
  const either = compileValidation({
    type: 'object',
    properties: { a: { type: 'string', nullable: true, enum: ['x'] } },
    anyOf: [{ required: ['b'] }, { required: ['c'], properties: { a: { enum: ['y'] } } }],
  })
  assert.deepEqual(
    either({ a: null }).map(({ field, body }) => `${field}: ${body}`),
    [
      '<nil>: Invalid value: "": "" must validate at least one schema (anyOf)',
      'a: Unsupported value: null: supported values: "y"',
      'c: Required value',
      'a: Unsupported value: null: supported values: "x"',
    ],
  )
})

void test('numbers fit their type and format', () => {
  const properties = {
    small: { type: 'integer', format: 'int32' },
    whole: { type: 'integer' },
    single: { type: 'number', format: 'float' },
    ignored: { type: 'integer', format: 'uint8' },
    bounded: { type: 'integer', maximum: 1.5 },
  }
  const check = compileValidation({ type: 'object', properties })
  const faultsOf = (value: object) => check(value).map(({ field, body }) => `${field}: ${body}`)
  const rangeFault = (rule: string) => `<nil>: Invalid value: "": ${rule}`
  assert.deepEqual(faultsOf({ small: 2 ** 31 - 1, whole: 2 ** 40, single: 1.5, ignored: 300 }), [])
  assert.deepEqual(faultsOf({ small: 2 ** 31 }), [rangeFault('Checked value must be of type integer with format int32 in small')])
  assert.deepEqual(faultsOf({ small: 1.5 }), [
    'small: Invalid value: "float64": small in body must be of type int32: "float64"',
    rangeFault('Checked value must be of type integer with format int32 in small'),
  ])
  assert.deepEqual(faultsOf({ small: true }), ['small: Invalid value: "": small in body must be of type int32: ""'])
  assert.deepEqual(faultsOf({ whole: 1e30 }), [
    'whole: Invalid value: "number": whole in body must be of type integer: "number"',
    rangeFault('Checked value must be of type integer (default format) in whole'),
  ])
  assert.deepEqual(faultsOf({ single: 1e39 }), [rangeFault('Checked value must be of type number with format float in single')])
  assert.deepEqual(faultsOf({ bounded: 1 }), [rangeFault('Maximum boundary value must be of type integer (default format) in bounded')])
})

test('CRD-01 defaults that are newer than an object do not grow it beyond the readable size', () => {
  const item = { type: 'object', properties: { note: { type: 'string', default: 'x'.repeat(1_000) } } }
  const schema = compileStructural('com.example.v1.Foo', { type: 'object', properties: { spec: { type: 'array', items: item } } } as JSONSchemaProps)
  const stored = (items: number) => ({
    apiVersion: 'example.com/v1',
    kind: 'Foo',
    metadata: { generation: 1 },
    spec: Array.from({ length: items }, () => ({})),
  })
  const noted = (object: { spec: object[] }) => object.spec.filter((one) => 'note' in one).length
  const [small, huge] = [stored(10), stored(50_000)]
  assert.deepEqual([normalizeStored(small, schema), normalizeStored(huge, schema)], [true, true])
  assert.equal(noted(small), 10)
  assert.ok(noted(huge) > 10_000 && noted(huge) < 20_000, `${noted(huge)} items`)
})
