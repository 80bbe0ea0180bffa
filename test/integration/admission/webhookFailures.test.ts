/** ADM-02, ADM-03: webhooks that do not answer, or not as they should: texts, failure policies, bounds; and the connections to those that do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { testCertificates } from '#testing/testCertificates'
import { refused } from '../../support/refused.ts'
import { type Json, jsonPatch, RawAnswer, type Respond } from '../../support/webhookServer.ts'
import { type AdmissionCluster, configMap, configMaps, configurationPath, configure, webhook, withCluster } from './cluster.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const failing = 'Internal error occurred: failed calling webhook "bad.example.com": '
const review = (response: object, more: object = {}) =>
  new RawAnswer(200, JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', response, ...more }), { 'content-type': 'application/json' })
const answering =
  (make: (request: Json) => RawAnswer): Respond =>
  (request) =>
    make(request)

interface Case {
  readonly name: string
  readonly kind?: 'mutating' | 'validating'
  readonly respond: Respond
  /** What follows `failing`. */
  readonly text: RegExp
}

const cases: Case[] = [
  { name: 'no JSON', respond: () => new RawAnswer(200, 'hello'), text: /^failed to call webhook: couldn't get version\/kind; json parse error: / },
  { name: 'nothing', respond: () => new RawAnswer(200, ''), text: /^failed to call webhook: couldn't get version\/kind; json parse error: / },
  {
    name: 'no response',
    respond: () => new RawAnswer(200, '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'),
    text: /^received invalid webhook response: webhook response was absent$/,
  },
  {
    name: 'another uid',
    respond: () => review({ uid: 'other', allowed: true }),
    text: /^received invalid webhook response: expected response\.uid="[0-9a-f-]{36}", got "other"$/,
  },
  {
    name: 'another version',
    respond: answering(({ uid }) => review({ uid, allowed: true }, { apiVersion: 'admission.k8s.io/v1beta1' })),
    text: /^received invalid webhook response: expected webhook response of admission\.k8s\.io\/v1, Kind=AdmissionReview, got admission\.k8s\.io\/v1beta1, Kind=AdmissionReview$/,
  },
  {
    name: 'no kind',
    respond: answering(({ uid }) => review({ uid, allowed: true }, { apiVersion: undefined, kind: undefined })),
    text: /^received invalid webhook response: expected webhook response of admission\.k8s\.io\/v1, Kind=AdmissionReview, got \/, Kind=$/,
  },
  {
    name: 'a patch of a validating webhook',
    respond: () => jsonPatch([]),
    text: /^received invalid webhook response: validating webhook may not return response\.patch$/,
  },
  {
    name: 'a patch without its type',
    kind: 'mutating',
    respond: () => ({ allowed: true, patch: 'W10=' }),
    text: /^received invalid webhook response: webhook returned response\.patch but not response\.patchType$/,
  },
  {
    name: 'a type without a patch',
    kind: 'mutating',
    respond: () => ({ allowed: true, patchType: 'JSONPatch' }),
    text: /^received invalid webhook response: webhook returned response\.patchType but not response\.patch$/,
  },
  {
    name: 'an unknown type of patch',
    kind: 'mutating',
    respond: () => ({ ...jsonPatch([{ op: 'remove', path: '/data' }]), patchType: 'Merge' }),
    text: /^unsupported patch type "Merge"$/,
  },
  {
    name: 'a patch that is none',
    kind: 'mutating',
    respond: () => ({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from('{').toString('base64') }),
    text: /^received undecodable patch in webhook response: /,
  },
  {
    name: 'an error',
    respond: () => new RawAnswer(500, 'broken', { 'content-type': 'text/plain' }),
    text: /^failed to call webhook: an error on the server \("broken"\) has prevented the request from succeeding$/,
  },
  { name: 'not found', respond: () => new RawAnswer(404, ''), text: /^failed to call webhook: the server could not find the requested resource$/ },
  {
    name: 'a redirect is not followed',
    respond: () => new RawAnswer(302, '', { location: 'https://127.0.0.1:1/' }),
    text: /^failed to call webhook: the server responded with the status code 302 but did not return more information$/,
  },
  {
    name: 'a huge answer',
    respond: () => new RawAnswer(200, ' '.repeat(20 * 1024 * 1024)),
    text: /^failed to call webhook: Post ".*": the answer is too large$/,
  },
]

async function tryCase({ hooks, request }: AdmissionCluster, { kind = 'validating', respond, text }: Case): Promise<void> {
  hooks.on('/bad', respond)
  for (const failurePolicy of ['Fail', 'Ignore']) {
    await configure({ hooks, request } as AdmissionCluster, kind, 'bad', [webhook(hooks, '/bad', { failurePolicy })])
    const made = request('POST', `${configMaps()}?dryRun=All`, configMap('one'))
    if (failurePolicy === 'Ignore') await made
    else {
      const { message, code } = await refused(made)
      assert.ok(message.startsWith(failing) && text.test(message.slice(failing.length)), message)
      assert.equal(code, 500)
    }
    await request('DELETE', configurationPath(kind, 'bad'))
  }
}

test('ADM-02: an invalid answer refuses or admits the request, by the failurePolicy', () =>
  withCluster(async (cluster) => {
    const wrong: string[] = []
    for (const one of cases) {
      await tryCase(cluster, one).catch((error: Error) => {
        wrong.push(`${one.name}: ${error.message}`)
        return cluster.request('DELETE', configurationPath(one.kind ?? 'validating', 'bad')).catch(() => undefined)
      })
    }
    assert.deepEqual(wrong, [])
  }))

test('ADM-02: a patch that does not apply is never ignored', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/bad', () => jsonPatch([{ op: 'remove', path: '/data/none' }]))
    await configure(cluster, 'mutating', 'bad', [webhook(hooks, '/bad', { failurePolicy: 'Ignore' })])
    const { code, message } = await refused(request('POST', configMaps(), configMap('one')))
    assert.deepEqual([code, message], [500, 'Internal error occurred: Unable to remove nonexistent key: none: missing value'])
  }))

