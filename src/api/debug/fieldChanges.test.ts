import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeChanges, fieldChanges } from './fieldChanges.ts'

const hidden = { showSecrets: false }

test('X5 changed, added and removed fields are named by path', () => {
  const before = { data: { a: '1', 'b.c': '2' }, spec: { n: 1, gone: true } }
  const after = { data: { a: '2', 'b.c': '3' }, spec: { n: 1, new: {} } }
  assert.deepEqual(describeChanges(fieldChanges(before, after, hidden)), [
    '~ data.a: "1" -> "2"',
    '~ data."b.c": "2" -> "3"',
    '- spec.gone: true',
    '+ spec.new: {}',
  ])
})

test('X5 items of a list are compared by name or type, other lists by position', () => {
  const before = {
    containers: [
      { name: 'a', image: 'x' },
      { name: 'b', image: 'y' },
    ],
    args: ['1', '2'],
    mixed: ['a'],
  }
  const after = {
    containers: [
      { name: 'b', image: 'z' },
      { name: 'a', image: 'x' },
    ],
    args: ['1', '3'],
    mixed: [{ name: 'a' }],
  }
  assert.deepEqual(describeChanges(fieldChanges(before, after, hidden)), [
    '~ containers[b].image: "y" -> "z"',
    '~ args[1]: "2" -> "3"',
    '~ mixed[0]: "a" -> {"name":"a"}',
  ])
})

test('X5 what every write changes is not shown', () => {
  const version = (resourceVersion: string) => ({ metadata: { resourceVersion, managedFields: [{ time: resourceVersion }], name: 'a' } })
  assert.deepEqual(fieldChanges(version('1'), version('2'), hidden), [])
})

test('X5 values of Secrets are masked as kubectl diff masks them, unless they are asked for', () => {
  const secret = (data: object, annotations?: object) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { annotations }, data })
  const applied = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"b25l"}}' }
  const [before, after] = [secret({ a: 'b25l', old: 'eA==' }, {}), secret({ a: 'dHdv', new: 'eQ==' }, applied)]
  const lines = describeChanges(fieldChanges(before, after, hidden))
  assert.doesNotMatch(lines.join('\n'), /b25l|dHdv|eA==|eQ==/)
  assert.deepEqual(lines.slice(1), ['~ data.a: *** (before) -> *** (after)', '- data.old: ***', '+ data.new: ***'])
  assert.match(describeChanges(fieldChanges(before, after, { showSecrets: true })).join('\n'), /"b25l" -> "dHdv"/)
})

test('X5 lines are bounded in number and length', () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`k${at}`, 'v'.repeat(1_000)]))
  const lines = describeChanges(fieldChanges({}, many, hidden))
  assert.equal(lines.length, 101)
  assert.equal(lines.at(-1), '… and 50 more fields')
  assert.ok((lines[0]?.length ?? 0) < 300)
})
