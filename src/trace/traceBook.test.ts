import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TracedRequest } from '#api/debug/traces'
import { VirtualClock } from '#base/virtualClock'
import { BoundedRing } from './boundedRing.ts'
import { TraceBook } from './traceBook.ts'

const get = (name: string, more: object = {}) => ({ isAsked: false, verb: 'get', resource: 'pods', namespace: 'a', name, ...more })
const record = (id: string, more: object = {}): TracedRequest => ({
  id,
  atMs: 0,
  user: 'u',
  groups: [],
  verb: 'get',
  uri: '/',
  code: 200,
  durationMs: 0,
  stages: [],
  ...more,
})
const all = () => true

test('X7 a ring drops its oldest entries beyond its count and its bytes, and refuses what is larger than it', () => {
  const ring = new BoundedRing<number>(3, 100)
  for (const n of [1, 2, 3, 4]) ring.push(n, 10)
  assert.deepEqual([...ring.newest()], [4, 3, 2])
  ring.push(5, 85)
  assert.deepEqual([...ring.newest(), ring.bytes], [5, 4, 95])
  ring.push(6, 101)
  assert.deepEqual([...ring.newest()], [5, 4])
  for (let n = 0; n < 1000; n++) ring.push(n, 50)
  assert.deepEqual([...ring.newest(), ring.size, ring.bytes], [999, 998, 2, 100])
})

test('X7 nothing is recorded without a reader, and a rule for an object ends with its time', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  assert.equal(book.begin(get('web')), undefined)
  assert.equal(book.follows('pods', 'a', 'web'), false)
  book.addRule({ object: 'pods/a/web', seconds: 10 })
  assert.equal(book.follows('pods', 'a', 'web'), true)
  assert.equal(book.follows('pods', 'a', 'other'), false)
  const tracer = book.begin(get('web'))
  assert.ok(tracer)
  book.finish(tracer, record('1'))
  assert.equal(book.begin(get('other')), undefined)
  await clock.advance(10_000)
  assert.equal(book.begin(get('web')), undefined)
  assert.equal(book.follows('pods', 'a', 'web'), false)
  assert.deepEqual(
    book.requests(all).map(({ id }) => id),
    ['1'],
  )
})

test('X7 a rule for a user keeps the requests of that user alone', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  assert.equal(book.addRule({ user: 'bob', seconds: 10 }), undefined)
  for (const user of ['bob', 'eve']) {
    const tracer = book.begin(get('x'))
    assert.ok(tracer)
    book.finish(tracer, record(user, { user }))
  }
  assert.deepEqual(
    book.requests(all).map(({ id }) => id),
    ['bob'],
  )
  await clock.advance(10_001)
  const late = book.begin(get('x'))
  if (late) book.finish(late, record('late', { user: 'bob' }))
  assert.equal(book.requests(all).length, 1)
  for (let n = 0; n < 100; n++) assert.equal(book.addRule({ user: `u${n}`, seconds: 10 }), undefined)
  assert.match(book.addRule({ user: 'one more', seconds: 10 }) ?? '', /100 rules/)
})

test('X7 rules of users about themselves give way to those of others, and take no place of theirs', () => {
  const book = new TraceBook(new VirtualClock())
  for (let n = 0; n < 200; n++) assert.equal(book.addRule({ user: `u${n}`, seconds: 10 }, true), undefined)
  for (let n = 0; n < 100; n++) assert.equal(book.addRule({ user: `other${n}`, seconds: 10 }), undefined)
  assert.match(book.addRule({ user: 'u1', seconds: 10 }, true) ?? '', /100 rules/)
})

test('X7 an object that a rule is about stays followed, whatever explained requests touch', () => {
  const book = new TraceBook(new VirtualClock())
  assert.equal(book.addRule({ object: 'pods/a/wanted', seconds: 600 }), undefined)
  for (let n = 0; n < 1_100; n++) book.begin(get('x', { isAsked: true }))?.changing('configmaps', { namespace: 'b', name: `c${n}`, uid: `u${n}` })
  assert.ok(book.follows('pods', 'a', 'wanted'))
  assert.ok(book.follows('configmaps', 'b', 'c1099'))
  for (let n = 0; n < 999; n++) assert.equal(book.addRule({ object: `pods/a/p${n}`, seconds: 600 }), undefined)
  assert.match(book.addRule({ object: 'pods/a/one-more', seconds: 600 }) ?? '', /1000 objects/)
})

