import assert from 'node:assert/strict'
import test from 'node:test'
import { printable } from '#base/printable'
import { VirtualClock } from '#base/virtualClock'
import type { AuditBackend, ReportLoss } from './backend.ts'
import { type BatchConfig, createBatchBackend } from './batch.ts'
import { AuditEvent, type EventFields, ObjectReference, RequestFacts } from './event.ts'
import { createLogBackend } from './logBackend.ts'
import { sourceIps } from './sourceIps.ts'
import { AuditTexts, quote } from './texts.ts'
import { createTruncateBackend } from './truncate.ts'
import { createTurnEnd } from './turnEnd.ts'

const texts = new AuditTexts()

function eventOf(id: string, more: Partial<EventFields> = {}, requestURI = '/api/v1/pods'): AuditEvent {
  const request = new RequestFacts({
    ...{
      level: 'Request',
      auditID: id,
      requestURI,
      verb: 'list',
      texts,
      origin: texts.origin({ headers: {}, remoteAddress: '192.0.2.7' }),
      userAgent: 'kubectl',
    },
    ...{ user: { name: 'jane', groups: ['dev', 'ops'] }, receivedMs: Date.UTC(2026, 0, 1, 2, 3, 4, 500) },
  })
  return new AuditEvent({
    ...{ request, stage: 'ResponseComplete', impersonatedUser: undefined, objectRef: new ObjectReference({ resource: 'pods', namespace: 'a' }) },
    ...{ responseStatus: { metadata: {}, code: 200 }, requestObject: undefined, responseObject: undefined, annotations: undefined },
    ...{ stageMs: Date.UTC(2026, 0, 1, 2, 3, 5) },
    ...more,
  })
}

function recording() {
  const batches: string[][] = []
  const lost: string[] = []
  const backend: AuditBackend = {
    process: (events) => batches.push(events.map((event) => event.fields.request.auditID)) > 0,
    close: () => Promise.resolve(),
  }
  const reportLoss: ReportLoss = (plugin, error, events) => void lost.push(`${plugin}: ${error}: ${events.map((event) => event.fields.request.auditID)}`)
  return { batches, lost, backend, reportLoss }
}

const config: BatchConfig = { bufferSize: 10, maxBatchSize: 3, maxBatchWaitMs: 1_000, asyncDelegate: false }

test('API-21 batches go when they are full, or when the first of them has waited', async () => {
  const clock = new VirtualClock()
  const { batches, backend, reportLoss } = recording()
  const batch = createBatchBackend(backend, config, clock, reportLoss)
  for (const id of ['a', 'b', 'c', 'd']) void batch.process([eventOf(id)])
  assert.deepEqual(batches, [], 'no request waits')
  await clock.advance(0)
  assert.deepEqual(batches, [['a', 'b', 'c']])
  await clock.advance(999)
  assert.equal(batches.length, 1)
  await clock.advance(1)
  assert.deepEqual(batches[1], ['d'])
})

test('API-21 a full buffer drops the event and reports it, and closing writes the buffered events', async () => {
  const clock = new VirtualClock()
  const { batches, lost, backend, reportLoss } = recording()
  const batch = createBatchBackend(backend, { ...config, bufferSize: 2, maxBatchSize: 100 }, clock, reportLoss)
  void batch.process([eventOf('a'), eventOf('b'), eventOf('c')])
  const closing = batch.close()
  void batch.process([eventOf('d')])
  await clock.advance(0)
  await closing
  assert.deepEqual(batches, [['a', 'b']])
  assert.deepEqual(lost, ['buffered: audit buffer queue blocked: c', 'buffered: audit backend shut down: d'])
})

test('API-21 batches are limited to so many a second', async () => {
  const clock = new VirtualClock()
  const { batches, backend, reportLoss } = recording()
  const batch = createBatchBackend(backend, { ...config, maxBatchSize: 2, throttle: { qps: 2, burst: 1 } }, clock, reportLoss)
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) void batch.process([eventOf(id)])
  await clock.advance(0)
  assert.equal(batches.length, 1)
  await clock.advance(499)
  assert.equal(batches.length, 1)
  await clock.advance(1)
  assert.equal(batches.length, 2)
  await clock.advance(500)
  assert.equal(batches.length, 3)
})

test('API-21 events that are too large lose their bodies, or are left out; batches are split', () => {
  const { batches, lost, backend, reportLoss } = recording()
  const seen: AuditEvent[] = []
  const spying: AuditBackend = { ...backend, process: (events) => seen.push(...events) > 0 && backend.process(events) }
  const truncate = createTruncateBackend(spying, { maxEventBytes: 800, maxBatchBytes: 1_300 }, reportLoss)
  const body = JSON.stringify('x'.repeat(1_000))
  void truncate.process([eventOf('a', { requestObject: body }), eventOf('b'), eventOf('c'), eventOf('d', {}, `/${'y'.repeat(2_000)}`)])
  assert.deepEqual(batches, [['a', 'b'], ['c']])
  assert.deepEqual(lost, ['truncate: event is too large even after truncating: d'])
  const { requestObject, annotations } = JSON.parse(seen[0]?.json() ?? '')
  assert.deepEqual([requestObject, annotations], [undefined, { 'audit.k8s.io/truncated': 'true' }])
})

