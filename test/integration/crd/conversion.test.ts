/** Several versions of a custom resource: by name alone, and through a webhook over TLS. */
import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { CustomResourceConversion, JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { KubeObject } from '#api/machinery/meta'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { refused } from '../../support/refused.ts'
import { type Any, crdPath, definition, establish, group, object, plain, until, version } from './support.ts'

const schemaOf = (properties: Record<string, JSONSchemaProps>): JSONSchemaProps => ({
  type: 'object',
  properties: { spec: { type: 'object', properties } },
})
const text: JSONSchemaProps = { type: 'string' }
const v1 = schemaOf({ host: text, port: text, tier: { type: 'string', default: 'low' } })
const v2 = schemaOf({ address: text, tier: { type: 'string', default: 'high' } })

const hosts = (conversion: CustomResourceConversion, storage: 'v1' | 'v2' = 'v1') =>
  definition('hosts', 'Host', [version('v1', v1, { storage: storage === 'v1' }), version('v2', v2, { storage: storage === 'v2' })], { conversion })
const path = (of: string, name = '') => `/apis/${group}/${of}/namespaces/default/hosts${name && `/${name}`}`

interface Review {
  request: { uid: string; desiredAPIVersion: string; objects: Any[] }
}
type Convert = (object: Any, apiVersion: string) => Any

/** host and port of v1 are the address of v2. */
const convertHost: Convert = (host, apiVersion) => {
  const { spec = {}, ...rest } = host
  if (apiVersion.endsWith('v2')) return { ...rest, apiVersion, spec: { address: `${spec.host}:${spec.port}`, tier: spec.tier } }
  const [name, port] = spec.address.split(':')
  return { ...rest, apiVersion, spec: { host: name, port, tier: spec.tier } }
}

interface Webhook {
  readonly conversion: CustomResourceConversion
  /** How many objects each call carried. */
  readonly calls: number[]
  convert: Convert
  answer?: ((review: Review) => Any) | undefined
  close(): Promise<void>
}

async function startWebhook(): Promise<Webhook> {
  const { cert, key } = await testCertificates('CN=hook', ['hook.default.svc'])
  const server = createServer({ cert, key }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString()) as Review
      hook.calls.push(review.request.objects.length)
      const convertedObjects = review.request.objects.map((one) => hook.convert(one, review.request.desiredAPIVersion))
      const whole = hook.answer?.(review) ?? { uid: review.request.uid, result: { status: 'Success' }, convertedObjects }
      response.end(JSON.stringify({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response: whole }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const hook: Webhook = {
    conversion: {
      strategy: 'Webhook',
      webhook: {
        conversionReviewVersions: ['v1', 'v1beta1'],
        clientConfig: { url: `https://127.0.0.1:${port}/convert`, caBundle: Buffer.from(cert).toString('base64') },
      },
    },
    calls: [],
    convert: convertHost,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return hook
}

async function withWebhook(run: (api: TestApiServer, hook: Webhook) => Promise<void>): Promise<void> {
  const api = await startTestApiServer()
  const hook = await startWebhook()
  try {
    await run(api, hook)
  } finally {
    await api.close()
    await hook.close()
  }
}

const host = (name: string, spec: object, of = 'v1'): KubeObject => object('Host', name, spec, {}, `${group}/${of}`)

test('CRD-04 without conversion versions differ in their name, their fields and their defaults', async () => {
  const api = await startTestApiServer()
  const client = plain(api.client)
  await establish(api.client, hosts({ strategy: 'None' }))
  const made = await client.request('POST', path('v1'), host('a', { host: 'h', port: '1' }))
  assert.deepEqual(made.spec, { host: 'h', port: '1', tier: 'low' })
  const other = await client.request('GET', path('v2', 'a'))
  assert.deepEqual([other.apiVersion, other.spec], ['example.com/v2', { tier: 'low' }])
  const list = await client.request('GET', path('v2'))
  assert.deepEqual([list.apiVersion, list.items[0].apiVersion], ['example.com/v2', 'example.com/v2'])
  await client.request('POST', path('v2'), host('b', { address: 'x:2' }, 'v2'))
  assert.deepEqual((await client.request('GET', path('v1', 'b'))).spec, { tier: 'high' })
  await api.close()
})

test('CRD-04 with a new storage version older objects are readable, and an update without changes rewrites them', async () => {
  const api = await startTestApiServer()
  const client = plain(api.client)
  const crd = await establish(api.client, hosts({ strategy: 'None' }))
  const made = await client.request('POST', path('v1'), host('a', { host: 'h' }))
  const changed = structuredClone(crd) as Any
  changed.spec.versions[0].storage = false
  changed.spec.versions[1].storage = true
  const after = await client.request('PUT', `${crdPath}/hosts.${group}`, changed)
  assert.deepEqual(after.status.storedVersions, ['v1', 'v2'])
  const read = await until('the new version', async () => {
    const found = await client.request('GET', path('v1', 'a'))
    const raw = await api.store.range(`/registry/${group}/hosts/`, `/registry/${group}/hosts0`)
    return JSON.parse(Buffer.from(raw.kvs[0]?.value ?? []).toString()).apiVersion === 'example.com/v1' && found
  })
  assert.equal(read.metadata.resourceVersion, made.metadata.resourceVersion)
  const rewritten = await until('the rewriting', async () => {
    const put = await client.request('PUT', path('v2', 'a'), await client.request('GET', path('v2', 'a')))
    return put.metadata.resourceVersion !== made.metadata.resourceVersion && put
  })
  const { kvs } = await api.store.range(`/registry/${group}/hosts/`, `/registry/${group}/hosts0`)
  assert.equal(JSON.parse(Buffer.from(kvs[0]?.value ?? []).toString()).apiVersion, 'example.com/v2')
  const again = await client.request('PUT', path('v2', 'a'), rewritten)
  assert.equal(again.metadata.resourceVersion, rewritten.metadata.resourceVersion)
  const gone = structuredClone(await client.request('GET', `${crdPath}/hosts.${group}`)) as Any
  gone.spec.versions.shift()
  const error = await refused(client.request('PUT', `${crdPath}/hosts.${group}`, gone))
  assert.match(error.message, /status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions; v1 was previously a storage version/)
  await api.close()
})

test('CRD-04 a webhook converts reads, writes, lists in one call, and watches', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    await establish(api.client, hosts(hook.conversion))
    const made = await client.request('POST', path('v2'), host('a', { address: 'h:1' }, 'v2'))
    assert.deepEqual([made.apiVersion, made.spec], ['example.com/v2', { address: 'h:1', tier: 'high' }])
    assert.deepEqual((await client.request('GET', path('v1', 'a'))).spec, { host: 'h', port: '1', tier: 'high' })
    for (const name of ['b', 'c', 'd']) await client.request('POST', path('v1'), host(name, { host: name, port: '2' }))
    hook.calls.length = 0
    const list = await client.request('GET', path('v2'))
    assert.deepEqual(
      list.items.map((item: Any) => item.spec.address),
      ['h:1', 'b:2', 'c:2', 'd:2'],
    )
    assert.deepEqual(hook.calls, [3], 'what was converted already is not converted again')
    const stop = new AbortController()
    const seen: string[] = []
    for await (const batch of api.client.transport.watch({ method: 'GET', path: path('v2') }, stop.signal)) {
      for (const { type, object: one } of batch) seen.push(`${type} ${(one as Any).spec.address}`)
      if (seen.length === 4) await client.request('PATCH', path('v1', 'b'), { spec: { port: '9' } }, { contentType: 'application/merge-patch+json' })
      if (seen.length > 4) break
    }
    stop.abort()
    assert.deepEqual(seen, ['ADDED h:1', 'ADDED b:2', 'ADDED c:2', 'ADDED d:2', 'MODIFIED b:9'])
  }))

const faults: readonly (readonly [string, Partial<Pick<Webhook, 'convert' | 'answer'>>, RegExp])[] = [
  ['says no', { answer: ({ request }) => ({ uid: request.uid, result: { status: 'Failed', message: 'not today' } }) }, /failed: not today$/],
  [
    'gives no reason',
    { answer: ({ request }) => ({ uid: request.uid, result: { status: 'Failed' } }) },
    /failed: response\.result\.status was 'Failed', not 'Success'$/,
  ],
  ['answers with another uid', { answer: () => ({ uid: 'x', result: { status: 'Success' } }) }, /failed: expected response\.uid="[-0-9a-f]+", got "x"$/],
  [
    'loses objects',
    { answer: ({ request }) => ({ uid: request.uid, result: { status: 'Success' }, convertedObjects: [] }) },
    /returned 0 objects, expected 1$/,
  ],
  ['changes the name', { convert: (one, v) => ({ ...convertHost(one, v), metadata: { ...one.metadata, name: 'z' } }) }, /must have the same name: a != z$/],
  ['converts to something else', { convert: (one) => one }, /invalid groupVersion \(expected example\.com\/v2, received example\.com\/v1\)$/],
  [
    'makes odd labels',
    { convert: (one, v) => ({ ...convertHost(one, v), metadata: { ...one.metadata, labels: { x: 1 } } }) },
    /metadata\.labels\[x\] must be a string, but is number/,
  ],
]
for (const [what, change, wanted] of faults) {
  test(`CRD-04 a webhook that ${what} fails the request`, () =>
    withWebhook(async (api, hook) => {
      const client = plain(api.client)
      await establish(api.client, hosts(hook.conversion))
      await client.request('POST', path('v1'), host('a', { host: 'h', port: '1' }))
      Object.assign(hook, change)
      const error = await refused(client.request('GET', path('v2', 'a')))
      assert.equal(error.code, 500)
      assert.match(error.message, /^conversion webhook for example\.com\/v1, Kind=Host /)
      assert.match(error.message, wanted)
    }))
}

test('CRD-04 metadata is not the webhook to change, but for labels and annotations', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    await establish(api.client, hosts(hook.conversion))
    await client.request('POST', path('v1'), host('a', { host: 'h', port: '1' }))
    hook.convert = (one, v) => ({ ...convertHost(one, v), metadata: { ...one.metadata, labels: { by: 'hook' }, generation: 77, creationTimestamp: null } })
    const read = await client.request('GET', path('v2', 'a'))
    assert.deepEqual([read.metadata.labels, read.metadata.generation, typeof read.metadata.creationTimestamp], [{ by: 'hook' }, 1, 'string'])
  }))

