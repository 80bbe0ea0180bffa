import assert from 'node:assert/strict'
import test from 'node:test'
import { flowNamed, jainIndex, oneSeat, queueSetOf, runLoads } from './testFlows.ts'

const configuration = { queues: 64, handSize: 6, queueLengthLimit: 50 }
const elephant = flowNamed('elephant', configuration)
const mouse = flowNamed('mouse', configuration)

test('API-18 flows that together exceed the seats get equal shares, whatever their numbers of clients', async () => {
  const set = queueSetOf(configuration, 10)
  const flows = [4, 8, 20, 40].map((clients, i) => ({ flow: { ...flowNamed(`user${i}`, configuration), hand: [i] }, clients, serviceMs: 10 }))
  const results = await runLoads(set, flows, 20_000)
  assert.ok(jainIndex(results.map(({ served }) => served)) > 0.99, JSON.stringify(results))
  // No seat was idle while requests waited.
  assert.ok(results.reduce((sum, { served }) => sum + served, 0) > 10 * 20_000 * 0.99)
})

test('API-18 requests that take longer or more seats give their flow fewer of them, not more of the server', async () => {
  const set = queueSetOf(configuration, 10)
  const loads = [
    { flow: flowNamed('short', configuration), clients: 100, serviceMs: 5 },
    { flow: flowNamed('long', configuration), clients: 100, serviceMs: 50 },
    { flow: flowNamed('wide', configuration), clients: 100, serviceMs: 10, work: { ...oneSeat, initialSeats: 3 } },
  ]
  const results = await runLoads(set, loads, 30_000)
  assert.ok(jainIndex(results.map(({ served }) => served)) > 0.95, JSON.stringify(results))
})

test('API-18 who asks for less than a share does not wait behind one who floods', async () => {
  const set = queueSetOf(configuration, 10)
  const [flood, gentle] = await runLoads(
    set,
    [
      { flow: elephant, clients: 500, serviceMs: 20 },
      { flow: mouse, clients: 2, serviceMs: 20 },
    ],
    10_000,
  )
  assert.ok(flood && gentle)
  assert.equal(gentle.rejected, 0)
  // The next seat that becomes free is the mouse's: never more than one service time away.
  assert.ok(gentle.longestWaitMs <= 20, `${gentle.longestWaitMs}`)
  assert.ok(flood.rejected > 1000, 'six queues hold 300; the others are turned away')
})

test('API-18 a full queue turns away, unless the request is patient', () => {
  const { queueSet, start } = queueSetOf({ queues: 1, handSize: 1, queueLengthLimit: 2 }, 1)
  const flow = flowNamed('a', { queues: 1, handSize: 1, queueLengthLimit: 2 })
  const states = [start(flow), start(flow), start(flow), start(flow), start(flow, oneSeat, true)].map(({ state }) => state)
  assert.deepEqual(states, ['executing', 'waiting', 'waiting', 'rejected', 'waiting'])
  assert.deepEqual(queueSet.counts, { waiting: 3, executing: 1, dispatched: 1, rejected: 1, cancelled: 0 })
})

test('API-18 without queues what finds no seat is turned away; without a limit nothing is', () => {
  const none = { queues: 0, handSize: 1, queueLengthLimit: 1 }
  const limited = queueSetOf(none, 2)
  const flow = flowNamed('a', none)
  assert.deepEqual(
    [limited.start(flow), limited.start(flow), limited.start(flow)].map(({ state }) => state),
    ['executing', 'executing', 'rejected'],
  )
  const exempt = queueSetOf({ ...none, queues: -1 }, 0)
  assert.deepEqual(
    [exempt.start(flow), exempt.start(flow)].map(({ state }) => state),
    ['executing', 'executing'],
  )
})

test('API-18 who leaves the queue leaves the others their order', () => {
  const { queueSet, start } = queueSetOf({ queues: 1, handSize: 1, queueLengthLimit: 9 }, 1)
  const flow = flowNamed('a', { queues: 1, handSize: 1, queueLengthLimit: 9 })
  const [first, second, third, fourth] = [start(flow), start(flow), start(flow), start(flow)]
  assert.ok(first && second && third && fourth)
  const served: string[] = []
  second.dispatched = () => served.push('second')
  third.dispatched = () => served.push('third')
  fourth.dispatched = () => served.push('fourth')
  assert.equal(queueSet.cancel(third), true)
  assert.equal(queueSet.cancel(third), false)
  queueSet.finish(first)
  assert.equal(queueSet.cancel(second), false, 'it executes')
  queueSet.finish(second)
  queueSet.finish(fourth)
  assert.deepEqual(served, ['second', 'fourth'])
  assert.deepEqual(queueSet.counts, { waiting: 0, executing: 0, dispatched: 3, rejected: 1, cancelled: 1 })
  assert.equal(queueSet.isIdle, true)
})

