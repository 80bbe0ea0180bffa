import assert from 'node:assert/strict'
import { test } from 'node:test'
import { historyArgs, historyOf } from './historyLimits.ts'

const nothing = { history: undefined, historySize: undefined }

test('X5 a cluster keeps the history that up asked for, and a later up changes only what it names', () => {
  const made = historyOf({}, { history: '24h', historySize: '100Mi' })
  assert.deepEqual(historyArgs({ history: made }), ['--history=24h', '--history-size=100Mi'])
  assert.deepEqual(historyArgs({ history: historyOf({ history: made }, { ...nothing, history: '48h' }) }), ['--history=48h', '--history-size=100Mi'])
  assert.deepEqual(historyArgs({ history: historyOf({ history: made }, nothing) }), ['--history=24h', '--history-size=100Mi'])
})

test('X5 a cluster without --history gets no flags of it', () => {
  assert.deepEqual(historyArgs({ history: historyOf({}, nothing) }), [])
})
