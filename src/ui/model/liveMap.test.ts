import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TracedRequest } from '#api/debug/traces'
import { components, isPoll, isTelling, joined, lengthOf, linePath, lines, mostTelling, recordedText, stopsOf } from './liveMap.ts'

const box = (left: number, top: number) => ({ left, top, width: 100, height: 40 })
const request = (more: Partial<TracedRequest> = {}): TracedRequest => ({
  ...{ id: 'r', atMs: 1_000, user: 'ann', groups: [], verb: 'create', uri: '/', code: 201, durationMs: 10, stages: [] },
  ...more,
})

test('X9 every component is on a line of the map, and lines have two ends', () => {
  assert.deepEqual(new Set(lines.flatMap(({ from, to }) => [from, to])), new Set(components))
})

test('X9 a line leaves at the side that faces the other component', () => {
  assert.equal(linePath(box(0, 0), box(200, 100)), 'M100 20 C150 20 150 120 200 120')
  assert.equal(linePath(box(200, 100), box(0, 0)), 'M200 120 C150 120 150 20 100 20')
  assert.equal(linePath(box(0, 0), box(0, 100)), 'M50 40 C50 70 50 70 50 100')
  assert.equal(linePath(box(0, 100), box(0, 0)), 'M50 100 C50 70 50 70 50 40')
})

test('X9 a request stops at the store and the watch cache, and then where components work on its object', () => {
  const stages = [
    { stage: 'authentication', decision: 'ann', atMs: 1_002, durationMs: 1 },
    { stage: 'storage', decision: 'revision 7', atMs: 1_008, durationMs: 5 },
    { stage: 'watchFanOut', decision: 'passed to 3 watches', atMs: 1_009, durationMs: 1 },
    { stage: 'handler', decision: '201', atMs: 1_010, durationMs: 9 },
  ]
  const object = { group: '', resource: 'pods', namespace: 'a', name: 'web' }
  const event = (component: string, atMs: number, about = 'pods/a/web') => ({ component, what: 'w', object: about, atMs, durationMs: 4, result: 'done' })
  const events = [
    event('runtime', 1_030),
    event('kube-scheduler', 1_015),
    event('replicaset', 900),
    event('kubelet', 1_020),
    event('job', 1_016, 'jobs/a/x'),
    event('endpoint', 9_000),
  ]
  const stops = stopsOf(request({ stages, object, revision: 7 }), events)
  assert.deepEqual(
    stops.map(({ at, afterMs }) => [at, afterMs]),
    [
      ['apiServer', 1],
      ['store', 3],
      ['watchCache', 8],
      ['scheduler', 15],
      ['kubelets', 20],
      ['kubelets', 30],
    ],
  )
  assert.equal(lengthOf(stops), 34)
  assert.deepEqual(
    stopsOf(request({ stages, object }), events).map(({ at }) => at),
    ['apiServer', 'store', 'watchCache'],
    'a request without a revision has no consequences',
  )
  assert.deepEqual(
    stopsOf(request({ stages: stages.filter(({ stage }) => stage !== 'storage') }), []).map(({ text }) => text.split(':')[0]),
    ['authentication', 'handler', 'watchFanOut'],
  )
})

test('X9 the map shows a write before a read, and a recorded request before one that is not', () => {
  const object = { group: '', resource: 'pods', namespace: 'a', name: 'web' }
  const stages = [{ stage: 'handler', decision: '200', atMs: 1, durationMs: 1 }]
  const all = [
    request({ id: 'watch', verb: 'watch', object, stages, atMs: 9 }),
    request({ id: 'read', verb: 'list', object, stages, atMs: 8 }),
    request({ id: 'refusal', object, atMs: 7 }),
    request({ id: 'old', object, stages, atMs: 1 }),
    request({ id: 'new', object, stages, atMs: 2 }),
    request({ id: 'path', stages, atMs: 6 }),
    request({ id: 'lease', object: { ...object, resource: 'leases' }, stages, atMs: 12 }),
  ]
  assert.equal(mostTelling(all)?.id, 'new')
  assert.equal(mostTelling([]), undefined)
})

test('X9 the notes of a node join those of the server, each once', () => {
  const event = (component: string, atMs: number) => ({ component, what: 'sync', object: 'pods/a/web', atMs, durationMs: 1, result: 'done' })
  const found = joined([event('kubelet', 1), event('kube-scheduler', 2)], [event('kubelet', 1), event('kubelet', 3)])
  assert.deepEqual(
    found.map(({ component, atMs }) => `${component} ${atMs}`),
    ['kubelet 1', 'kube-scheduler 2', 'kubelet 3'],
  )
})

test('X9 the questions of the live view itself are left out', () => {
  const uris = ['/metrics', '/skiff/revisions', '/metricsx', '/api/v1/pods', '/version']
  assert.deepEqual(
    uris.filter((uri) => !isPoll({ uri })),
    ['/metricsx', '/api/v1/pods', '/version'],
  )
})

test('X18 of the requests of a bundle those tell something that change an object or are refused', () => {
  const about = (resource: string, more: Partial<TracedRequest> = {}) => request({ object: { group: '', resource, namespace: 'a', name: 'x' }, ...more })
  const telling = [about('pods'), about('pods', { verb: 'get', code: 403 }), about('subjectaccessreviews', { code: 403 })]
  const others = [
    about('pods', { verb: 'list', code: 200 }),
    about('events'),
    about('leases'),
    about('subjectaccessreviews'),
    request(),
    about('pods', { uri: '/skiff/x' }),
  ]
  assert.deepEqual([...telling, ...others].filter(isTelling), telling)
})

test('X9 the live view says how many of the requests it shows', () => {
  assert.equal(recordedText(undefined, undefined), 'only your own requests are recorded')
  assert.equal(recordedText({ seen: 40, kept: 40 }, { seen: 10, kept: 10 }), 'all 30 requests of the last seconds are recorded')
  assert.equal(recordedText({ seen: 3000, kept: 60 }, { seen: 1000, kept: 20 }), 'sampled: 40 of 2000 requests of the last seconds are recorded')
  assert.equal(recordedText({ seen: 5, kept: 5 }, { seen: 1000, kept: 20 }), 'all 5 requests of the last seconds are recorded')
})