test('API-18 a write keeps its seats while its event goes to watchers, and its client has the answer already', async () => {
  const { clock, queueSet, start } = queueSetOf({ queues: 1, handSize: 1, queueLengthLimit: 9 }, 4)
  const flow = flowNamed('a', { queues: 1, handSize: 1, queueLengthLimit: 9 })
  const write = start(flow, { initialSeats: 1, finalSeats: 3, additionalLatencyMs: 15 })
  const wide = start(flow, { ...oneSeat, initialSeats: 2 })
  queueSet.finish(write)
  assert.deepEqual([write.state, wide.state], ['done', 'waiting'])
  await clock.advance(14)
  assert.equal(wide.state, 'waiting')
  await clock.advance(1)
  assert.equal(wide.state, 'executing')
})

test('API-18 a request wider than its level runs alone', () => {
  const { queueSet, start } = queueSetOf(configuration, 2)
  const small = start(mouse)
  const wide = start(elephant, { ...oneSeat, initialSeats: 5 })
  assert.equal(wide.state, 'waiting')
  queueSet.finish(small)
  assert.equal(wide.state, 'executing')
  assert.equal(start(mouse).state, 'waiting')
})

test('API-18 queues that are too many go when they are empty', async () => {
  const { queueSet, start } = queueSetOf(configuration, 1)
  const running = start(elephant)
  const waiting = start(elephant)
  queueSet.configure({ queues: 2, handSize: 1, queueLengthLimit: 5 }, 1)
  const other = start(flowNamed('other', { queues: 2, handSize: 1, queueLengthLimit: 5 }))
  const entries = [running, waiting, other]
  while (!queueSet.isIdle) queueSet.finish(entries.find(({ state }) => state === 'executing') ?? assert.fail('nothing executes'))
  assert.ok(queueSet.queues.every((queue, i) => queue.index === i && queue.isIdle))
  assert.ok(queueSet.queues.length < 64)
})

test('API-18 what a flow had answered a moment ago takes its seats from itself alone, until it is forgotten', () => {
  const { queueSet, start } = queueSetOf({ queues: 64, handSize: 6, queueLengthLimit: 1 }, 2)
  const answered = [start(elephant), start(elephant)]
  for (const entry of answered) {
    queueSet.finish(entry)
    queueSet.remember(entry)
  }
  const waiting = Array.from({ length: 6 }, () => start(elephant))
  assert.deepEqual(new Set(waiting.map(({ state }) => state)), new Set(['waiting']))
  assert.equal(start(elephant).state, 'rejected')
  assert.equal(start(mouse).state, 'executing')
  for (const entry of answered) queueSet.forget(entry, 0)
  assert.deepEqual([queueSet.counts.executing, queueSet.counts.waiting], [2, 5])
})

test('API-18 without queues, too, what was answered a moment ago counts until it is forgotten', () => {
  const none = { queues: 0, handSize: 1, queueLengthLimit: 1 }
  const { queueSet, start } = queueSetOf(none, 1)
  const flow = flowNamed('a', none)
  const entry = start(flow)
  queueSet.finish(entry)
  queueSet.remember(entry)
  assert.equal(start(flow).state, 'rejected')
  queueSet.forget(entry, 0)
  assert.equal(start(flow).state, 'executing')
})

test('API-18 what was answered a moment ago wanted its seats, so that its level can borrow some, until it is forgotten', async () => {
  const { clock, queueSet, demand, start } = queueSetOf(configuration, 2)
  const answered = [start(elephant), start(elephant)]
  for (const entry of answered) {
    queueSet.finish(entry)
    queueSet.remember(entry)
  }
  start(elephant)
  await clock.advance(1000)
  assert.deepEqual(demand.reset(clock.monotonicMs()).average, 3, 'two that are remembered, one that waits')
  for (const entry of answered) queueSet.forget(entry, clock.monotonicMs())
  await clock.advance(1000)
  assert.deepEqual(demand.reset(clock.monotonicMs()).average, 1, 'the one that waited is executing')
})

test('API-18 of several flows that wait, each dispatch takes the one that would be finished first, in turns among equals', () => {
  const one = { queues: 3, handSize: 1, queueLengthLimit: 10 }
  const { queueSet, start } = queueSetOf(one, 1)
  const flows = ['a', 'b', 'c'].map((name, i) => ({ ...flowNamed(name, one), hand: [i] }))
  const running = start({ ...flowNamed('first', one), hand: [2] })
  const waiting = [0, 0, 1, 2, 1, 2].map((i) => start(flows[i] as (typeof flows)[number]))
  const order: string[] = []
  for (let entry = running; ; ) {
    queueSet.finish(entry)
    const next = waiting.find(({ state }) => state === 'executing')
    if (!next) break
    order.push(next.flow.distinguisher)
    entry = next
  }
  assert.deepEqual(order, ['a', 'b', 'c', 'a', 'b', 'c'])
})
