/** RES-03 over the wire: a quota lets exactly as much into a namespace as it says, whoever comes at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { withCluster } from './cluster.ts'

const pods = '/api/v1/namespaces/default/pods'
const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ name: 'a', image: 'i' }] } })

test('RES-03 of 1,000 pods that are created at once a quota of 100 lets 100 in, and one more for each that goes', () =>
  withCluster(async ({ request }) => {
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard: { pods: '100' } } }
    await request('POST', '/api/v1/namespaces/default/resourcequotas', quota)
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
    const { metadata } = (await request('GET', pods)).items[0]
    await request('DELETE', `${pods}/${metadata.name}`)
    await request('POST', pods, pod('next'))
    await assert.rejects(request('POST', pods, pod('one-too-many')), /exceeded quota: q, requested: pods=1, used: pods=100, limited: pods=100/)
  }))

test('RES-03 a quota for a VolumeAttributesClass counts the claims that name it, and no others', () =>
  withCluster(async ({ request }) => {
    const scopeSelector = { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }] }
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'gold' }, spec: { hard: { 'requests.storage': '10Gi' }, scopeSelector } }
    await request('POST', '/api/v1/namespaces/default/resourcequotas', quota)
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
      /exceeded quota: gold, requested: requests.storage=4Gi, used: requests.storage=8Gi, limited: requests.storage=10Gi$/,
    )
  }))
