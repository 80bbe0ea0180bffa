import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import test from 'node:test'
import { isStatus, notFound } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { AuditSink } from '../audit/sink.ts'
import { AuditTexts } from '../audit/texts.ts'
import { textAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { parseRequestInfo } from '../core/requestInfo.ts'
import { auditStage } from './audit.ts'

const cases = [
  { name: 'an answer', work: () => textAnswer(200, 'ok'), want: ['RequestReceived', 'ResponseComplete 200'] },
  {
    name: 'a refusal',
    work: () => {
      throw notFound({ group: '', resource: 'pods' }, 'p')
    },
    want: ['RequestReceived', 'ResponseComplete 404'],
  },
  {
    name: 'a failure',
    work: () => {
      throw new Error('broken')
    },
    want: ['RequestReceived', 'Panic 500'],
  },
] as const

function setUp() {
  const query = new URLSearchParams('limit=1')
  const user = { name: 'jane', groups: ['dev'] }
  const info = parseRequestInfo('GET', '/api/v1/namespaces/a/pods/p', query)
  const headers = { 'user-agent': 'kubectl' }
  const fields = { method: 'GET', path: info.path, query, headers, info, user, originalUser: user, auditId: 'id', remoteAddress: '192.0.2.7', receivedMs: 0 }
  const events: string[] = []
  return { request: fields as unknown as ServerRequest, events, clock: new VirtualClock('2026-01-01T00:00:00Z') }
}

for (const { name, work, want } of cases) {
  test(`API-21 the stages of ${name} are written down`, async () => {
    const { request, events, clock } = setUp()
    const stage = auditStage(writingTo(events), clock)
    // The stage rethrows errors: the outer stages turn them into an answer.
    await Promise.resolve(stage.handle(request, work)).catch(() => undefined)
    assert.deepEqual(stagesOf(events), want)
  })
}

function writingTo(events: string[]): AuditSink {
  return {
    texts: new AuditTexts(),
    rule: () => ({ level: 'Metadata', omitStages: new Set(), omitManagedFields: false }),
    process: (event) => events.push(event.json()) > 0,
  }
}

function stagesOf(events: readonly string[]): string[] {
  return events.map((text) => JSON.parse(text)).map(({ stage, responseStatus }) => (responseStatus ? `${stage} ${responseStatus.code}` : stage))
}

test('API-21 an event has the user, the request, the source address and the time', async () => {
  const { request, events, clock } = setUp()
  request.receivedMs = clock.now() - 400
  await auditStage(writingTo(events), clock).handle(request, () => textAnswer(200, 'ok'))
  assert.deepEqual(JSON.parse(events[1] ?? ''), {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'id',
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/a/pods/p?limit=1',
    verb: 'get',
    user: { username: 'jane', groups: ['dev'] },
    sourceIPs: ['192.0.2.7'],
    userAgent: 'kubectl',
    objectRef: { resource: 'pods', namespace: 'a', name: 'p', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 200 },
    requestReceivedTimestamp: '2025-12-31T23:59:59.600000Z',
    stageTimestamp: '2026-01-01T00:00:00.000000Z',
  })
})

test('API-21 level None leaves no trace', async () => {
  const { request, events, clock } = setUp()
  await auditStage({ ...writingTo(events), rule: () => undefined }, clock).handle(request, () => textAnswer(200, 'ok'))
  assert.deepEqual(events, [])
})

test('API-21 where its first event is lost, a request is refused before anything happens', async () => {
  const { request, events, clock } = setUp()
  let rejected = 0
  const sink: AuditSink = { ...writingTo(events), process: () => Promise.resolve(false), rejected: () => void rejected++ }
  const work = () => assert.fail('it went on')
  await assert.rejects(Promise.resolve(auditStage(sink, clock).handle(request, work)), (error) => isStatus(error) && error.code === 500)
  assert.equal(rejected, 1)
})

test('API-21 a tunnel has an event when it opens and one when it closes', async () => {
  const { request, events, clock } = setUp()
  request.info = parseRequestInfo('POST', '/api/v1/namespaces/a/pods/p/exec', new URLSearchParams())
  const opened = await auditStage(writingTo(events), clock).handle(request, () => ({ type: 'tunnel', connect: () => Promise.resolve(undefined) }))
  assert.deepEqual(stagesOf(events), ['RequestReceived', 'ResponseStarted 101'])
  if (opened.type === 'tunnel') await opened.connect(new Duplex(), Buffer.alloc(0), clock)
  assert.deepEqual(stagesOf(events), ['RequestReceived', 'ResponseStarted 101', 'ResponseComplete 101'])
})

test('API-21 stages that the policy leaves out are not written', async () => {
  const { request, events, clock } = setUp()
  const omitStages = new Set(['RequestReceived'] as const)
  await auditStage({ ...writingTo(events), rule: () => ({ level: 'Metadata', omitStages, omitManagedFields: false }) }, clock).handle(request, () =>
    textAnswer(200, 'ok'),
  )
  assert.deepEqual(stagesOf(events), ['ResponseComplete 200'])
})

test('API-21 the last event of a request above half a second has its latency', async () => {
  for (const [ms, want] of [
    [500, undefined],
    [1_250, { 'apiserver.latency.k8s.io/total': '1.25s' }],
  ] as const) {
    const { request, events, clock } = setUp()
    request.receivedMs = clock.now()
    await auditStage(writingTo(events), clock).handle(request, async () => {
      const work = clock.sleep(ms)
      await clock.advance(ms)
      await work
      return textAnswer(200, 'ok')
    })
    assert.deepEqual(
      events.map((text) => JSON.parse(text).annotations),
      [undefined, want],
    )
  }
})

test('API-21 the last event of a slow request has the durations of its parts', async () => {
  const { request, events, clock } = setUp()
  request.receivedMs = clock.now()
  request.authenticationMs = 12
  await auditStage(writingTo(events), clock).handle(request, async ({ audit }) => {
    for (const ms of [100, 300]) {
      audit?.spent('mutating-webhook', ms)
      audit?.spent('validating-webhook', ms)
      audit?.spent('authorization', ms)
      audit?.spent('transform-response-object', ms)
    }
    audit?.spent('etcd', 0)
    const work = clock.sleep(2_000)
    await clock.advance(2_000)
    await work
    return textAnswer(200, 'ok')
  })
  assert.deepEqual(JSON.parse(events[1] ?? '').annotations, {
    'apiserver.latency.k8s.io/authentication': '12ms',
    'apiserver.latency.k8s.io/authorization': '300ms',
    'apiserver.latency.k8s.io/mutating-webhook': '400ms',
    'apiserver.latency.k8s.io/total': '2s',
    'apiserver.latency.k8s.io/transform-response-object': '400ms',
    'apiserver.latency.k8s.io/validating-webhook': '300ms',
  })
})

test('API-21 a request waits for no promise where neither its work nor the sink makes one', () => {
  const { request, events, clock } = setUp()
  const answer = auditStage(writingTo(events), clock).handle(request, () => textAnswer(200, 'ok'))
  assert.ok(!(answer instanceof Promise))
  assert.deepEqual(stagesOf(events), ['RequestReceived', 'ResponseComplete 200'])
})
