/** The stages without a separate test file, tested through the whole pipeline. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import test from 'node:test'
import { StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import type { Span } from '#base/traceContext'
import { createTracer } from '#base/tracer'
import { VirtualClock } from '#base/virtualClock'
import type { AuditSink } from '../audit/sink.ts'
import { AuditTexts } from '../audit/texts.ts'
import { type Answer, statusOf, textAnswer, type WatchAnswer } from '../core/answer.ts'
import type { Sent } from '../core/testRequest.ts'
import { WatchSession } from '../core/watch/watchSession.ts'
import { RequestGroup } from './requestGroup.ts'
import { sendThrough } from './testPipeline.ts'

const aborted = AbortSignal.abort()
const now = Date.parse('2026-01-01T00:00:00Z')

/** The code and, of a Status, its message. */
function shown(answer: Answer): string {
  if (answer.type === 'value') return `${answer.status} ${(answer.value as { message?: string }).message}`
  return answer.type === 'bytes' ? `${answer.status} ${Buffer.from(answer.bytes).toString().trim()}` : String(statusOf(answer))
}

const closing = 'apiserver is shutting down'
type Case = { name: string; sent?: Sent; with?: Parameters<typeof sendThrough>[1]; want: string; headers?: Record<string, unknown> }
const cases: Case[] = [
  { name: 'auditInit keeps the id of the client', sent: { headers: { 'audit-id': 'mine' } }, want: '200 ok', headers: { 'audit-id': 'mine' } },
  {
    name: 'panicRecovery hides nothing but the stack',
    with: {
      handler: () => {
        throw new Error('broken')
      },
    },
    want: '500 Internal error occurred: broken',
  },
  { name: 'cacheControl keeps answers out of caches', want: '200 ok', headers: { 'cache-control': 'no-cache, private' } },
  {
    name: 'hsts joins its directives',
    with: { config: { hstsDirectives: ['max-age=31536000', 'preload'] } },
    want: '200 ok',
    headers: { 'strict-transport-security': 'max-age=31536000; preload' },
  },
  {
    name: 'retryAfter sends clients elsewhere at a shutdown',
    with: { deps: { shutdown: aborted }, config: { shutdownSendRetryAfter: true } },
    want: '429 The apiserver is shutting down, please try again later.',
  },
  {
    name: 'retryAfter lets probes through',
    sent: { url: '/readyz' },
    with: { deps: { shutdown: aborted }, config: { shutdownSendRetryAfter: true } },
    want: '200 ok',
  },
  {
    name: 'retryAfter lets the server itself through',
    sent: { headers: { 'user-agent': 'kube-apiserver/v1.36' } },
    with: { deps: { shutdown: aborted }, config: { shutdownSendRetryAfter: true } },
    want: '200 ok',
  },
  { name: 'goaway ends a connection', with: { config: { goawayChance: 1 } }, want: '200 ok', headers: { connection: 'close' } },
  { name: 'without chance no connection ends', want: '200 ok', headers: { connection: undefined } },
  { name: 'waitGroup refuses what would last', sent: { url: '/api/v1/pods?watch=1' }, with: { deps: { shutdown: aborted } }, want: `503 ${closing}` },
  {
    name: 'waitGroup lets short requests in until the shutdown waits',
    with: { deps: { shutdown: aborted } },
    want: '200 ok',
  },
  {
    name: 'requestDeadline refuses what is no duration',
    sent: { url: '/api/v1/pods?timeout=soon' },
    want: '400 invalid timeout specified in the request URL - time: invalid duration "soon"',
  },
  {
    name: 'cors answers a preflight without authentication',
    sent: { method: 'OPTIONS', headers: { origin: 'https://app.example.com' } },
    with: { deps: { authenticators: [] }, config: { corsAllowedOrigins: ['//app\\.example\\.com$'] } },
    want: '204 ',
    headers: { 'access-control-allow-origin': 'https://app.example.com', 'access-control-allow-credentials': 'true' },
  },
  {
    name: 'cors knows no other origin',
    sent: { headers: { origin: 'https://app.example.com.evil.org' } },
    with: { config: { corsAllowedOrigins: ['//app\\.example\\.com$'] } },
    want: '200 ok',
    headers: { 'access-control-allow-origin': undefined },
  },
  {
    name: 'authentication refuses a request that no authenticator accepts',
    with: { deps: { authenticators: [] } },
    want: '401 Unauthorized',
    headers: { connection: 'close' },
  },
  {
    name: 'a refusal has the media type that the client accepts',
    sent: { headers: { accept: 'application/vnd.kubernetes.protobuf' } },
    with: { deps: { authenticators: [] } },
    want: '401 Unauthorized',
  },
  {
    name: 'authorization refuses what is not allowed',
    with: { deps: { authorizers: [] } },
    want: '403 pods "p" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "a"',
  },
  {
    name: 'impersonation refuses who may not',
    sent: { headers: { 'impersonate-user': 'joe' } },
    with: { deps: { authorizers: [{ name: 'test', authorize: ({ verb }) => ({ decision: verb === 'get' ? 'allow' : 'noOpinion', reason: '' }) }] } },
    want: '403 pods "p" is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "a"',
  },
]

