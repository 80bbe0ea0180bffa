import assert from 'node:assert/strict'
import test from 'node:test'
import { notFound } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import { textAnswer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import { auditStage } from './audit.ts'
import { parseRequestInfo } from './requestInfo.ts'

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
    const stage = auditStage({ level: () => 'Metadata', write: (event) => events.push(event) }, clock)
    // What fails goes on failing: the stages outside turn it into an answer.
    await Promise.resolve(stage.handle(request, work)).catch(() => undefined)
    assert.deepEqual(stagesOf(events), want)
  })
}

function stagesOf(events: readonly string[]): string[] {
  return events.map((text) => JSON.parse(text)).map(({ stage, responseStatus }) => (responseStatus ? `${stage} ${responseStatus.code}` : stage))
}

test('API-21 an event says who, what, where from and when', async () => {
  const { request, events, clock } = setUp()
  await auditStage({ level: () => 'Metadata', write: (event) => events.push(event) }, clock).handle(request, () => textAnswer(200, 'ok'))
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
    requestReceivedTimestamp: '1970-01-01T00:00:00.000000Z',
    stageTimestamp: '2026-01-01T00:00:00.000000Z',
  })
})

test('API-21 level None leaves no trace', async () => {
  const { request, events, clock } = setUp()
  await auditStage({ level: () => 'None', write: (event) => events.push(event) }, clock).handle(request, () => textAnswer(200, 'ok'))
  assert.deepEqual(events, [])
})
