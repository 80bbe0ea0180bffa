/** ADM-07: what expressions of mutating admission policies can make. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dynamicValue, toJson } from '#cel/json'
import { dynType, formatType } from '#cel/types'
import type { Value } from '#cel/values'
import { applyConfigurationOf, mutationEnvironment } from './mutation.ts'

const environment = mutationEnvironment.extend({ variables: { object: dynType } })
const data = new Map([['object', dynamicValue({ metadata: { name: 'web' }, spec: { replicas: 1, containers: [{ name: 'a' }] } })]])

function evaluate(expression: string, convert: (value: Value) => unknown): unknown {
  const compiled = environment.compile(expression)
  if (!compiled.ok) return compiled.issues.map(({ message }) => message).join('; ')
  const { value, error } = compiled.program.evaluate(data)
  if (error) return error.message
  try {
    return convert(value)
  } catch (failure) {
    return (failure as { message: string }).message
  }
}

const configurations: [expression: string, wanted: unknown][] = [
  ['Object{spec: Object.spec{replicas: object.spec.replicas + 2}}', { spec: { replicas: 3 } }],
  ['Object{metadata: Object.metadata{labels: {"a": "b"}}}', { metadata: { labels: { a: 'b' } } }],
  [
    'Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, tty: true})}}',
    { spec: { containers: [{ name: 'a', tty: true }] } },
  ],
  ['Object{spec: Object.spec{?replicas: object.spec.?nope}}', { spec: {} }],
  ['has(object.spec.nope) ? Object{} : Object{spec: Object.spec{}}', { spec: {} }],
  ['Object{spec: Object.metadata{}}', 'unexpected type name "Object.metadata", expected "Object.spec", which matches field name path from root Object type'],
  ['Objects{}', "undeclared reference to 'Objects' (in container '')"],
]
for (const [expression, wanted] of configurations) {
  test(`ADM-07: ${expression}`, () => assert.deepEqual(evaluate(expression, applyConfigurationOf), wanted))
}

const patches: [expression: string, wanted: unknown][] = [
  [
    '[JSONPatch{op: "test", path: "/spec/replicas", value: 1}, JSONPatch{op: "copy", from: "/a", path: "/b"}]',
    [
      { op: 'test', path: '/spec/replicas', value: 1 },
      { op: 'copy', from: '/a', path: '/b' },
    ],
  ],
  [
    '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a.io/b"), value: Object.spec{x: 1}}]',
    [{ op: 'add', path: '/metadata/labels/a.io~1b', value: { x: 1 } }],
  ],
  ['[JSONPatch{op: 1}]', "expected type of field 'op' is 'string' but provided type is 'int'"],
  ['[JSONPatch{nope: 1}]', "undefined field 'nope'"],
]
for (const [expression, wanted] of patches) test(`ADM-07: ${expression}`, () => assert.deepEqual(evaluate(expression, toJson), wanted))

test('ADM-07: the types of what expressions make', () => {
  const typeOf = (expression: string): string => {
    const compiled = environment.compile(expression)
    return compiled.ok ? formatType(compiled.checked.resultType) : compiled.message
  }
  assert.deepEqual(['Object{}', '[JSONPatch{}]', 'object'].map(typeOf), ['Object', 'list(JSONPatch)', 'dyn'])
})