for (const { name, sent, with: options, want, headers = {} } of cases) {
  test(`API-02 ${name}`, async () => {
    const { request, answer } = await sendThrough(sent, options)
    assert.equal(shown(answer).trimEnd(), want.trimEnd())
    const seen = Object.fromEntries(Object.keys(headers).map((header) => [header, request.responseHeaders?.[header]]))
    assert.deepEqual(seen, headers)
  })
}

test('API-02 errors are encoded as the client accepts them', async () => {
  const encodings = ['application/vnd.kubernetes.protobuf', 'application/yaml', 'application/json', 'image/png'].map(async (accept) => {
    const { answer } = await sendThrough({ headers: { accept } }, { deps: { authorizers: [] } })
    return answer.type === 'value' ? answer.encoding : answer.type
  })
  assert.deepEqual(await Promise.all(encodings), ['protobuf', 'yaml', undefined, undefined])
})

test('API-02 muxAndDiscovery marks early requests, and receivedTimestamp sets the time', async () => {
  const early = await sendThrough({}, { deps: { pathsComplete: () => false } })
  const later = await sendThrough()
  assert.deepEqual([early.request.pathsIncomplete, later.request.pathsIncomplete, later.request.receivedMs], [true, undefined, now])
})

test('API-31 warningRecorder sends each warning once, up to a limit', async () => {
  const warn = async (texts: readonly string[]) => {
    const { request } = await sendThrough(
      {},
      {
        handler: ({ warnings }) => {
          warnings.push(...texts)
          return textAnswer(200, 'ok')
        },
      },
    )
    return request.responseHeaders?.warning
  }
  assert.deepEqual(await warn(['a "b"', 'a "b"', 'c\nd', 'e\u001b', 'f\u009b', 'g\u202e']), ['299 - "a \\"b\\""', '299 - "g "'])
  assert.equal(await warn([]), undefined)
  const long = Array.from({ length: 40 }, (_, at) => `${at} ${'x'.repeat(500)}`)
  const cut = (await warn(long)) as string[]
  assert.deepEqual([cut.length, new Set(cut.map((text) => text.length))], [16, new Set([256 + '299 - ""'.length])])
})

test('API-31 warnings go out with refusals too', async () => {
  const { request } = await sendThrough(
    {},
    {
      handler: ({ warnings }) => {
        warnings.push('careful')
        throw new StatusError('Forbidden', 'no')
      },
    },
  )
  assert.deepEqual(request.responseHeaders?.warning, ['299 - "careful"'])
})

test('API-20 requestDeadline sets the least of what was asked and the most', async () => {
  const timeoutOf = async (url: string) => (await sendThrough({ url })).request.timeoutMs
  const urls = ['/api/v1/pods', '/api/v1/pods?timeout=2s', '/api/v1/pods?timeout=0s', '/api/v1/pods?timeout=2h', '/api/v1/pods?watch=1&timeout=2s']
  assert.deepEqual(await Promise.all(urls.map(timeoutOf)), [60_000, 2_000, 60_000, 60_000, undefined])
})

test("API-02 httpLog writes one line with upstream's keys", async () => {
  const lines: unknown[] = []
  const log = { ...noLog, v: (level: number) => ({ info: (message: string, fields: unknown) => lines.push([level, message, fields]) }) }
  await sendThrough({ url: '/api/v1/pods?limit=1', headers: { 'user-agent': 'kubectl', 'audit-id': 'id' } }, { deps: { log, authorizers: [] } })
  const fields = { verb: 'LIST', URI: '/api/v1/pods?limit=1', latency: '0ms', userAgent: 'kubectl', 'audit-ID': 'id', srcIP: '192.0.2.7', resp: 403 }
  assert.deepEqual(lines, [[3, 'HTTP', fields]])
})