test('CRD-04 a webhook that is not there, or not to be trusted', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    const missing = {
      strategy: 'Webhook',
      webhook: { conversionReviewVersions: ['v1'], clientConfig: { service: { namespace: 'default', name: 'hook', path: '/c' } } },
    }
    await establish(api.client, hosts(missing))
    await client.request('POST', path('v1'), host('a', { host: 'h', port: '1' }))
    const absent = await refused(client.request('GET', path('v2', 'a')))
    assert.equal(
      absent.message,
      'conversion webhook for example.com/v1, Kind=Host failed: Post "https://hook.default.svc:443/c?timeout=30s": service "hook" not found',
    )
    const crd = await client.request('GET', `${crdPath}/hosts.${group}`)
    const untrusted = structuredClone(hook.conversion) as Any
    delete untrusted.webhook.clientConfig.caBundle
    await client.request('PUT', `${crdPath}/hosts.${group}`, { ...crd, spec: { ...crd.spec, conversion: untrusted } })
    const error = await until('the change', async () => {
      const found = await refused(client.request('GET', path('v2', 'a')))
      return found.message !== absent.message && found
    })
    assert.match(error.message, /failed: Post "https:\/\/127\.0\.0\.1:\d+\/convert\?timeout=30s": tls: failed to verify certificate: x509: /)
  }))

