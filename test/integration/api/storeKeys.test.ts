/** The keys of the store (LRN-02): folders and keys at a revision, the versions of a key, what each key holds, and who may read them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { StoreKeyVersions, StoreListing } from '#api/debug/storeKeys'
import { isStatus } from '#api/machinery/status'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { configMaps, nodes } from '#client/builtIn'
import type { Transport } from '#client/transport'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testServiceAccountKey } from '../controllers/cluster.ts'

const read = async <T>({ request }: Transport, query: Readonly<Record<string, string>>) =>
  (await request({ method: 'GET', path: '/skiff/store', query })).body as T

async function start(t: TestContext) {
  const api = await startTestApiServer({
    deps: ({ reader }) => {
      const { authorizers, postStartHooks } = createSecurity({ reader, clock: realClock, random: seededRandom(1), serviceAccountKey: testServiceAccountKey() })
      return { authorizers, postStartHooks }
    },
  })
  t.after(() => api.close())
  const maps = api.client.of(configMaps)
  for (const name of ['a', 'b']) await maps.create({ metadata: { namespace: 'default', name }, data: { color: 'red' } })
  return { api, maps, transport: api.client.transport }
}

test('LRN-02 the store lists folders with their number of keys, and keys with their revisions and the objects that they hold', async (t) => {
  const { api, transport } = await start(t)
  await api.client.of(nodes).create({ metadata: { name: 'n1' }, spec: {} })
  const root = await read<StoreListing>(transport, { prefix: '/' })
  assert.ok(root.folders.some(({ prefix }) => prefix === '/registry/'))
  const maps = await read<StoreListing>(transport, { prefix: '/registry/configmaps/' })
  assert.deepEqual([maps.folders.find(({ prefix }) => prefix.endsWith('/default/'))?.count, maps.keys], [2, []])
  const { keys, next } = await read<StoreListing>(transport, { prefix: '/registry/configmaps/default/' })
  assert.deepEqual(
    keys.map(({ key, version, object }) => [key, version, object]),
    ['a', 'b'].map((name) => [`/registry/configmaps/default/${name}`, 1, { group: '', resource: 'configmaps', namespace: 'default', name }]),
  )
  assert.ok(keys.every(({ createRevision, modRevision }) => createRevision === modRevision && modRevision > 0))
  assert.equal(next, undefined)
  const ofCluster = await read<StoreListing>(transport, { prefix: '/registry/minions/' })
  assert.deepEqual(ofCluster.keys[0]?.object, { group: '', resource: 'nodes', namespace: '', name: 'n1' })
})

test('LRN-02 the store lists its keys as they were, and the versions of one key', async (t) => {
  const { maps, transport } = await start(t)
  const created = await maps.get({ namespace: 'default', name: 'a' })
  const patched = await maps.patch({ namespace: 'default', name: 'a' }, 'merge', { data: { color: 'blue' } })
  const [first, second] = [created, patched].map(({ metadata }) => Number(metadata.resourceVersion)) as [number, number]
  await maps.delete({ namespace: 'default', name: 'b' })
  const names = async (revision: number) =>
    (await read<StoreListing>(transport, { prefix: '/registry/configmaps/default/', revision: String(revision) })).keys.map(({ key }) => key.at(-1))
  assert.deepEqual([await names(first), await names(second), await names(second + 1)], [['a'], ['a', 'b'], ['a']])
  const key = '/registry/configmaps/default/a'
  const now = await read<StoreKeyVersions>(transport, { key })
  assert.deepEqual(
    now.versions.map(({ revision, version }) => [revision, version]),
    [
      [second, 2],
      [first, 1],
    ],
  )
  assert.deepEqual([now.isCut, now.object?.name], [false, 'a'])
  const then = await read<StoreKeyVersions>(transport, { key, revision: String(first) })
  assert.deepEqual(
    then.versions.map(({ revision }) => revision),
    [first],
  )
})

test('LRN-02 a long folder is read by pages, each entry once', async (t) => {
  const { maps, transport } = await start(t)
  await Promise.all(Array.from({ length: 240 }, (_, at) => maps.create({ metadata: { namespace: 'default', name: `many-${at}` } })))
  const names = new Set<string>()
  let [from, pages]: [string | undefined, number] = [undefined, 0]
  do {
    const page: StoreListing = await read(transport, { prefix: '/registry/configmaps/default/', ...(from ? { from } : {}) })
    for (const { key } of page.keys) names.add(key)
    from = page.next
    pages++
  } while (from !== undefined)
  assert.deepEqual([names.size, pages], [242, 2])
})

test('LRN-02 the store refuses users without its path, and questions that it cannot answer', async (t) => {
  const { api, transport } = await start(t)
  const carol = api.clientAs({ name: 'carol', groups: ['system:authenticated'] })
  await assert.rejects(read(carol.transport, {}), (error: unknown) => isStatus(error, 'Forbidden'))
  const wrong = [{ prefix: 'x' }, { prefix: '/registry' }, { from: 'x' }, { revision: 'x' }, { revision: '99999999' }, { key: 'x'.repeat(2000) }]
  for (const query of wrong) await assert.rejects(read(transport, query as never), (error: unknown) => isStatus(error, 'BadRequest'), JSON.stringify(query))
})