test('API-02 waitGroup: a shutdown waits for open requests, and not for later ones', async () => {
  const requests = new RequestGroup()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const handler = async () => {
    await held
    return textAnswer(200, 'ok')
  }
  const slow = sendThrough({}, { deps: { requests, clock }, handler })
  const drained = requests.wait(clock, 1_000)
  const late = await sendThrough({}, { deps: { requests, clock } })
  assert.equal(shown(late.answer), `503 ${closing}`)
  assert.equal(shown((await sendThrough({ url: '/livez' }, { deps: { requests, clock } })).answer), '200 ok')
  release()
  assert.deepEqual([shown((await slow).answer), await drained], ['200 ok', 0])
})

test('API-02 waitGroup: the wait is bounded', async () => {
  const requests = new RequestGroup()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  requests.add()
  const drained = requests.wait(clock, 1_000)
  await clock.advance(1_000)
  assert.equal(await drained, 1)
})

test('API-02 watchTermination: a shutdown waits for watches, and starts none', async () => {
  const watches = new RequestGroup()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const session = new WatchSession({ afterRevision: 0, bookmarks: true, limit: 3, onClose: () => {} })
  const watch: WatchAnswer = { type: 'watch', session, form: { key: 'json' }, bookmark: () => ({}), timeoutMs: 1 }
  const options = { deps: { watches, clock }, config: { shutdownWatchTerminationGraceMs: 1_000 }, handler: () => watch }
  await sendThrough({ url: '/api/v1/pods?watch=1' }, options)
  const drained = watches.wait(clock, 1_000)
  assert.equal(shown((await sendThrough({ url: '/api/v1/pods?watch=1' }, options)).answer), `503 ${closing}`)
  session.close()
  assert.equal(await drained, 0)
})

test('API-21 who fails to authenticate is in the audit log, with what was tried', async () => {
  const events: string[] = []
  const audit: AuditSink = {
    texts: new AuditTexts(),
    rule: () => ({ level: 'Metadata', omitStages: new Set(), omitManagedFields: false }),
    process: (event) => events.push(event.json()) > 0,
  }
  await sendThrough({ headers: { authorization: 'Bearer secret' } }, { deps: { audit, authenticators: [] } })
  await sendThrough({}, { deps: { audit, authenticators: [] } })
  await sendThrough({ url: '/api/v1/pods?timeout=soon' }, { deps: { audit } })
  assert.deepEqual(
    events.map((text) => JSON.parse(text)).map(({ stage, user, responseStatus: { code, message } }) => [stage, user, code, message]),
    [
      ['ResponseStarted', {}, 401, 'Authentication failed, attempted: bearer'],
      ['ResponseStarted', {}, 401, 'Authentication failed, no credentials provided'],
      ['ResponseStarted', {}, 400, 'invalid timeout specified in the request URL - time: invalid duration "soon"'],
    ],
  )
  assert.ok(!events.join('').includes('secret'))
})

test('API-02 tracing: one span per request, continued for administrators and linked for others', async () => {
  const spans: Span[] = []
  const tracer = createTracer({
    clock: new VirtualClock(),
    random: seededRandom(1),
    storage: new AsyncLocalStorage(),
    samplingRatePerMillion: 1_000_000,
    end: (span) => spans.push(span),
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const admin = { name: 'root', groups: ['system:masters'] }
  const authenticators = [{ name: 'test', authenticate: () => ({ decision: 'authenticated' as const, user: admin }) }]
  await sendThrough({ headers: { traceparent } }, { deps: { tracer, authenticators } })
  await sendThrough({ headers: { traceparent, 'audit-id': 'id' } }, { deps: { tracer, authorizers: [] } })
  const [continued, linked] = spans
  assert.deepEqual([continued?.traceId, continued?.parentSpanId, continued?.link], [traceparent.slice(3, 35), 'b7ad6b7169203331', undefined])
  assert.deepEqual([linked?.traceId === traceparent.slice(3, 35), linked?.parentSpanId, linked?.link?.spanId], [false, undefined, 'b7ad6b7169203331'])
  assert.deepEqual(
    [linked?.name, linked?.attributes],
    [
      'GET /api/v1/namespaces/{:namespace}/pods/{:name}',
      { 'http.method': 'GET', 'http.target': '/api/v1/namespaces/a/pods/p', 'http.status_code': 403, 'audit-id': 'id' },
    ],
  )
})
