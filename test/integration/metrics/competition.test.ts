/** Computed groups against custom resources of the same group-version, and starts during which registrations fail. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { AdmissionAttributes } from '#apiserver/admission/admission'
import { apiServices, namespaces } from '#client/builtIn'
import type { TestApiServer } from '#testing/apiServer'
import { eventually } from '../controllers/cluster.ts'
import { crdPath, definition, establish, plain, version } from '../crd/support.ts'
import { cluster, groupPath, apiServiceName as name, serves, statusOf } from './support.ts'

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** Custom resources in the group-version of the computed ones, one of them with the same name. */
function rivals(plural: 'nodes' | 'widgets') {
  const { spec } = definition(plural, 'Rival', [version('v1beta1', open)], { group: 'metrics.k8s.io', scope: 'Cluster' })
  return { metadata: { name: `${plural}.metrics.k8s.io`, annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' } }, spec }
}

const kindOf = async ({ client }: TestApiServer) => (await client.transport.request({ method: 'GET', path: `${groupPath}/nodes` })).body as { kind: string }
const answersWith = (api: TestApiServer, kind: string) => eventually(async () => assert.equal((await kindOf(api)).kind, kind), 10_000)
const find = (api: TestApiServer) => api.client.of(apiServices).get({ name })
const remove = (api: TestApiServer, plural: string) => plain(api.client).request('DELETE', `${crdPath}/${plural}.metrics.k8s.io`)
/** Writes of APIServices that changes of sources cause have happened after this. */
const settled = async (api: TestApiServer) => {
  await establish(api.client, definition('markers', 'Marker', [version('v1', open)]))
  await eventually(async () => (await api.client.of(apiServices).get({ name: 'v1.example.com' })) !== undefined, 10_000)
}

test('AUT-02 API-28 custom resources take the group over that a component computed before, and give it back when they are deleted', async (t) => {
  const { api, restart } = await cluster(t)
  await answersWith(api(), 'NodeMetricsList')
  const { metadata } = await find(api())
  await establish(api().client, rivals('nodes'))
  await answersWith(api(), 'RivalList')
  assert.equal(await statusOf(api(), `${groupPath}/pods`), 404, 'no resource of the component is mixed in')
  await answersWith(await restart(), 'RivalList')
  await settled(api())
  assert.equal((await find(api())).metadata.uid, metadata.uid, 'the APIService is still the one of the start')
  await remove(api(), 'nodes')
  await answersWith(api(), 'NodeMetricsList')

  assert.equal((await find(api())).metadata.uid, metadata.uid)
})

test('AUT-02 API-28 custom resources that were there first keep the group, and the component gets it when they are deleted', async (t) => {
  const { api, restart } = await cluster(t, { withGroup: false })
  await establish(api().client, rivals('widgets'))
  await eventually(async () => (await find(api())).metadata.labels?.['kube-aggregator.kubernetes.io/automanaged'] === 'true', 10_000)
  const again = await restart(true)
  await settled(again)
  assert.equal(await statusOf(again), 404)
  assert.equal(await statusOf(again, `${groupPath}/widgets`), 200)
  const marks = async () => (await again.client.of(namespaces).get({ name: 'kube-system' })).metadata.annotations ?? {}
  assert.equal((await marks())[`apiservices.skiff.dev/${name}`], undefined)
  await remove(again, 'widgets')
  await serves(again, 200)
  const { metadata, spec } = await find(again)
  assert.deepEqual([metadata.labels, spec.groupPriorityMinimum], [undefined, 100])
  assert.equal((await marks())[`apiservices.skiff.dev/${name}`], 'created')
})

/** An admission plugin that handles writes of APIServices with these names, until `stop` is called. */
function admissionOf(names: readonly string[], handle: () => Promise<void>) {
  let isOn = true
  const admit = async ({ resource, name: own, object }: AdmissionAttributes) => {
    if (isOn && resource.resource === 'apiservices' && names.includes(own || (object?.metadata.name ?? ''))) await handle()
  }
  return {
    deps: () => ({ admission: [{ name: 'Test', handles: () => true, validate: admit }] }),
    stop: () => {
      isOn = false
    },
  }
}

test('API-28 the server becomes ready although the APIService of a computed group is refused, and registers it later', async (t) => {
  const { deps, stop } = admissionOf([name], () => Promise.reject(new Error('a webhook of the user is broken')))
  const { api } = await cluster(t, { deps })
  assert.equal(await statusOf(api(), '/readyz'), 200)
  assert.equal(await statusOf(api()), 404)
  stop()
  await serves(api(), 200)
})

test('API-28 the server becomes ready within seconds although the write of an APIService of a computed group hangs', async (t) => {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  t.after(end)
  const { deps, stop } = admissionOf([name], () => ended)
  const { api } = await cluster(t, { deps })
  assert.equal(await statusOf(api(), '/readyz'), 200)
  stop()
  end()
  await serves(api(), 200)
})

test('API-28 the server becomes ready again although the APIService of custom resources is refused', async (t) => {
  const { deps, stop } = admissionOf(['v1.example.com'], () => Promise.reject(new Error('a webhook of the user is broken')))
  const { api, restart } = await cluster(t, { deps })
  await establish(api().client, definition('toys', 'Toy', [version('v1', open)]))
  await restart()
  await assert.rejects(api().client.of(apiServices).get({ name: 'v1.example.com' }), { code: 404 })
  assert.equal(await statusOf(api(), '/apis/example.com/v1/toys'), 200)
  stop()
  await eventually(async () => (await api().client.of(apiServices).get({ name: 'v1.example.com' })) !== undefined, 10_000)
})