test('CRD-04 a webhook is found through its service, by the name that its certificate must have', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    const { clientConfig } = hook.conversion.webhook as Any
    const port = Number(new URL(clientConfig.url).port)
    await client.request('POST', '/api/v1/namespaces/default/services', {
      metadata: { name: 'hook' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    })
    const service = { namespace: 'default', name: 'hook', path: '/convert', port }
    await establish(
      api.client,
      hosts({ strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: { service, caBundle: clientConfig.caBundle } } }),
    )
    await client.request('POST', path('v1'), host('a', { host: 'h', port: '1' }))
    assert.equal((await client.request('GET', path('v2', 'a'))).spec.address, 'h:1')
  }))

test('CRD-01 a server that starts over the same store serves custom resources before it is ready', async () => {
  const kept = createMemoryStore({ clock: realClock })
  const store = lastingStore(kept)
  const first = await startTestApiServer({ store })
  await establish(first.client, hosts({ strategy: 'None' }))
  const made = await plain(first.client).request('POST', path('v1'), host('a', { host: 'h' }))
  await first.close()
  const second = await startTestApiServer({ store })
  assert.deepEqual(await plain(second.client).request('GET', path('v1', 'a')), made)
  await second.close()
  await kept.close()
})

test('EXP-11 a deprecated version warns, and names the one to use instead', async () => {
  const api = await startTestApiServer()
  const body = definition('olds', 'Old', [version('v1beta1', v1, { storage: false, deprecated: true }), version('v1', v1)])
  await establish(api.client, body)
  const { warnings } = await api.client.transport.request({ method: 'GET', path: `/apis/${group}/v1beta1/namespaces/default/olds` })
  assert.deepEqual(warnings, ['example.com/v1beta1 Old is deprecated; use example.com/v1 Old'])
  await api.close()
})

