import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '#api/gen/types/events.v1'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createClient } from './clientOverTransport.ts'
import { createEventSeriesRecorder } from './eventSeriesRecorder.ts'

const pod = anObject('Pod', { namespace: 'x', name: 'a' })
const minute = 60_000

function setUp() {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const source = { reportingController: 'c', reportingInstance: 'c-host' }
  const recorder = createEventSeriesRecorder({ client: createClient(server), clock, random: seededRandom(1), log: noLog }, source)
  const record = (note = 'did it', reason = 'Did') => recorder.event({ regarding: pod, type: 'Normal', reason, action: 'Doing', note })
  const calls = () => server.requests.splice(0).map(({ method, body }) => `${method} ${(body as Event).series?.count ?? 1}`)
  const written = () => server.objects() as unknown as readonly Event[]
  return { server, clock, recorder, record, calls, written }
}

test('the first event is written whole, the second begins a series, and more are counted without a write', async () => {
  const { recorder, record, calls, written } = setUp()
  record('first')
  await recorder.flush()
  const [event] = written()
  assert.deepEqual(
    { ...event, metadata: { namespace: event?.metadata.namespace } },
    {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace: 'x' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'c',
      reportingInstance: 'c-host',
      action: 'Doing',
      reason: 'Did',
      regarding: { kind: 'Pod', apiVersion: 'v1', namespace: 'x', name: 'a' },
      note: 'first',
      type: 'Normal',
    },
  )
  for (let i = 0; i < 5; i++) record(`note ${i}`)
  record('another', 'Other')
  await recorder.flush()
  assert.deepEqual(calls().sort(), ['PATCH 2', 'POST 1', 'POST 1'])
})

test('a series is refreshed every half hour while it continues, its count is written at its end, and the next event starts another', async () => {
  const { clock, record, calls, written } = setUp()
  record()
  for (let i = 1; i <= 32; i++) {
    await clock.advance(minute)
    record()
  }
  assert.deepEqual(calls(), ['POST 1', 'PATCH 2', 'PATCH 30'])
  await clock.advance(20 * minute)
  assert.deepEqual([calls(), written()[0]?.series], [['PATCH 33'], { count: 33, lastObservedTime: '2026-01-01T00:32:00.000000Z' }])
  record()
  await clock.advance(0)
  assert.deepEqual(calls(), ['POST 1'])
  await clock.advance(60 * minute)
  assert.deepEqual([calls(), clock.nextTimerMs()], [[], undefined], 'a single event leaves nothing to write, and no timer')
})

test('an expired event is created again; an unreachable server is tried twelve times, at least ten seconds apart', async () => {
  const { server, clock, record, calls, written } = setUp()
  record()
  await clock.advance(0)
  server.remove(`/apis/events.k8s.io/v1/namespaces/x/events/${written()[0]?.metadata.name}`)
  record()
  await clock.advance(0)
  assert.deepEqual([calls(), written()[0]?.series?.count], [['POST 1', 'PATCH 2', 'POST 2'], 2])
  server.intercept = () => {
    throw new Error('connection refused')
  }
  record('other', 'Other')
  await clock.advance(9_999)
  assert.deepEqual(calls(), ['POST 1'])
  await clock.advance(10 * minute)
  assert.equal(calls().length, 11)
})
