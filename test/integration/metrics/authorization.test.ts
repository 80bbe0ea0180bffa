/** Computed groups are resources like others for authorization, and their lists take the options of lists. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { nodeViewGroup } from '#apiserver/endpoints/nodeViews'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { clusterRoleBindings, clusterRoles, namespaces, roleBindings } from '#client/builtIn'
import { nodeViews } from '#kubelet/views/index'
import { resourceMetricsGroup } from '#metrics/group'
import { UsageStore } from '#metrics/usageStore'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testServiceAccountKey } from '../controllers/cluster.ts'
import { groupPath, node, runningPod, sampled } from './support.ts'

const viewPath = '/apis/node.skiff.dev/v1alpha1/podworkers'
const store = new UsageStore()
let api: TestApiServer

before(async () => {
  api = await startTestApiServer({
    deps: ({ reader }) => {
      const security = createSecurity({ reader, clock: realClock, random: seededRandom(1), serviceAccountKey: testServiceAccountKey() })
      return { authorizers: security.authorizers, postStartHooks: security.postStartHooks }
    },
    prepare: (server) => {
      const { reader, kubelets } = server
      server.addGroup(resourceMetricsGroup({ objects: reader, store, clock: realClock }))
      server.addGroup(nodeViewGroup(nodeViews, { reader, kubelets, clock: realClock }))
    },
  })
  const { client } = api
  for (const name of ['case', 'other']) await client.of(namespaces).create({ metadata: { name }, spec: {} })
  await node(client, 'n1', { zone: 'a' })
  await node(client, 'n2')
  for (const name of ['app', 'db']) await runningPod(client, { namespace: 'case', name, nodeName: 'n1' }, ['main'])
  sampled(store, 'n1', { 'case/app': ['main'], 'case/db': ['main'] })
  sampled(store, 'n2', {})
})
after(() => api.close())

interface Items {
  readonly metadata: object
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

const list = async (path: string, query: Record<string, string> = {}, client = api.client) =>
  (await client.transport.request({ method: 'GET', path, query })).body as Items
const namesIn = async (path: string, query: Record<string, string> = {}) => (await list(path, query)).items.map(({ metadata }) => metadata.name)

const apiGroup = 'rbac.authorization.k8s.io'

/** A user with one right in all namespaces. */
async function userWith(name: string, rule: { apiGroups: string[]; resources: string[]; verbs: string[] }) {
  await api.client.of(clusterRoles).create({ metadata: { name }, rules: [rule] })
  const roleRef = { apiGroup, kind: 'ClusterRole', name }
  await api.client.of(clusterRoleBindings).create({ metadata: { name }, roleRef, subjects: [{ kind: 'User', name, apiGroup }] })
  return api.clientAs({ name, groups: ['system:authenticated'] })
}

const resources: readonly (readonly [path: string, resource: string, group: string])[] = [
  [`${groupPath}/nodes`, 'nodes', 'metrics.k8s.io'],
  [`${groupPath}/pods`, 'pods', 'metrics.k8s.io'],
  [viewPath, 'podworkers', 'node.skiff.dev'],
]

for (const [path, resource, group] of resources) {
  test(`AUZ-01 AUT-02 KUB-17 a list of ${resource}.${group} needs the right to list it in its own group`, async () => {
    const other = group === 'metrics.k8s.io' ? '' : 'metrics.k8s.io'
    const where = `cannot list resource "${resource}" in API group "${group}" at the cluster scope`
    const rules = [
      { apiGroups: [other], resources: ['*'], verbs: ['*'] },
      { apiGroups: [group], resources: ['others'], verbs: ['*'] },
      { apiGroups: [group], resources: [resource], verbs: ['get', 'watch'] },
    ]
    for (const [index, rule] of rules.entries()) {
      const name = `without-${resource}-${group}-${index}`
      const message = `${resource}.${group} is forbidden: User "${name}" ${where}`
      await assert.rejects(list(path, {}, await userWith(name, rule)), { code: 403, message })
    }
    const client = await userWith(`with-${resource}-${group}`, { apiGroups: [group], resources: [resource], verbs: ['list'] })
    assert.ok((await list(path, {}, client)).items.length > 0)
    const where404 = `cannot get resource "${resource}" in API group "${group}"`
    await assert.rejects(list(`${path}/n1`, {}, client), ({ code, message }) => code === 403 && message.includes(where404))
  })
}

