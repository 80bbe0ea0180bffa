/** ADM-02, ADM-03: webhooks allow, refuse and change what is written. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../support/refused.ts'
import { jsonPatch } from '../../support/webhookServer.ts'
import { configMap, configMaps, configure, webhook, withCluster } from './cluster.ts'

test('ADM-03: a webhook refuses in its own words', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', ({ object }) => ({ allowed: object.data.bad === undefined, status: { message: 'bad data', code: 418, reason: 'Teapot' } }))
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny')])
    await request('POST', configMaps(), configMap('good'))
    const status = await refused(request('POST', configMaps(), configMap('bad', { bad: '1' })))
    assert.deepEqual([status.code, status.reason, status.message], [418, 'Teapot', 'admission webhook "deny.example.com" denied the request: bad data'])
  }))

test('ADM-02: a webhook changes what is written', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/mutate', () => jsonPatch([{ op: 'add', path: '/data/added', value: 'yes' }]))
    await configure(cluster, 'mutating', 'mutate', [webhook(hooks, '/mutate')])
    const made = await request('POST', configMaps(), configMap('one', { own: '1' }))
    assert.deepEqual(made.data, { own: '1', added: 'yes' })
    const again = await request('PUT', configMaps('default', 'one'), configMap('one', { own: '2' }))
    assert.deepEqual(again.data, { own: '2', added: 'yes' })
  }))
