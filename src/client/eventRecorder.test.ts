import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createClient } from './clientOverTransport.ts'
import { createEventRecorder } from './eventRecorder.ts'
import { createExpectations, expectationsTimeoutMs } from './expectations.ts'

function setUp() {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const recorder = createEventRecorder({ client: createClient(server), clock, random: seededRandom(1), log: noLog }, { component: 'test', host: 'h' })
  const written = () => server.objects() as unknown as readonly Event[]
  return { server, clock, recorder, written }
}
const pod = anObject('Pod', { namespace: 'x', name: 'a' })

test('the first event is written whole, a repetition raises its count', async () => {
  const { clock, recorder, written } = setUp()
  recorder.event(pod, 'Normal', 'Started', 'Started it')
  await clock.advance(5_000)
  recorder.event(pod, 'Normal', 'Started', 'Started it')
  await recorder.flush()
  const [event] = written()
  assert.equal(written().length, 1)
  assert.deepEqual(
    { ...event, metadata: { namespace: event?.metadata.namespace } },
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: 'x' },
      involvedObject: { kind: 'Pod', namespace: 'x', name: 'a', apiVersion: 'v1' },
      reason: 'Started',
      message: 'Started it',
      source: { component: 'test', host: 'h' },
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:05Z',
      count: 2,
      type: 'Normal',
      reportingComponent: 'test',
      reportingInstance: 'h',
    },
  )
  assert.match(event?.metadata.name ?? '', /^a\.[0-9a-f]{16}$/)
})

test('similar events are combined from the tenth on, and a flood is cut off at 25', async () => {
  const { server, recorder, written } = setUp()
  for (let i = 0; i < 40; i++) recorder.event(pod, 'Warning', 'Failed', `fault ${i}`)
  await recorder.flush()
  assert.equal(written().length, 10)
  assert.equal(server.requests.length, 25)
  const combined = written().at(-1)
  assert.equal(combined?.message, '(combined from similar events): fault 24')
  assert.equal(combined?.count, 16)
})

test('events that the rate limit drops are counted, and the limit gains one token each five minutes, up to the burst', async () => {
  const { server, clock, recorder, written } = setUp()
  const repeat = async (times: number) => {
    for (let i = 0; i < times; i++) recorder.event(pod, 'Warning', 'Failed', 'again')
    await recorder.flush()
  }
  await repeat(40)
  assert.deepEqual([server.requests.length, written()[0]?.count], [25, 25])
  await clock.advance(300_001)
  await repeat(2)
  assert.deepEqual([server.requests.length, written()[0]?.count], [26, 41])
  await clock.advance(3 * 300_001)
  await repeat(5)
  assert.equal(server.requests.length, 29)
})

test('similar events are combined over the containers of a pod, the same one is counted a container', async () => {
  const { recorder, written } = setUp()
  const about = (container: string) => ({ apiVersion: 'v1', kind: 'Pod', namespace: 'x', name: 'a', fieldPath: `spec.containers{${container}}` })
  for (const container of ['one', 'two', 'one']) recorder.event(about(container), 'Warning', 'BackOff', 'Back-off')
  await recorder.flush()
  assert.deepEqual(
    written().map(({ involvedObject, count }) => [involvedObject.fieldPath, count]),
    [
      ['spec.containers{one}', 2],
      ['spec.containers{two}', 1],
    ],
  )
  for (let i = 0; i < 12; i++) recorder.event(about(i % 2 ? 'one' : 'two'), 'Warning', 'BackOff', `fault ${i}`)
  await recorder.flush()
  const combined = written().filter(({ message }) => message?.startsWith('(combined from similar events): '))
  assert.equal(combined.length, 1)
})

test('an event that has expired is written again; an unreachable server is tried again', async () => {
  const { server, clock, recorder, written } = setUp()
  recorder.event(pod, 'Normal', 'Started', 'Started it')
  await recorder.flush()
  server.remove(`/api/v1/namespaces/x/events/${written()[0]?.metadata.name}`)
  let down = 3
  server.intercept = () => {
    if (down-- > 0) throw new Error('connection refused')
  }
  recorder.event(pod, 'Normal', 'Started', 'Started it')
  await clock.advance(40_000)
  await recorder.flush()
  assert.deepEqual(
    written().map(({ count }) => count),
    [2],
  )
})

test('expectations hold a sync back until all is seen, once each, or five minutes passed', async () => {
  const clock = new VirtualClock()
  const expectations = createExpectations(clock)
  assert.equal(expectations.satisfied('rs'), true)
  expectations.expectCreations('rs', 3)
  expectations.creationObserved('rs')
  expectations.creationsFailed('rs', 1)
  assert.equal(expectations.satisfied('rs'), false)
  expectations.creationObserved('rs')
  assert.equal(expectations.satisfied('rs'), true)
  expectations.expectDeletions('rs', ['x/a', 'x/b'])
  expectations.deletionObserved('rs', 'x/a')
  expectations.deletionObserved('rs', 'x/a')
  assert.equal(expectations.satisfied('rs'), false)
  await clock.advance(expectationsTimeoutMs + 1)
  assert.equal(expectations.satisfied('rs'), true)
})

test('events of different objects are sent in parallel, events of one object in order', async () => {
  const { server, clock, recorder, written } = setUp()
  let underWay = 0
  let most = 0
  server.intercept = async () => {
    most = Math.max(most, ++underWay)
    await clock.sleep(10)
    underWay--
  }
  for (let i = 0; i < 100; i++) recorder.event(anObject('Pod', { namespace: 'x', name: `p${i}` }), 'Normal', 'Did', 'first')
  for (let i = 0; i < 100; i++) recorder.event(anObject('Pod', { namespace: 'x', name: `p${i}` }), 'Normal', 'Did', 'first')
  const flushed = recorder.flush()
  await clock.advance(80)
  await flushed
  assert.equal(most, 32)
  assert.deepEqual([written().length, new Set(written().map(({ count }) => count))], [100, new Set([2])])
})
