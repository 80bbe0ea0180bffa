import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activeMigration, endedConditions, type Migration, settledConditions, startedConditions } from './migrationStatus.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')
const condition = (type: string, status = 'True') => ({ type, status, reason: 'R', message: '', lastTransitionTime: '2025-01-01T00:00:00Z' })
function migration(name: string, creationTimestamp: string, ...conditions: string[]): Migration {
  return {
    apiVersion: 'storagemigration.k8s.io/v1beta1',
    kind: 'StorageVersionMigration',
    metadata: { name, creationTimestamp },
    spec: { resource: { group: '', resource: 'secrets' } },
    status: { conditions: conditions.map((type) => condition(type)) },
  }
}

const [early, late] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']
const cases: readonly { name: string; all: readonly Migration[]; want: string | undefined }[] = [
  { name: 'the oldest is next', all: [migration('a', late), migration('b', early)], want: 'b' },
  { name: 'of two of one second the first by name is next', all: [migration('b', early), migration('a', early)], want: 'a' },
  { name: 'the one that runs comes first', all: [migration('a', early), migration('b', late, 'Running')], want: 'b' },
  {
    name: 'those that have ended are passed over',
    all: [migration('a', early, 'Succeeded'), migration('b', early, 'Failed'), migration('c', late)],
    want: 'c',
  },
  { name: 'none is left', all: [migration('a', early, 'Failed')], want: undefined },
]
for (const { name, all, want } of cases) test(`CTL-22 migrations of one resource: ${name}`, () => assert.equal(activeMigration(all)?.metadata.name, want))

test('CTL-22 the conditions of a migration from its start to its end', () => {
  const fresh = migration('a', early)
  const running = startedConditions(fresh, nowMs)
  assert.deepEqual(running, [
    { type: 'Running', status: 'True', reason: 'MigrationRunning', message: 'The migration is running', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ])
  const runs = { ...fresh, status: { conditions: running } }
  const ended = endedConditions(runs, 'it broke', nowMs)
  assert.deepEqual(
    ended.map(({ type, status, message }) => `${type} ${status} ${message}`),
    ['Running False The migration is running', 'Failed True it broke'],
  )
  assert.deepEqual(
    settledConditions({ ...runs, status: { conditions: endedConditions(runs, undefined, nowMs) } }).map(({ type, reason }) => `${type} ${reason}`),
    ['Succeeded StorageVersionMigrationSucceeded'],
  )
})