test('X7 a rule for a user adds no requests of others to the sample', () => {
  const book = new TraceBook(new VirtualClock(), { sampleEvery: 3 })
  book.addRule({ user: 'bob', seconds: 10 })
  for (let n = 0; n < 7; n++) {
    const tracer = book.begin(get('x'))
    assert.ok(tracer)
    book.finish(tracer, record(String(n), { user: 'eve', atMs: n }))
  }
  assert.deepEqual(
    book.requests(all).map(({ id }) => id),
    ['6', '3', '0'],
  )
})

test('X7 times within a record do not go back, after the wall clock is set back and another record begins', () => {
  let wallMs = 10_000
  const book = new TraceBook({ ...new VirtualClock(), now: () => wallMs, monotonicMs: () => 5 } as never)
  const early = book.begin(get('x', { isAsked: true }))
  wallMs = 4000
  const late = book.begin(get('y', { isAsked: true }))
  assert.deepEqual([early?.now(), late?.now()], [10_000, 4000])
})

test('X7 the refusals of a user take at most 64 KiB', () => {
  const book = new TraceBook(new VirtualClock())
  for (let n = 0; n < 32; n++) book.refused(record(String(n), { code: 403, atMs: n, message: 'x'.repeat(10_000) }))
  assert.deepEqual(
    book.requests(all).map(({ id }) => id),
    ['31', '30', '29', '28', '27', '26'],
  )
})

test('LRN-05 what an explained request creates is followed, and what it owns, for two minutes', async () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  const asked = book.begin(get('', { isAsked: true, verb: 'create', resource: 'deployments' }))
  asked?.creating('apps', 'deployments', { namespace: 'a', name: 'web', uid: '1' })
  assert.equal(book.follows('deployments', 'a', 'web'), true)
  const own = book.begin(get('', { verb: 'create', resource: 'replicasets' }))
  own?.creating('apps', 'replicasets', { namespace: 'a', name: 'web-1', uid: '2', ownerReferences: [{ uid: '1' }] })
  const below = book.begin(get('', { verb: 'create' }))
  below?.creating('', 'pods', { namespace: 'a', name: 'web-1-x', uid: '3', ownerReferences: [{ uid: '2' }] })
  const foreign = book.begin(get('', { verb: 'create' }))
  foreign?.creating('', 'pods', { namespace: 'a', name: 'foreign', uid: '4' })
  assert.equal(book.begin(get('', { verb: 'create', namespace: 'b' })), undefined)
  assert.deepEqual([book.follows('replicasets', 'a', 'web-1'), book.follows('pods', 'a', 'web-1-x'), book.follows('pods', 'a', 'foreign')], [true, true, false])
  assert.ok(below && foreign)
  book.finish(below, record('below'))
  book.finish(foreign, record('foreign'))
  assert.deepEqual(
    book.requests(all).map(({ id }) => id),
    ['below'],
  )
  await clock.advance(120_000)
  assert.equal(book.follows('pods', 'a', 'web-1-x'), false)
})

test('X7 sampling records every n-th request', () => {
  const book = new TraceBook(new VirtualClock(), { sampleEvery: 3 })
  const taken = Array.from({ length: 7 }, (_, n) => book.begin(get(`x${n}`)) !== undefined)
  assert.deepEqual(taken, [true, false, false, true, false, false, true])
})

test('X7 a recorded refusal is listed once', () => {
  const book = new TraceBook(new VirtualClock())
  const tracer = book.begin(get('x', { isAsked: true }))
  assert.ok(tracer)
  book.refused(record('1', { code: 403 }))
  book.finish(tracer, record('1', { code: 403, stages: [{ stage: 's', decision: 'd', atMs: 0, durationMs: 0 }] }))
  assert.deepEqual(
    book.requests(all).map(({ stages }) => stages.length),
    [1],
  )
})
