import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileJsonQuery, JsonQueryError } from './jsonQuery.ts'

const object = {
  metadata: { labels: { 'example.com/a': 'b', n: null }, ownerReferences: [{ kind: 'Job' }, { kind: 'Other' }] },
  status: {
    phase: 'Running',
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Other', status: 'False' },
    ],
    count: 3,
  },
}

const cases: readonly (readonly [string, readonly unknown[] | undefined])[] = [
  ['.', [object]],
  ['.status.phase', ['Running']],
  ['.metadata.labels["example.com/a"]', ['b']],
  ['.metadata.labels.["example.com/a"]', ['b']],
  ['.metadata.labels."example.com/a"', ['b']],
  ['.metadata.labels.n', []],
  ['.metadata.absent.deeper', []],
  ['.status.conditions.[] | select( .type == "Ready" ) | .status', ['True']],
  ['.status.conditions[] | select(.type != "Ready" and .status == "False") | .type', ['Other']],
  ['.status.conditions[] | select(.type == "Ready" or .type == "Other") | .type', ['Ready', 'Other']],
  ['.metadata.ownerReferences.[].kind', ['Job', 'Other']],
  ['.status.conditions[-1].type', ['Other']],
  ['.status.conditions[7]', []],
  ['.status.count == 3', [true]],
  ['(.status | .phase)', ['Running']],
  ['.absent[]', undefined],
  ['.absent[]?', []],
  ['.status.phase.deeper', undefined],
]

for (const [query, want] of cases) test(`X2 a Stage’s path ${query}`, () => assert.deepEqual(compileJsonQuery(query)(object), want))

for (const query of ['', '.a |', '.a | length', 'map(.a)', '.a[1:2]', '.a // 1', '.a[', '$x', '{a: 1}', '.a )'])
  test(`X2 a Stage’s path that is not supported is refused: ${JSON.stringify(query)}`, () => assert.throws(() => compileJsonQuery(query), JsonQueryError))
