/**
 * A stored value that is no object (a damaged disk, another program that writes into the store) stops no start: everything else is served, a log
 * line and a metric name it, and it can be deleted as upstream's feature gate AllowUnsafeMalformedObjectDeletion has it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertServesInnocent, createKilledCluster, type KilledCluster } from './poison/killedCluster.ts'

const whole = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'whole', namespace: 'tenant', uid: 'u' }, data: { a: 'b' } }
const text = JSON.stringify(whole)

const damages: Readonly<Record<string, Buffer>> = {
  empty: Buffer.alloc(0),
  zeros: Buffer.alloc(4096),
  noise: Buffer.from(Array.from({ length: 500 }, (_, at) => (at * 151 + 13) % 256)),
  truncated: Buffer.from(text.slice(0, -12)),
  'another-object-inside': Buffer.from(`${text.slice(0, 60)}${text}`),
  null: Buffer.from('null'),
  list: Buffer.from('[]'),
  'without-metadata': Buffer.from(JSON.stringify({ ...whole, metadata: undefined })),
  'without-kind': Buffer.from(JSON.stringify({ ...whole, kind: undefined })),
  'labels-of-another-type': Buffer.from(JSON.stringify({ ...whole, metadata: { ...whole.metadata, labels: ['a'] } })),
  'encrypted-by-nobody': Buffer.from('k8s:enc:aescbc:v1:gone:0123456789abcdef'),
  'half-a-protobuf': Buffer.from([0x6b, 0x38, 0x73, 0x00, 0x0a, 0xff, 0xff, 0xff, 0x7f]),
}

const gate = ['--feature-gates=AllowUnsafeMalformedObjectDeletion=true']
const unsafe = { kind: 'DeleteOptions', apiVersion: 'v1', ignoreStoreReadErrorWithClusterBreakingPotential: true }
const configMaps = '/api/v1/namespaces/tenant/configmaps'
const pods = '/api/v1/namespaces/tenant/pods'

async function withTenant(use: (cluster: KilledCluster) => Promise<void>, apiServerArgs: readonly string[] = []): Promise<void> {
  const cluster = createKilledCluster({ apiServerArgs })
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    await cluster.kill()
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

const damaged = () => Object.fromEntries(Object.entries(damages).map(([name, value]) => [`/registry/configmaps/tenant/${name}`, value]))

test('ARC-10 damaged values of twelve kinds stop no start, the other objects are served, and each is deleted by its own option', async () => {
  await withTenant(async (cluster) => {
    await cluster.seed({
      ...damaged(),
      '/registry/configmaps/tenant/whole': whole,
      '/registry/cronjobs/tenant/damaged': Buffer.from('{"apiVersion":"batch/v1",'),
    })
    await cluster.start()
    await assertServesInnocent(cluster, 'web')
    assert.equal((await cluster.call('GET', `${configMaps}/whole`)).status, 200)
    assert.equal((await cluster.call('GET', '/api/v1/namespaces/innocent/configmaps')).status, 200)
    const list = await cluster.call('GET', configMaps)
    assert.deepEqual([list.status, /unable to decode key "\/registry\/configmaps\/tenant\/[a-z-]+"/.test(list.json.message)], [500, true], list.text)
    for (const name of Object.keys(damages)) {
      const path = `${configMaps}/${name}`
      assert.equal((await cluster.call('GET', path)).status, 500, name)
      assert.equal((await cluster.call('DELETE', path)).status, 500, name)
      const both = await cluster.call('DELETE', path, { ...unsafe, gracePeriodSeconds: 0 })
      assert.deepEqual([both.status, both.text.includes('cannot be set together with .gracePeriodSeconds')], [422, true])
      const deleted = await cluster.call('DELETE', path, unsafe)
      assert.deepEqual([deleted.status, deleted.json.details], [200, { name, kind: 'ConfigMap' }], deleted.text)
      assert.equal((await cluster.call('GET', path)).status, 404, name)
    }
    const readable = await cluster.call('DELETE', `${configMaps}/whole`, unsafe)
    assert.deepEqual([readable.status, readable.text.includes('is exclusively used to delete corrupt object(s)')], [422, true], readable.text)
    assert.equal((await cluster.call('GET', configMaps)).status, 200)
    await cluster.kill()
    await cluster.start()
    assert.equal((await cluster.call('GET', configMaps)).status, 200)
  }, gate)
})

test('ARC-10 a damaged pod holds up what lists all pods until it is deleted, and nothing else', async () => {
  await withTenant(async (cluster) => {
    await cluster.seed({ '/registry/pods/tenant/damaged': Buffer.from(text.slice(0, 40)) })
    await cluster.start()
    assert.equal((await cluster.call('GET', `${pods}/damaged`)).status, 500)
    assert.equal((await cluster.call('GET', '/api/v1/namespaces/default/pods')).status, 200)
    assert.equal((await cluster.call('POST', configMaps, { metadata: { name: 'new' } })).status, 201)
    assert.equal((await cluster.call('DELETE', `${pods}/damaged`, unsafe)).status, 200)
    await assertServesInnocent(cluster, 'web')
  }, gate)
})

test('ARC-10 the option that deletes damaged objects is ignored, the feature gate is off', async () => {
  await withTenant(async (cluster) => {
    await cluster.seed(damaged())
    await cluster.start()
    const refused = await cluster.call('DELETE', `${configMaps}/empty`, unsafe)
    assert.equal(refused.status, 500, refused.text)
    await assertServesInnocent(cluster, 'web')
  })
})
