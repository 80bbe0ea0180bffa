/** The audit log of the real server, configured by flags: the events that a file and a webhook get. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test, { type TestContext } from 'node:test'
import type { AdmissionAttributes } from '#apiserver/admission/admission'
import { createPrometheusMetrics } from '#main/prometheus'
import type { TestApiServerOptions } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { startWebhookServer } from '../../support/webhookServer.ts'
import { configurationPath, webhook } from '../admission/cluster.ts'
import { plain } from '../crd/support.ts'
import { type RawRequest, rawHttp } from './rawHttp.ts'

const everything = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  nonResourceURLs: ["/healthz*"]
- level: RequestResponse
  omitManagedFields: true
  users: [alice, bob, "system:anonymous", "system:serviceaccount:default:robot"]
- level: Metadata
  omitStages: [RequestReceived, ResponseComplete]
  nonResourceURLs: ["/none"]
`
const alice = { username: 'alice', uid: 'uid-1', groups: ['system:masters', 'system:authenticated'] }
const configMaps = '/api/v1/namespaces/default/configmaps'

type Event = Readonly<Record<string, unknown>> & { readonly stage: string; readonly auditID: string; readonly annotations?: Record<string, string> }

async function start(t: TestContext, flags: readonly string[] = [], more: TestApiServerOptions = {}, policy = everything) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-audit-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = (name: string, content: string) => {
    fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const tokens = file('tokens.csv', 'alice-token,alice,uid-1,"system:masters"\nbob-token,bob,uid-2\n')
  const log = path.join(folder, 'logs', 'audit.log')
  const named = flags.map((flag) => flag.replace('FOLDER', folder))
  const server = [`--token-auth-file=${tokens}`, `--audit-policy-file=${file('policy.yaml', policy)}`, `--audit-log-path=${log}`, ...named]
  const api = await startServerWithFlags(server, more)
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= api.close()
    return closing
  }
  t.after(close)
  const events = (): Event[] => linesOf(log).map((line) => JSON.parse(line) as Event)
  return { api, listener: await api.listen(), log, events, close, folder }
}

function linesOf(file: string): string[] {
  return fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
}

/** One request with its own audit id, and its events in the log. */
async function auditOf({ listener, events }: Awaited<ReturnType<typeof start>>, id: string, request: RawRequest) {
  const answer = await rawHttp(listener, { token: 'alice-token', ...request, headers: { 'user-agent': 'test', 'audit-id': id, ...request.headers } })
  assert.equal(answer.headers['audit-id'], id)
  const own = events().filter(({ auditID }) => auditID === id)
  return { answer, own, stages: own.map(({ stage }) => stage), last: withoutTimes(own.at(-1)) }
}

function withoutTimes(event: Event | undefined) {
  const { requestReceivedTimestamp, stageTimestamp, ...rest } = event ?? assert.fail('no event')
  for (const time of [requestReceivedTimestamp, stageTimestamp]) assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  return rest
}