test('API-21 the log has one line per event, as JSON or as text, and a failed write is reported', () => {
  const { lost, reportLoss } = recording()
  const lines: string[] = []
  const writer = { write: (text: string) => void lines.push(text), close: () => Promise.resolve() }
  void createLogBackend(writer, 'legacy', reportLoss).process([
    eventOf('a'),
    eventOf('b', { impersonatedUser: { name: 'joe', groups: [] }, responseStatus: undefined }),
  ])
  assert.deepEqual(lines.join('').split('\n'), [
    '2026-01-01T02:03:04.5Z AUDIT: id="a" stage="ResponseComplete" ip="192.0.2.7" method="list" user="jane" groups="\\"dev\\",\\"ops\\"" as="<self>" asgroups="<lookup>" user-agent="kubectl" namespace="a" uri="/api/v1/pods" response="200"',
    '2026-01-01T02:03:04.5Z AUDIT: id="b" stage="ResponseComplete" ip="192.0.2.7" method="list" user="jane" groups="\\"dev\\",\\"ops\\"" as="joe" asgroups="" user-agent="kubectl" namespace="a" uri="/api/v1/pods" response="<deferred>"',
    '',
  ])
  const failing = {
    ...writer,
    write: () => {
      throw new Error('disk full')
    },
  }
  assert.equal(createLogBackend(failing, 'json', reportLoss).process([eventOf('a')]), false)
  assert.deepEqual(lost, ['log: disk full: a'])
})

test('API-21 an audit line holds no control characters, whatever the request said', () => {
  const hostile = 'x\u001b[2K\r\ny\u007f\u009b\u202e\u2028'
  for (const format of ['json', 'legacy'] as const) {
    const written: string[] = []
    const writer = { write: (text: string) => void written.push(text), close: () => Promise.resolve() }
    const event = eventOf('a', { impersonatedUser: { name: hostile, groups: [hostile] }, annotations: { [hostile]: hostile } }, `/${hostile}`)
    assert.equal(createLogBackend(writer, format, recording().reportLoss).process([event]), true)
    const [line = '', ...more] = written.join('').split('\n')
    assert.deepEqual([printable(line), more], [line, ['']])
    if (format === 'json') assert.equal(JSON.parse(line).requestURI, `/${hostile}`)
  }
})

test('API-21 a line longer than a file may be is lost alone', () => {
  const { lost, reportLoss } = recording()
  const written: string[] = []
  const writer = { mostLineBytes: 1_000, write: (text: string) => void written.push(text), close: () => Promise.resolve() }
  const long = `/${'ä'.repeat(500)}`
  assert.equal(createLogBackend(writer, 'json', reportLoss).process([eventOf('a'), eventOf('b', {}, long), eventOf('c')]), false)
  const ids = written.map((text) => text.split('\n').flatMap((line) => (line ? JSON.parse(line).auditID : [])))
  assert.deepEqual(ids, [['a', 'c']])
  assert.match(lost.join(), /^log: write length 1[34]\d\d exceeds maximum file size 1000: b$/)
})

test('API-21 the events of a turn are handed on together: when an answer is about to go, when the turn is over, at the end', async () => {
  const { batches, backend } = recording()
  const turn = createTurnEnd(backend)
  for (const id of ['a', 'b']) assert.equal(turn.process([eventOf(id)]), true)
  assert.deepEqual(batches, [])
  turn.flush?.()
  turn.flush?.()
  assert.deepEqual(batches, [['a', 'b']])
  void turn.process([eventOf('c')])
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(batches.slice(1), [['c']])
  void turn.process([eventOf('d')])
  await turn.close()
  assert.deepEqual(batches.slice(2), [['d']])
})

for (const text of ['', 'plain', 'a "quoted" word', 'back\\slash', 'line\nend', 'umlaut ä', 'lone \ud800', '\u007f', 'x'.repeat(300)]) {
  test(`API-21 quoted as JSON has it: ${JSON.stringify(text.slice(0, 20))}`, () => {
    assert.equal(quote(text), JSON.stringify(text))
    assert.equal(texts.quoted(text), JSON.stringify(text))
  })
}

const origins = [
  { headers: {}, want: ['192.0.2.1'] },
  { headers: { 'x-forwarded-for': '198.51.100.1, nonsense, 2001:db8::1' }, want: ['198.51.100.1', '2001:db8::1', '192.0.2.1'] },
  { headers: { 'x-forwarded-for': '192.0.2.1' }, want: ['192.0.2.1'] },
  { headers: { 'x-real-ip': '198.51.100.2' }, want: ['198.51.100.2', '192.0.2.1'] },
  { headers: { 'x-forwarded-for': '198.51.100.2', 'x-real-ip': '198.51.100.2' }, want: ['198.51.100.2', '192.0.2.1'] },
]
for (const { headers, want } of origins) {
  test(`API-21 a request with ${JSON.stringify(headers)} comes from ${want}`, () => {
    assert.deepEqual(sourceIps({ headers, remoteAddress: '::ffff:192.0.2.1' }), want)
  })
}
