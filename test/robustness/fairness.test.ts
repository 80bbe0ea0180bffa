/**
 * Large requests do not starve small ones: while 100,000 objects are listed, 300 definitions are created in a row, or a namespace of 10,000 objects
 * is emptied, another client reads over HTTP, one request after the other. The tests count its answers and the progress of the large request
 * between two of them, never time.
 */
import assert from 'node:assert/strict'
import { request } from 'node:https'
import { test } from 'node:test'
import { configMaps, namespaces } from '#client/builtIn'
import type { Store } from '#store/store'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawHttp } from '../integration/api/rawHttp.ts'
import { startTestCluster } from '../integration/controllers/cluster.ts'
import { crdPath, definition, establish, group, until, version } from '../integration/crd/support.ts'

/** Objects put where the server keeps them: making them through the API is not what is tried here. */
async function seed(store: Store, namespace: string, count: number): Promise<void> {
  const batch = 1_000
  for (let from = 0; from < count; from += batch) {
    const success = Array.from({ length: Math.min(batch, count - from) }, (_, i) => {
      const name = `m-${String(from + i).padStart(6, '0')}`
      const metadata = { name, namespace, uid: `00000000-0000-4000-8000-${String(from + i).padStart(12, '0')}`, creationTimestamp: '2026-01-01T00:00:00Z' }
      const value = Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { a: 'b' } }))
      return { type: 'put' as const, key: `/registry/configmaps/${namespace}/${name}`, value }
    })
    await store.transact({ compare: [], success })
  }
}

const waitForAll = (api: TestApiServer, namespace: string, count: number) =>
  until('all are there', async () => (await api.client.of(configMaps).list({ namespace })).items.length === count, 60_000)

/** A client that reads until it is stopped; `seen` is called with each answer. */
function reader(listener: TestListener, seen: () => void) {
  let stopped = false
  const over = (async () => {
    while (!stopped) {
      const { status } = await rawHttp(listener, { path: '/api/v1/namespaces/default' })
      assert.equal(status, 200)
      seen()
    }
  })()
  return {
    async stop() {
      stopped = true
      await over
    },
  }
}

/** The largest step between two numbers of a row. */
const widest = (row: readonly number[]) => row.reduce((most, at, index) => Math.max(most, at - (row[index - 1] ?? 0)), 0)

test('API-02 lists of 100,000 objects, in every form, leave others served', { timeout: 300_000 }, async (t) => {
  const api = await startTestApiServer()
  t.after(() => api.close())
  const listener = await api.listen()
  const count = 100_000
  await seed(api.store, 'default', count)
  await waitForAll(api, 'default', count)
  const forms = [
    // Forms that are not cached are encoded before the answer begins; the others are sent from the cache.
    { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1', anew: true },
    { accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1', anew: true },
    { accept: 'application/yaml', anew: true },
    { accept: 'application/json', anew: false },
    { accept: 'application/vnd.kubernetes.protobuf', anew: false },
  ]
  for (const { accept, anew } of forms) {
    let answers = 0
    const other = reader(listener, () => answers++)
    const before = answers
    const { begun, bytes } = await list(listener, accept, () => answers)
    const whole = answers - before
    await other.stop()
    t.diagnostic(`${accept}: ${begun - before} answers before it began, ${whole} before its end`)
    assert.ok(bytes > count * 50, `${bytes} bytes`)
    if (anew) assert.ok(begun - before >= 10, `${accept}: ${begun - before} answers while it was made`)
    assert.ok(whole >= 10, `${accept}: ${whole} answers while it went out`)
  }
})

/** Reads a list without keeping it; `begun` is what `count` was at its first byte. */
function list({ port, ca, token }: TestListener, accept: string, count: () => number): Promise<{ begun: number; bytes: number }> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path: '/api/v1/configmaps', ca, agent: false, headers: { authorization: `Bearer ${token}`, accept } },
      (response) => {
        const begun = count()
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
        })
        response.on('end', () => resolve({ begun, bytes }))
        response.on('error', reject)
      },
    )
    call.on('error', reject)
    call.end()
  })
}

test('CRD-01 300 definitions made in a row leave others served', { timeout: 300_000 }, async (t) => {
  const api = await startTestApiServer()
  t.after(() => api.close())
  const listener = await api.listen()
  let made = 0
  const row: number[] = []
  const other = reader(listener, () => row.push(made))
  const schema = { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } } }
  const headers = { 'content-type': 'application/json' }
  for (const count = 300; made < count; made++) {
    const body = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      ...definition(`things${made}`, `Thing${made}`, [version('v1', schema)]),
    }
    assert.equal((await rawHttp(listener, { method: 'POST', path: crdPath, headers, body: JSON.stringify(body) })).status, 201)
  }
  await establish(api.client, definition('lasts', 'Last', [version('v1', schema)]))
  const before = row.length
  const documents = ['/openapi/v2', `/openapi/v3/apis/${group}/v1`, `/apis/${group}/v1`]
  for (const path of documents) assert.equal((await rawHttp(listener, { path })).status, 200)
  const meanwhile = row.length - before
  await other.stop()
  t.diagnostic(`${before} answers, at most ${widest(row)} definitions between two; ${meanwhile} while the documents were made`)
  // Both clients have their own connection, so they should take turns; work on definitions after their answers is not counted.
  assert.ok(widest(row) <= 10, `${widest(row)} definitions between two answers`)
  assert.ok(meanwhile >= 10, `${meanwhile} answers while the documents were made`)
})

test('CTL-10 the end of a namespace of 10,000 objects leaves others served', { timeout: 300_000 }, async (t) => {
  const cluster = await startTestCluster({ controllers: ['namespace-controller'], podsRun: false })
  t.after(() => cluster.close())
  const { api, client } = cluster
  const listener = await api.listen()
  const count = 10_000
  await client.of(namespaces).create({ metadata: { name: 'large' }, spec: {} })
  await seed(api.store, 'large', count)
  await waitForAll(api, 'large', count)
  const row: number[] = []
  // A local store answers at once.
  const latest = () => api.store.latestRevision() as number
  const first = latest()
  const other = reader(listener, () => row.push(latest() - first))
  await client.of(namespaces).delete({ name: 'large' })
  await until(
    'the end of the namespace',
    () =>
      client
        .of(namespaces)
        .get({ name: 'large' })
        .then(
          () => false,
          () => true,
        ),
    60_000,
  )
  await other.stop()
  assert.deepEqual((await client.of(configMaps).list({ namespace: 'large' })).items, [])
  assert.ok((row.at(-1) ?? 0) >= count, 'each object was deleted by itself')
  t.diagnostic(`${row.length} answers, at most ${widest(row)} deletions between two`)
  assert.ok(widest(row) <= count / 20, `${widest(row)} deletions between two answers`)
  assert.deepEqual(cluster.complaints, [])
})