const json = (body: unknown, type = 'application/json') => ({ body: JSON.stringify(body), headers: { 'content-type': type } })
const common = (auditID: string, verb: string, requestURI: string) => ({
  ...{ kind: 'Event', apiVersion: 'audit.k8s.io/v1', level: 'RequestResponse', auditID, stage: 'ResponseComplete', requestURI, verb, user: alice },
  ...{ sourceIPs: ['127.0.0.1'], userAgent: 'test', annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' } },
})
const ref = (more: object = {}) => ({ resource: 'configmaps', namespace: 'default', name: 'c', apiVersion: 'v1', ...more })
const both = ['RequestReceived', 'ResponseComplete']

test('API-21 the life of an object, event by event', async (t) => {
  const server = await start(t)
  const sent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: '1' } }
  const shown = (object: object) => {
    const copy = structuredClone(object) as { metadata: { managedFields?: unknown } }
    delete copy.metadata.managedFields
    return copy
  }
  const created = await auditOf(server, 'create', { method: 'POST', path: configMaps, ...json(sent) })
  const object = JSON.parse(created.answer.body.toString())
  assert.deepEqual(created.stages, both)
  assert.deepEqual(created.last, {
    ...common('create', 'create', configMaps),
    ...{ objectRef: ref(), responseStatus: { metadata: {}, code: 201 }, requestObject: sent, responseObject: shown(object) },
  })
  const got = await auditOf(server, 'get', { path: `${configMaps}/c` })
  assert.deepEqual(got.last, {
    ...common('get', 'get', `${configMaps}/c`),
    ...{ objectRef: ref(), responseStatus: { metadata: {}, code: 200 }, responseObject: shown(object) },
  })
  const changed = { ...object, data: { a: '2' } }
  const { uid, resourceVersion } = object.metadata
  const updated = await auditOf(server, 'update', { method: 'PUT', path: `${configMaps}/c`, ...json(changed) })
  assert.deepEqual(updated.last, {
    ...common('update', 'update', `${configMaps}/c`),
    ...{ objectRef: ref({ uid, resourceVersion }), responseStatus: { metadata: {}, code: 200 } },
    ...{ requestObject: shown(changed), responseObject: shown(JSON.parse(updated.answer.body.toString())) },
  })
  const patch = { data: { b: '3' } }
  const patched = await auditOf(server, 'patch', { method: 'PATCH', path: `${configMaps}/c`, ...json(patch, 'application/merge-patch+json') })
  assert.deepEqual([patched.last.verb, patched.last.objectRef, patched.last.requestObject], ['patch', ref(), patch])
  const deleted = await auditOf(server, 'delete', {
    method: 'DELETE',
    path: `${configMaps}/c`,
    ...json({ kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 }),
  })
  const status = JSON.parse(deleted.answer.body.toString())
  assert.deepEqual(deleted.last, {
    ...common('delete', 'delete', `${configMaps}/c`),
    ...{ objectRef: ref(), responseStatus: { metadata: {}, status: 'Success', details: status.details, code: 200 } },
    ...{ requestObject: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 }, responseObject: status },
  })
  const missing = await auditOf(server, 'missing', { path: `${configMaps}/c` })
  const failure = JSON.parse(missing.answer.body.toString())
  const { message, reason, details } = failure
  assert.deepEqual(missing.last.responseStatus, { metadata: {}, status: 'Failure', message, reason, details, code: 404 })
  assert.deepEqual(missing.last.responseObject, failure)
})

