/** RES-03 over the wire: a quota admits exactly its limit to a namespace, also for concurrent requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { definition, establish, version } from '../crd/support.ts'
import { type AdmissionCluster, withCluster } from './cluster.ts'

const namespace = '/api/v1/namespaces/default'
const pods = `${namespace}/pods`
const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ name: 'a', image: 'i' }] } })

test('ADM-09 RES-03 of 1,000 pods that are created at once a quota of 100 lets 100 in, and counts them in its status', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    await withQuota(cluster, { pods: '100' }, { pods: '0' })
    const texts = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        request('POST', pods, pod(`p${index}`)).then(
          () => undefined,
          (error) => (isStatus(error, 'Forbidden') ? error.message : Promise.reject(error)),
        ),
      ),
    )
    assert.equal(texts.filter((text) => text === undefined).length, 100)
    assert.equal((await request('GET', pods)).items.length, 100)
    assert.match(
      texts.find((text) => text !== undefined) ?? '',
      /^pods "p\d+" is forbidden: exceeded quota: q, requested: pods=1, used: pods=100, limited: pods=100$/,
    )
    assert.deepEqual((await request('GET', `${namespace}/resourcequotas/q`)).status, { hard: { pods: '100' }, used: { pods: '100' } })
  }))

test('RES-03 a dry run is refused like a write, and charges nothing', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    await withQuota(cluster, { pods: '1' }, { pods: '0' })
    await request('POST', `${pods}?dryRun=All`, pod('dry'))
    await request('POST', pods, pod('one'))
    await assert.rejects(request('POST', `${pods}?dryRun=All`, pod('two')), /exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1/)
  }))

test('RES-03 a quota for a VolumeAttributesClass counts the claims that name it, and no others', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    const scopeSelector = { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }] }
    await withQuota(cluster, { 'requests.storage': '10Gi' }, { 'requests.storage': '0' }, { scopeSelector })
    const claim = (name: string, volumeAttributesClassName: string | undefined, storage: string) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}) },
    })
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
    await request('POST', claims, claim('plain', undefined, '50Gi'))
    await request('POST', claims, claim('first', 'gold', '8Gi'))
    await assert.rejects(
      request('POST', claims, claim('second', 'gold', '4Gi')),
      /exceeded quota: q, requested: requests.storage=4Gi, used: requests.storage=8Gi, limited: requests.storage=10Gi$/,
    )
  }))

/** Asks for all at once: how many were let pass; the others were refused by the quota. */
async function passed(requests: readonly Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(requests)
  for (const result of results) if (result.status === 'rejected') assert.match(String(result.reason.message), /exceeded quota: q,/)
  return results.filter(({ status }) => status === 'fulfilled').length
}

const names = Array.from({ length: 10 }, (_, at) => `n${at}`)
/** Creates a quota and counts for it, as the controller does. */
async function withQuota({ request }: AdmissionCluster, hard: Record<string, string>, used: Record<string, string>, spec: object = {}): Promise<void> {
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard, ...spec } }
  const made = await request('POST', `${namespace}/resourcequotas`, quota)
  await request('PUT', `${namespace}/resourcequotas/q/status`, { ...made, status: { hard, used } })
}

test('RES-03 of ten claims that grow at once a quota lets grow as many as fit', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    await request('POST', '/apis/storage.k8s.io/v1/storageclasses', { metadata: { name: 'fast' }, provisioner: 'p', allowVolumeExpansion: true })
    for (const name of names) {
      const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } }
      const made = await request('POST', `${namespace}/persistentvolumeclaims`, { metadata: { name }, spec })
      const bound = { ...made, status: { phase: 'Bound', capacity: { storage: '1Gi' } } }
      await request('PUT', `${namespace}/persistentvolumeclaims/${name}/status`, bound)
    }
    await withQuota(cluster, { 'requests.storage': '14Gi' }, { 'requests.storage': '10Gi' })
    const grow = (name: string) =>
      request('PATCH', `${namespace}/persistentvolumeclaims/${name}`, { spec: { resources: { requests: { storage: '2Gi' } } } }, { contentType })
    assert.equal(await passed(names.map(grow)), 4)
  }))

const contentType = 'application/merge-patch+json'

test('RES-03 of ten services that become node ports at once a quota lets as many as fit', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    for (const name of names) await request('POST', `${namespace}/services`, { metadata: { name }, spec: { ports: [{ port: 80 }] } })
    await withQuota(cluster, { 'services.nodeports': '3' }, { 'services.nodeports': '0' })
    const change = (name: string) => request('PATCH', `${namespace}/services/${name}`, { spec: { type: 'NodePort' } }, { contentType })
    assert.equal(await passed(names.map(change)), 3)
    const { items } = await request('GET', `${namespace}/services`)
    assert.equal(items.filter(({ spec }: { spec: { type: string } }) => spec.type === 'NodePort').length, 3)
  }))

test('RES-03 a quota admits as many of ten concurrent resizes as fit, and every container keeps its requests', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    const containers = (cpu: string) => [{ name: 'a', image: 'i', resources: { requests: { cpu } } }]
    for (const name of names) await request('POST', pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: containers('100m') } })
    await withQuota(cluster, { 'requests.cpu': '1500m' }, { 'requests.cpu': '1' })
    const strategic = { contentType: 'application/strategic-merge-patch+json' }
    const resize = (name: string) => request('PATCH', `${pods}/${name}/resize`, { spec: { containers: containers('200m') } }, strategic)
    assert.equal(await passed(names.map(resize)), 5)
  }))

test('RES-03 of ten custom resources that are created at once a quota lets as many in as it counts', () =>
  withCluster(async (cluster) => {
    const { request, api } = cluster
    await establish(api.client, definition('widgets', 'Widget', [version('v1', { type: 'object' })]))
    await withQuota(cluster, { 'count/widgets.example.com': '6' }, { 'count/widgets.example.com': '0' })
    const widgets = '/apis/example.com/v1/namespaces/default/widgets'
    const create = (name: string) => request('POST', widgets, { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name } })
    assert.equal(await passed(names.map(create)), 6)
    assert.equal((await request('GET', widgets)).items.length, 6)
  }))

test('RES-03 a status that grants a claim more storage than the quota has is refused; updates that add nothing are not', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    const claims = `${namespace}/persistentvolumeclaims`
    const made = await request('POST', claims, {
      metadata: { name: 'c' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await withQuota(cluster, { 'requests.storage': '2Gi' }, { 'requests.storage': '2Gi' })
    await request('PATCH', `${claims}/c`, { metadata: { labels: { a: 'b' } } }, { contentType })
    const status = (storage: string) => ({ ...made, metadata: { name: 'c' }, status: { phase: 'Bound', allocatedResources: { storage } } })
    await request('PUT', `${claims}/c/status`, status('1Gi'))
    await assert.rejects(request('PUT', `${claims}/c/status`, status('2Gi')), /exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=2Gi/)
  }))