test('ADM-02: a webhook that hangs is awaited for its timeoutSeconds, no longer', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/bad', () => 'hang')
    await configure(cluster, 'validating', 'closed', [webhook(hooks, '/bad', { timeoutSeconds: 1 })])
    const refusal = await refused(request('POST', configMaps(), configMap('one')))
    assert.equal(refusal.message, `${failing}failed to call webhook: Post "${hooks.client('/bad').url}?timeout=1s": context deadline exceeded`)
    await request('DELETE', configurationPath('validating', 'closed'))
    await configure(cluster, 'mutating', 'open', [webhook(hooks, '/bad', { timeoutSeconds: 1, failurePolicy: 'Ignore' })])
    await request('POST', configMaps(), configMap('one'))
  }))

test('ADM-02: a webhook that hangs fails at its timeoutSeconds, under garbage-collection pressure', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/bad', () => 'hang')
    await configure(cluster, 'validating', 'closed', [webhook(hooks, '/bad', { timeoutSeconds: 1 })])
    const collecting = setInterval(collectGarbage, 100)
    try {
      const startedMs = performance.now()
      const refusals = await Promise.all(['one', 'two', 'three'].map((name) => refused(request('POST', configMaps(), configMap(name)))))
      const text = `${failing}failed to call webhook: Post "${hooks.client('/bad').url}?timeout=1s": context deadline exceeded`
      for (const { message } of refusals) assert.equal(message, text)
      assert.ok(performance.now() - startedMs < 20_000, 'the requests waited for their own time-out')
    } finally {
      clearInterval(collecting)
    }
  }))

test('ADM-02: a call fails on a closed port, an untrusted certificate and a missing service', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    const { caBundle } = hooks.client('/bad')
    const unknownCa = Buffer.from((await testCertificates('CN=other')).cert).toString('base64')
    const clients: [object, RegExp][] = [
      [{ url: 'https://127.0.0.1:1/', caBundle }, /Post "https:\/\/127\.0\.0\.1:1\/\?timeout=10s": dial tcp 127\.0\.0\.1:1: connect: connection refused$/],
      [{ ...hooks.client('/bad'), caBundle: unknownCa }, /tls: failed to verify certificate: x509: certificate signed by unknown authority$/],
      [{ service: { namespace: 'default', name: 'none' }, caBundle }, /Post "https:\/\/none\.default\.svc:443\/\?timeout=10s": service "none" not found$/],
    ]
    for (const [clientConfig, text] of clients) {
      await configure(cluster, 'validating', 'bad', [webhook(hooks, '/bad', { clientConfig: clientConfig as never })])
      assert.match((await refused(request('POST', configMaps(), configMap('one')))).message, text)
      await request('DELETE', configurationPath('validating', 'bad'))
    }
  }))

test('ADM-02: a webhook behind a service is found through its endpoints', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', () => ({ allowed: false }))
    // The API allows no loopback address in slices, so an external name stands for the endpoints.
    await request('POST', '/api/v1/namespaces/default/services', { metadata: { name: 'hook' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
    const { caBundle } = hooks.client('/deny')
    const service = { namespace: 'default', name: 'hook', port: hooks.port, path: '/deny' }
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { clientConfig: { service, caBundle } })])
    assert.match((await refused(request('POST', configMaps(), configMap('one')))).message, /denied the request without explanation$/)
  }))

test('ADM-02: connections are used again, also when the other side closed one', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/look', () => ({ allowed: true }))
    await configure(cluster, 'validating', 'look', [webhook(hooks, '/look')])
    for (let i = 0; i < 5; i++) await request('POST', configMaps(), configMap(`c${i}`))
    assert.equal(hooks.connections(), 1)
    hooks.dropConnections()
    await request('POST', configMaps(), configMap('after'))
    assert.equal(hooks.connections(), 2)
  }))

test('ADM-02: v1beta1 is spoken with webhooks that know no better, and their answers are not looked at as closely', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/data/old', value: 'yes' }])).toString('base64')
    hooks.on('/old', () => new RawAnswer(200, JSON.stringify({ response: { allowed: true, patch } })))
    await configure(cluster, 'mutating', 'old', [webhook(hooks, '/old', { admissionReviewVersions: ['v2', 'v1beta1', 'v1'] })])
    assert.equal((await request('POST', configMaps(), configMap('one'))).data.old, 'yes')
    assert.equal(hooks.asked[0]?.review.apiVersion, 'admission.k8s.io/v1beta1')
  }))

test('ADM-02: managed fields that a webhook made unreadable are restored', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/mutate', () => jsonPatch([{ op: 'replace', path: '/metadata/managedFields', value: [{ manager: 'x' }] }]))
    await configure(cluster, 'mutating', 'm', [webhook(hooks, '/mutate')])
    const made = await request('POST', `${configMaps()}?fieldManager=me`, configMap('one'))
    assert.deepEqual(
      made.metadata.managedFields.map(({ manager, operation }: Json) => [manager, operation]),
      [['me', 'Update']],
    )
  }))