test('API-21 who is refused, who acts as another, and what is not worth it', async (t) => {
  const server = await start(t)
  const forbidden = await auditOf(server, 'forbidden', { path: configMaps, token: 'bob-token' })
  assert.deepEqual(forbidden.stages, both)
  assert.deepEqual(
    [forbidden.answer.status, forbidden.last.annotations],
    [403, { 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': '' }],
  )
  const unknown = await auditOf(server, 'unknown', { path: '/none', token: 'wrong' })
  assert.equal(unknown.answer.status, 401)
  assert.deepEqual(
    unknown.own.map(({ stage, level, user, responseStatus }) => [stage, level, user, responseStatus]),
    [['ResponseStarted', 'Metadata', {}, { metadata: {}, message: 'Authentication failed, attempted: bearer', code: 401 }]],
  )
  const acting = await auditOf(server, 'acting', { path: configMaps, headers: { 'impersonate-user': 'bob', 'x-forwarded-for': '198.51.100.7' } })
  assert.deepEqual(
    [acting.last.user, acting.last.impersonatedUser, acting.last.sourceIPs],
    [alice, { username: 'bob', groups: ['system:authenticated'] }, ['198.51.100.7', '127.0.0.1']],
  )
  assert.deepEqual((await auditOf(server, 'probe', { path: '/healthz', token: '' }).catch(() => undefined))?.own ?? [], [])
})

test('API-21 a watch has an event when it starts and one when it ends', async (t) => {
  const server = await start(t)
  const watched = await auditOf(server, 'watch', { path: `${configMaps}?watch=1&timeoutSeconds=1` })
  assert.deepEqual(watched.stages, ['RequestReceived', 'ResponseStarted', 'ResponseComplete'])
  assert.deepEqual([watched.last.verb, watched.last.responseStatus], ['watch', { metadata: {}, code: 200 }])
})

test("API-21 a write that a webhook delayed has the total and the webhook's latency in its event", async (t) => {
  const hooks = await startWebhookServer()
  t.after(() => hooks.close())
  hooks.on('/slow', () => 'hang')
  const server = await start(t)
  const { request } = plain(server.api.clientAs({ name: 'root', groups: ['system:masters'] }))
  const slow = webhook(hooks, '/slow', { timeoutSeconds: 1, failurePolicy: 'Ignore' })
  await request('POST', configurationPath('mutating'), { metadata: { name: 'slow' }, webhooks: [slow] })
  const { last } = await auditOf(server, 'held-up', { method: 'POST', path: configMaps, ...json({ metadata: { name: 'late' } }) })
  const latencies = Object.entries(last.annotations ?? {}).filter(([key]) => key.startsWith('apiserver.latency.k8s.io/'))
  const layers = ['authentication', 'authorization', 'etcd', 'mutating-webhook', 'total']
  assert.deepEqual(
    latencies.map(([key]) => key.split('/')[1]),
    layers,
  )
  for (const [key, time] of latencies) assert.match(String(time), /webhook|total/.test(key) ? /^[1-9][\d.]*s$/ : /^[\d.]+(µs|ms|s)$/, `${key} ${time}`)
})

test('API-21 what breaks is a panic; what admission notes is annotated; the body is as it was sent', async (t) => {
  const plugin = {
    name: 'Test',
    handles: () => true,
    admit(attributes: AdmissionAttributes) {
      if (attributes.user.name !== 'alice') return
      if (attributes.name === 'broken') throw new Error('it broke')
      attributes.annotate?.('test.example.com/seen', 'yes')
      attributes.annotate?.('test.example.com/body', 'only with bodies', 'Request')
      const { object } = attributes
      if (object) object.metadata.labels = { added: 'later' }
    },
  }
  const metrics = createPrometheusMetrics()
  const server = await start(t, [], { metrics, deps: () => ({ admission: [plugin] }) })
  const broken = await auditOf(server, 'broken', { method: 'POST', path: configMaps, ...json({ metadata: { name: 'broken' } }) })
  assert.deepEqual(broken.stages, ['RequestReceived', 'Panic'])
  assert.deepEqual(broken.last.responseStatus, { metadata: {}, status: 'Failure', message: "APIServer panic'd: it broke", reason: 'InternalError', code: 500 })
  const noted = await auditOf(server, 'noted', { method: 'POST', path: configMaps, ...json({ metadata: { name: 'noted' } }) })
  assert.deepEqual(noted.last.requestObject, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'noted' } })
  assert.deepEqual((noted.last.responseObject as { metadata: { labels?: object } }).metadata.labels, { added: 'later' })
  assert.deepEqual(noted.last.annotations, {
    'authorization.k8s.io/decision': 'allow',
    'authorization.k8s.io/reason': '',
    'test.example.com/body': 'only with bodies',
    'test.example.com/seen': 'yes',
  })
  const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const reviewed = await auditOf(server, 'review', {
    method: 'POST',
    path: review,
    ...json({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
  })
  assert.equal(reviewed.last.annotations?.['test.example.com/seen'], 'yes')
  await auditOf(server, 'account', { method: 'POST', path: '/api/v1/namespaces/default/serviceaccounts', ...json({ metadata: { name: 'robot' } }) })
  const token = await auditOf(server, 'token', { method: 'POST', path: '/api/v1/namespaces/default/serviceaccounts/robot/token', ...json({}) })
  assert.equal(token.answer.status, 201)
  const [, claims = ''] = JSON.parse(token.answer.body.toString()).status.token.split('.')
  const issued = `JTI=${JSON.parse(Buffer.from(claims, 'base64url').toString()).jti}`
  assert.equal(token.last.annotations?.['authentication.kubernetes.io/issued-credential-id'], issued)
  assert.equal(token.last.annotations?.['test.example.com/seen'], 'yes')
  assert.match(metrics.render(), /apiserver_audit_event_total 10\n/)
  assert.match(metrics.render(), /apiserver_audit_level_total\{level="RequestResponse"\} 5\n/)
  assert.match(
    metrics.render(),
    /apiserver_admission_controller_admission_duration_seconds_count\{name="Test",type="admit",operation="CREATE",rejected="true"\} 1\n/,
  )
})

test("API-21 the flags of the handbook's highly available server: lines of JSON, for its owner alone, moved aside when large", async (t) => {
  const handbook = ['--audit-log-maxage=30', '--audit-log-maxbackup=10', '--audit-log-maxsize=100']
  const requests = ['--max-requests-inflight=1000', '--max-mutating-requests-inflight=500']
  const server = await start(t, [...handbook, ...requests])
  await auditOf(server, 'one', { path: configMaps })
  assert.equal(fs.statSync(server.log).mode & 0o777, 0o600)
  assert.ok(server.events().length >= 2)
})

test('API-21 a log that grows past its size is moved aside, and no line is lost', async (t) => {
  const server = await start(t, ['--audit-log-maxsize=1'])
  const body = json({ metadata: { name: 'big' }, data: { text: 'x'.repeat(300_000) } })
  for (let i = 0; i < 3; i++)
    await rawHttp(server.listener, { method: 'POST', path: configMaps, token: 'alice-token', ...body, headers: { ...body.headers, 'audit-id': `big-${i}` } })
  const folder = path.dirname(server.log)
  const files = fs.readdirSync(folder).map((name) => path.join(folder, name))
  assert.ok(files.length > 1, files.join(' '))
  const ids = files
    .flatMap((name) => linesOf(name).map((line) => JSON.parse(line) as Event))
    .filter(({ auditID, stage }) => auditID.startsWith('big-') && stage === 'ResponseComplete')
  assert.deepEqual(ids.map(({ auditID }) => auditID).sort(), ['big-0', 'big-1', 'big-2'])
  for (const name of files) assert.ok(fs.statSync(name).size <= 1024 * 1024)
})

test('API-21 in batch mode no request waits, and nothing is lost at the end', async (t) => {
  const server = await start(t, ['--audit-log-mode=batch', '--audit-log-batch-max-size=1000', '--audit-log-batch-max-wait=1h'])
  for (let i = 0; i < 5; i++) await rawHttp(server.listener, { path: configMaps, token: 'alice-token', headers: { 'audit-id': `id-${i}` } })
  assert.deepEqual(server.events(), [])
  await server.close()
  assert.deepEqual(
    server
      .events()
      .filter(({ stage }) => stage === 'ResponseComplete')
      .map(({ auditID }) => auditID),
    ['id-0', 'id-1', 'id-2', 'id-3', 'id-4'],
  )
})

/** Prints its port, then each list of events that it is sent. The first answer is a failure. */
const receiver = `
const { createServer } = require('node:https')
let calls = 0
const server = createServer({ cert: process.env.CERT, key: process.env.KEY }, (request, response) => {
  let body = ''
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    if (++calls > 1) console.log(JSON.stringify({ authorization: request.headers.authorization, ...JSON.parse(body) }))
    response.writeHead(calls > 1 ? 200 : 503).end()
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

test('API-21 a webhook in its own process is sent lists of events, again when it fails', async (t) => {
  const { cert, key } = await testCertificates()
  const child = spawn(process.execPath, ['-e', receiver], { env: { CERT: cert, KEY: key }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const port = (await lines.next()).value
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-audit-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  fs.writeFileSync(path.join(folder, 'ca.crt'), cert)
  const kubeconfig = path.join(folder, 'webhook.yaml')
  fs.writeFileSync(
    kubeconfig,
    `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
      clusters: [{name: k, cluster: {server: "https://127.0.0.1:${port}/events", certificate-authority: ca.crt}}], users: [{name: u, user: {token: secret}}]}`,
  )
  const batch = ['--audit-webhook-batch-max-size=2', '--audit-webhook-initial-backoff=10ms']
  const server = await start(t, [`--audit-webhook-config-file=${kubeconfig}`, ...batch])
  await auditOf(server, 'sent', { path: `${configMaps}?limit=1` })
  const { kind, apiVersion, authorization, items } = JSON.parse((await lines.next()).value)
  assert.deepEqual([kind, apiVersion, authorization], ['EventList', 'audit.k8s.io/v1', 'Bearer secret'])
  assert.deepEqual(
    items,
    server.events().filter(({ auditID }) => auditID === 'sent'),
  )
})

test('API-21 flags that cannot be are refused, all at once', async () => {
  const flags = ['--audit-log-path=-', '--audit-log-mode=later', '--audit-log-format=xml', '--audit-log-maxage=-1', '--audit-log-truncate-max-event-size=0']
  await assert.rejects(startServerWithFlags(flags), (error) => {
    assert.deepEqual((error as Error).message.split('\n'), [
      'invalid audit log mode later, allowed modes are "batch,blocking,blocking-strict"',
      'invalid audit truncate log max event size 0, must be a positive number',
      'invalid audit log format xml, allowed formats are "legacy,json"',
      "--audit-log-maxage -1 can't be a negative number",
    ])
    return true
  })
})
