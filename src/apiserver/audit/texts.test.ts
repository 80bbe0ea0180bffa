import assert from 'node:assert/strict'
import test from 'node:test'
import { formatMicroTime } from '#base/time'
import type { UserInfo } from '../core/request.ts'
import { requestOf } from '../core/testRequest.ts'
import type { AuditRule } from './event.ts'
import { AuditRecord } from './record.ts'
import { AuditTexts } from './texts.ts'

const user: UserInfo = { name: 'ännë "x"', uid: 'u', groups: ['g'] }
const rule: AuditRule = { level: 'Metadata', omitStages: new Set(), omitManagedFields: false }

test('API-21 a cached text equals the text made without the cache, whatever the number of callers', () => {
  const texts = new AuditTexts()
  const origin = texts.origin({ headers: {}, remoteAddress: '10.0.0.1' })
  const agents = [undefined, ...Array.from({ length: 6 }, (_, i) => `agent "${i}"`), 'long'.repeat(200)]
  for (let round = 0; round < 2; round++) {
    for (const verb of ['get', 'create']) {
      for (const userAgent of agents) {
        const said = JSON.parse(`{${texts.caller(verb, user, origin, userAgent).slice(1)}}`)
        const want = { verb, user: { username: user.name, uid: 'u', groups: ['g'] }, sourceIPs: ['10.0.0.1'], ...(userAgent ? { userAgent } : {}) }
        assert.deepEqual(said, want)
      }
    }
    for (let i = 0; i < 5000; i++) assert.equal(texts.member(`k${i % 3}`, `"ü" ${i}`), `"k${i % 3}":${JSON.stringify(`"ü" ${i}`)}`)
    for (const ms of [1_000, 1_000, 1_000.25, 61_999.5]) assert.equal(texts.time(ms), formatMicroTime(ms))
  }
})

test('API-21 each event has its own object reference and user, even if the objects change afterwards', () => {
  const texts = new AuditTexts()
  const info = { isResourceRequest: true, verb: 'create', resource: 'pods', namespace: 'a', name: '', apiGroup: '', apiVersion: 'v1', subresource: '' }
  const request = Object.assign(requestOf(), { info, user, originalUser: user, admissionAnnotations: [] })
  const record = new AuditRecord(request, rule, texts)
  const first = record.event('RequestReceived', 1)
  record.annotate('b', '1')
  record.requestObject({ metadata: { name: 'made', uid: 'id' } })
  const second = record.event('ResponseStarted', 2, { metadata: {}, code: 201 })
  record.annotate('a', '2')
  record.annotate('b', 'too late')
  request.user = { name: 'other', uid: '', groups: [] }
  const third = record.event('ResponseComplete', 3, { metadata: {}, code: 201 })
  const said = [first, second, third].map((event) => JSON.parse(event?.json() ?? '') as Record<string, unknown>)
  assert.deepEqual(
    said.map(({ stage, objectRef, annotations, impersonatedUser }) => ({ stage, objectRef, annotations, impersonatedUser })),
    [
      { stage: 'RequestReceived', objectRef: { resource: 'pods', namespace: 'a', apiVersion: 'v1' }, annotations: undefined, impersonatedUser: undefined },
      {
        stage: 'ResponseStarted',
        objectRef: { resource: 'pods', namespace: 'a', name: 'made', uid: 'id', apiVersion: 'v1' },
        annotations: { b: '1' },
        impersonatedUser: undefined,
      },
      {
        stage: 'ResponseComplete',
        objectRef: { resource: 'pods', namespace: 'a', name: 'made', uid: 'id', apiVersion: 'v1' },
        annotations: { a: '2', b: '1' },
        impersonatedUser: { username: 'other' },
      },
    ],
  )
  assert.deepEqual(Object.keys((said[2] as { annotations: object }).annotations), ['a', 'b'], 'in order, as Go writes maps')
})
