/** This server answers metrics.k8s.io while its APIService exists and names no Service. It creates the APIService once in the life of a cluster. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { apiServices, namespaces, services } from '#client/builtIn'
import type { TestApiServer } from '#testing/apiServer'
import { base64, certificates, startSampleServer } from '../aggregation/extension.ts'
import { eventually } from '../controllers/cluster.ts'
import { cluster, groupPath, apiServiceName as name, serves, statusOf } from './support.ts'

const groupsOf = async (api: TestApiServer) => {
  const { body } = await api.client.transport.request({ method: 'GET', path: '/apis' })
  return (body as { groups: { name: string }[] }).groups.map((group) => group.name)
}

test('AUT-02 API-28 the APIService is created with the priorities of metrics-server, is local and available', async (t) => {
  const api = (await cluster(t)).api()
  const { spec, metadata } = await api.client.of(apiServices).get({ name })
  assert.deepEqual([spec, metadata.labels], [{ group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 }, undefined])
  await serves(api, 200)
  assert.ok((await groupsOf(api)).includes('metrics.k8s.io'))
  const { status } = await eventually(async () => {
    const one = await api.client.of(apiServices).get({ name })
    return one.status?.conditions ? one : false
  })
  assert.deepEqual(
    status?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
    [['Available', 'True', 'Local']],
  )
})

test('AUT-02 API-28 a deleted APIService takes its group away, stays deleted over restarts, and serves again when it is created', async (t) => {
  const { api, restart } = await cluster(t)
  await serves(api(), 200)
  await api().client.of(apiServices).delete({ name })
  await serves(api(), 404)
  assert.ok(!(await groupsOf(api())).includes('metrics.k8s.io'))
  const again = await restart()
  assert.equal(await statusOf(again), 404)
  await assert.rejects(again.client.of(apiServices).get({ name }), { code: 404 })
  const spec = { group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 200, versionPriority: 10 }
  await again.client.of(apiServices).create({ metadata: { name }, spec })
  await serves(again, 200)
  assert.deepEqual((await (await restart()).client.of(apiServices).get({ name })).spec, spec)
})

test('AUT-02 API-28 a user’s own server takes the group over, keeps it over restarts, and can give it back', async (t) => {
  const made = await certificates()
  const sample = await startSampleServer(made)
  const { api, restart } = await cluster(t, { config: { proxyClient: made.proxyClient } })
  t.after(() => sample.stop())
  await api()
    .client.of(services)
    .create({ metadata: { namespace: 'default', name: 'sample' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
  const service = { namespace: 'default', name: 'sample', port: sample.port }
  const spec = { service, caBundle: base64(made.servingCa.cert), insecureSkipTLSVerify: false, groupPriorityMinimum: 100, versionPriority: 100 }
  await api().client.of(apiServices).patch({ name }, 'merge', { spec })
  // The sample server does not know the group: its answer is 404, and nothing of ours is served.
  const answeredElsewhere = async (one: TestApiServer) => {
    const answer = await one.client.transport.request({ method: 'GET', path: `${groupPath}/namespaces/default/flunders/whoami` }).catch((error) => error)
    return JSON.stringify(answer.body ?? answer.message)
  }
  await serves(api(), 503)
  const elsewhere = await answeredElsewhere(api())
  const again = await restart()
  assert.deepEqual((await again.client.of(apiServices).get({ name })).spec.service, service)
  await serves(again, 503)
  assert.equal(await answeredElsewhere(again), elsewhere)
  await again.client.of(apiServices).patch({ name }, 'merge', { spec: { service: null, caBundle: null, insecureSkipTLSVerify: null } })
  await serves(again, 200)
})

test('AUT-02 API-28 a cluster from before the group was introduced gets the APIService once, and an existing one of the user is left', async (t) => {
  const { api, restart } = await cluster(t)
  await api().client.of(apiServices).delete({ name })
  const clear = { metadata: { annotations: { [`apiservices.skiff.dev/${name}`]: null } } }
  await api().client.of(namespaces).patch({ name: 'kube-system' }, 'merge', clear)
  const updated = await restart()
  await serves(updated, 200)
  const spec = { groupPriorityMinimum: 77 }
  await updated.client.of(apiServices).patch({ name }, 'merge', { spec })
  await updated.client.of(namespaces).patch({ name: 'kube-system' }, 'merge', clear)
  const last = await restart()
  assert.equal((await last.client.of(apiServices).get({ name })).spec.groupPriorityMinimum, 77)
  const { metadata } = await last.client.of(namespaces).get({ name: 'kube-system' })
  assert.equal(metadata.annotations?.[`apiservices.skiff.dev/${name}`], 'created')
})

test('AUT-02 API-28 a server that does not compute the group leaves its APIService, and finds no handler', async (t) => {
  const { restart } = await cluster(t)
  const without = await restart(false)
  assert.equal((await without.client.of(apiServices).get({ name })).spec.group, 'metrics.k8s.io')
  assert.equal(await statusOf(without), 404)
})