test('AUZ-01 AUT-02 usage of pods is read in the namespaces of a role binding alone', async () => {
  await api.client.of(clusterRoles).create({ metadata: { name: 'usage' }, rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods'], verbs: ['list'] }] })
  const roleRef = { apiGroup, kind: 'ClusterRole', name: 'usage' }
  const subjects = [{ kind: 'User', name: 'jane', apiGroup }]
  await api.client.of(roleBindings).create({ metadata: { namespace: 'case', name: 'usage' }, roleRef, subjects })
  const jane = api.clientAs({ name: 'jane', groups: ['system:authenticated'] })
  assert.equal((await list(`${groupPath}/namespaces/case/pods`, {}, jane)).items.length, 2)
  for (const path of [`${groupPath}/namespaces/other/pods`, `${groupPath}/pods`]) await assert.rejects(list(path, {}, jane), { code: 403 })
})

const lists: readonly (readonly [path: string, names: readonly [string, string], resource: string])[] = [
  [`${groupPath}/namespaces/case/pods`, ['app', 'db'], 'pods.metrics.k8s.io'],
  [`${groupPath}/nodes`, ['n1', 'n2'], 'nodes.metrics.k8s.io'],
  [viewPath, ['n1', 'n2'], 'podworkers.node.skiff.dev'],
]
for (const [path, names, resource] of lists) {
  test(`AUT-02 KUB-17 a list of ${resource} is whole in one answer without a continue token, whatever its limit`, async () => {
    for (const query of [{ limit: '1' }, { limit: '1', continue: 'abc' }, { limit: '0' }]) {
      const { metadata } = await list(path, query)
      assert.deepEqual([await namesIn(path, query), metadata], [names, {}], JSON.stringify(query))
    }
    await assert.rejects(list(path, { limit: 'many' }), { code: 400 })
  })

  test(`AUT-02 KUB-17 a list of ${resource} is selected by name and labels, and refuses other fields`, async () => {
    assert.deepEqual(await namesIn(path, { fieldSelector: `metadata.name=${names[1]}` }), [names[1]])
    assert.deepEqual(await namesIn(path, { fieldSelector: `metadata.name!=${names[1]}` }), [names[0]])
    assert.deepEqual(await namesIn(path, { labelSelector: 'zone' }), path.includes('namespaces') ? [] : ['n1'])
    const message = '"status.phase" is not a known field selector: only "metadata.name", "metadata.namespace"'
    await assert.rejects(list(path, { fieldSelector: 'status.phase=Running' }), { code: 400, message })
  })

  test(`AUT-02 KUB-17 a watch of ${resource} is refused in upstream's words, and an unknown name is not found`, async () => {
    const message = `watch is not supported on resources of kind "${resource}"`
    const [kind = '', ...group] = resource.split('.')
    const details = { group: group.join('.'), kind }
    for (const query of [{ watch: 'true' }, { watch: '1', fieldSelector: `metadata.name=${names[0]}` }]) {
      await assert.rejects(list(path, query), { code: 405, reason: 'MethodNotAllowed', message, details })
    }
    await assert.rejects(list(`${path}/none`), { code: 404, reason: 'NotFound' })
    await assert.rejects(list(path.replace(/[^/]+$/, 'unknown')), { code: 404 })
    await assert.rejects(list(path.replace(/(v1[a-z]+1)/, '$1/watch')), { code: 404 })
  })
}
