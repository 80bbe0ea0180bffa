import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterCheck, type Candidate, type CheckResult, type Condition, inOrder, unknown } from './condition.ts'

const checks: readonly { readonly name: string; readonly results: readonly CheckResult[]; readonly want: Condition['state'] }[] = [
  { name: 'no check yet', results: [], want: 'dead' },
  { name: 'one good answer', results: ['ok'], want: 'ready' },
  { name: 'an answer other than 200', results: ['ok', 'failing'], want: 'notReady' },
  { name: 'a refused connection', results: ['ok', 'refused'], want: 'dead' },
  { name: 'one silence', results: ['ok', 'silent'], want: 'notReady' },
  { name: 'three silences in a row', results: ['ok', 'silent', 'silent', 'silent'], want: 'dead' },
  { name: 'silences with an answer between them', results: ['ok', 'silent', 'silent', 'failing', 'silent'], want: 'notReady' },
  { name: 'a good answer after its death', results: ['ok', 'refused', 'ok'], want: 'ready' },
  { name: 'a silence while it starts', results: ['refused', 'silent'], want: 'dead' },
]
for (const { name, results, want } of checks) {
  test(`HA-01 a server is ${want} after ${name}`, () => {
    assert.equal(results.reduce(afterCheck, unknown).state, want)
  })
}

const server = (name: string, state: Condition['state'], open = 0): Candidate & { readonly name: string } => ({ name, state, open })
const orders = [
  { name: 'the one with the fewest connections comes first', servers: [server('a', 'ready', 2), server('b', 'ready', 1)], want: ['b', 'a'] },
  { name: 'a server that is not ready is left out', servers: [server('a', 'notReady'), server('b', 'ready', 9)], want: ['b'] },
  { name: 'servers that answer are used while none is ready', servers: [server('a', 'notReady'), server('b', 'dead')], want: ['a'] },
  { name: 'dead servers are never used', servers: [server('a', 'dead')], want: [] },
]
for (const { name, servers, want } of orders) {
  test(`HA-01 of the servers for a connection, ${name}`, () => {
    assert.deepEqual(
      inOrder(servers, 0).map((one) => one.name),
      want,
    )
  })
}

test('HA-01 servers with equally many connections take turns', () => {
  const servers = ['a', 'b', 'c'].map((name) => server(name, 'ready'))
  assert.deepEqual(
    [0, 1, 2, 3].map((turn) => inOrder(servers, turn)[0]?.name),
    ['a', 'b', 'c', 'a'],
  )
})