test('API-11 CRD-04 who owns what is looked at in the version of each claim, through the webhook', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    await establish(api.client, hosts(hook.conversion))
    const applying = (of: string, manager: string, spec: object, force = false) =>
      client.request('PATCH', `${path(of, 'a')}?fieldManager=${manager}&force=${force}`, host('a', spec, of), { contentType: 'application/apply-patch+yaml' })
    const claims = (one: Any) =>
      Object.fromEntries(one.metadata.managedFields.map((entry: Any) => [`${entry.manager} ${entry.apiVersion}`, Object.keys(entry.fieldsV1['f:spec'] ?? {})]))
    await applying('v1', 'old', { host: 'h', port: '1', tier: 'low' })
    const same = await applying('v2', 'new', { address: 'h:1' })
    assert.deepEqual(claims(same), { 'old example.com/v1': ['f:host', 'f:port', 'f:tier'], 'new example.com/v2': ['f:address'] })

    await assert.rejects(applying('v2', 'third', { address: 'h:2' }), (error: Any) => {
      const causes = error.details.causes.map((cause: Any) => `${cause.field}: ${cause.message}`).sort()
      assert.deepEqual([error.code, causes], [409, ['.spec.address: conflict with "new"', '.spec.port: conflict with "old"']])
      return true
    })
    const forced = await applying('v2', 'third', { address: 'h:2' }, true)
    assert.deepEqual(claims(forced), { 'old example.com/v1': ['f:host', 'f:tier'], 'third example.com/v2': ['f:address'] })

    const updated = await client.request('PUT', `${path('v1', 'a')}?fieldManager=editor`, {
      ...forced,
      apiVersion: 'example.com/v1',
      spec: { host: 'g', port: '2', tier: 'low' },
    })
    assert.deepEqual(claims(updated), { 'old example.com/v1': ['f:tier'], 'editor example.com/v1': ['f:host'] })

    const moved = await applying('v2', 'old', {})
    assert.deepEqual(
      [moved.spec, claims(moved)],
      [
        { address: 'g:2', tier: 'high' },
        { 'editor example.com/v1': ['f:host'], 'old example.com/v2': [] },
      ],
    )
  }))

test('API-11 CRD-04 managed fields of a removed version are dropped, without a call to the webhook', () =>
  withWebhook(async (api, hook) => {
    const client = plain(api.client)
    await establish(api.client, hosts(hook.conversion))
    const applying = (of: string, manager: string, spec: object) =>
      client.request('PATCH', `${path(of, 'a')}?fieldManager=${manager}`, host('a', spec, of), { contentType: 'application/apply-patch+yaml' })
    await applying('v2', 'new', { address: 'h:1' })
    await client.request('PATCH', `${crdPath}/hosts.${group}`, { spec: { versions: [version('v1', v1)] } }, { contentType: 'application/merge-patch+json' })
    await until('the end of v2', () => client.isGone(path('v2', 'a')))
    hook.calls.length = 0
    const applied = await applying('v1', 'old', { tier: 'high' })
    assert.deepEqual(applied.spec, { host: 'h', port: '1', tier: 'high' })
    assert.deepEqual(
      applied.metadata.managedFields.map(({ manager, apiVersion }: Any) => [manager, apiVersion]),
      [['old', 'example.com/v1']],
    )
    assert.deepEqual(hook.calls, [])
  }))
