import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TracedRequest } from '#api/debug/traces'
import { barsOf, barsOfHops, barsOfStages, burstsOf, msText, placeOf, pluginsOf } from './waterfall.ts'

const request = (atMs: number, more: Partial<TracedRequest> = {}): TracedRequest => ({
  ...{ id: `r${atMs}`, atMs, user: 'ann', groups: [], verb: 'create', uri: '/api/v1/namespaces/a/pods', code: 201, durationMs: 10, stages: [] },
  ...more,
})
const event = (component: string, atMs: number, result = 'done') => ({ component, what: 'reconcile', object: 'pods/a/web', atMs, durationMs: 5, result })

test('LRN-05 requests and what components did are one row of bars by time, each with who did it', () => {
  const object = { group: '', resource: 'pods', subresource: 'binding', namespace: 'a', name: 'web' }
  const bars = barsOf({
    requests: [request(30, { object, as: 'bob' }), request(10, { code: 403, message: 'no' })],
    events: [event('replicaset', 20, 'failed, try 2: conflict'), event('kube-scheduler', 25), { ...event('runtime', 40), node: 'n1' }],
  })
  assert.deepEqual(
    bars.map(({ lane, who, what, isBad }) => [lane, who, what, isBad]),
    [
      ['request', 'ann', 'create /api/v1/namespaces/a/pods', true],
      ['controller', 'replicaset', 'reconcile', true],
      ['scheduler', 'kube-scheduler', 'reconcile', false],
      ['request', 'bob', 'create pods/binding', false],
      ['runtime', 'runtime on n1', 'reconcile', false],
    ],
  )
  assert.equal(bars[0]?.result, '403 no')
})

test('LRN-05 a pause begins another group of bars, and a bar that lasts through it does not', () => {
  const bars = barsOf({ requests: [request(0), request(2_000), request(9_000), request(9_010, { durationMs: 8_000 }), request(19_000)], events: [] })
  assert.deepEqual(
    burstsOf(bars).map(({ startMs, endMs, bars: { length } }) => [startMs, endMs, length]),
    [
      [0, 2_010, 2],
      [9_000, 19_010, 3],
    ],
  )
})

test('LRN-05 bars are placed in percent of their group, also when it takes no time', () => {
  assert.deepEqual(placeOf({ startMs: 100, endMs: 300 }, { atMs: 150, durationMs: 50 }), { left: 25, width: 25 })
  assert.deepEqual(placeOf({ startMs: 100, endMs: 300 }, { atMs: 290, durationMs: 500 }), { left: 95, width: 5 })
  assert.deepEqual(placeOf({ startMs: 100, endMs: 100 }, { atMs: 100, durationMs: 0 }), { left: 0, width: 0 })
})

test('LRN-01 the stages of a request are bars that begin where they began, and a plugin that refuses marks its stage', () => {
  const stages = [
    { stage: 'authentication', decision: 'ann', atMs: 102, durationMs: 2 },
    { stage: 'validatingAdmission', decision: 'refused', rule: 'p', atMs: 105, durationMs: 1, plugins: [{ name: 'p', durationMs: 1, refused: 'no' }] },
  ]
  assert.deepEqual(
    barsOfStages(request(100, { stages })).map(({ who, what, atMs, isBad }) => [who, what, atMs, isBad]),
    [
      ['authentication', '', 100, false],
      ['validatingAdmission', 'p', 104, true],
    ],
  )
})

test('LRN-03 admission plugins that did something are found in a request', () => {
  const plugins = [
    { name: 'quiet', durationMs: 1 },
    { name: 'refusing', durationMs: 1, refused: 'no' },
    { name: 'changing', durationMs: 1, changes: ['+ a'] },
  ]
  const stages = [
    { stage: 'handler', decision: '201', atMs: 1, durationMs: 1 },
    { stage: 'mutatingAdmission', decision: 'passed', atMs: 1, durationMs: 1, plugins },
  ]
  assert.deepEqual(
    pluginsOf(request(0, { stages })).map(({ name }) => name),
    ['refusing', 'changing'],
  )
})

test('LRN-01 hops are numbered bars, and one that is not recorded is quiet', () => {
  const hop = { atMs: 1, durationMs: 2, gapMs: 0, decision: 'd' }
  const hops = [
    { ...hop, name: 'TLS' as const, source: 'none' as const },
    { ...hop, name: 'controllers' as const, source: 'measured' as const },
    { ...hop, name: 'kubelet' as const, source: 'pod' as const },
  ]
  assert.deepEqual(
    barsOfHops({ pod: 'a/web', startMs: 0, endMs: 3, totalMs: 3, hops, events: [] }).map(({ who, lane, what }) => [who, lane, what !== '']),
    [
      ['2 TLS', 'quiet', false],
      ['9 controllers', 'controller', false],
      ['11 kubelet', 'kubelet', true],
    ],
  )
})

test('LRN-05 times have the digits that one can compare', () => {
  assert.deepEqual([0.004, 0.5, 12.34, 321.9, 12_345].map(msText), ['0.00 ms', '0.50 ms', '12.3 ms', '322 ms', '12.3 s'])
})
