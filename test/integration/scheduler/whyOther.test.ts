/** What else `skiff why` answers, over the real API server with authorization and a real scheduler: pods that are not there, namespaces, rights. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import { describeAccess, explainAccess } from '#cli/why/access'
import { explainManifest } from '#cli/why/manifest'
import { describeNamespace, explainNamespace } from '#cli/why/namespace'
import { type Ask, askOver } from '#cli/why/questions'
import { describeScheduling } from '#cli/why/scheduling'
import { configMaps, namespaces, pods, roleBindings, roles } from '#client/builtIn'
import type { TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { addNode, newNode } from './cluster.ts'
import { type ExplainedCluster, startExplainedCluster } from './explainedCluster.ts'

let cluster: ExplainedCluster
let api: TestApiServer
let ask: Ask

beforeEach(async () => {
  cluster = await startExplainedCluster()
  ;({ api } = cluster)
  ask = askOver(api.client.transport)
})

afterEach(() => cluster.close())

async function until<T>(what: () => Promise<T>, right: (found: T) => boolean): Promise<T> {
  const deadlineMs = realClock.monotonicMs() + 60_000
  for (;;) {
    const found = await what().catch((error: unknown) => {
      if (error instanceof CommandError) return undefined
      throw error
    })
    if (found !== undefined && right(found)) return found
    assert.ok(realClock.monotonicMs() < deadlineMs, 'it did not become as wanted')
    await realClock.sleep(10)
  }
}

const deployment = (cpu: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: 'example.com/web:1', command: [serve], resources: {requests: {cpu: ${cpu}}}}
`

test('X8 user need 29: why -f tells where a pod would fit that is not there, and leaves nothing behind', async () => {
  await addNode(api.client, newNode('small', { cpu: '1', memory: '8Gi', pods: '110' }))
  const found = await until(
    () => explainManifest(ask, deployment('1500m'), 'web.yaml', undefined),
    ({ nodeCount }) => nodeCount === 1,
  )
  assert.deepEqual(
    found.nodes.map(({ node, fits, changes }) => [node, fits, changes?.map(({ text }) => text)]),
    [['small', false, ['request 500m less of cpu: 1 instead of 1500m']]],
  )
  assert.match(describeScheduling(found), /^state: +asked about, and not created$/m)
  assert.match(describeScheduling(await explainManifest(ask, deployment('500m'), 'web.yaml', undefined)), /^It would fit now on: small$/m)
  assert.deepEqual((await api.client.of(pods).list()).items, [])
})

const badFiles: readonly (readonly [name: string, text: string, want: RegExp])[] = [
  ['no pod', 'kind: ConfigMap\napiVersion: v1\n', /^f\.yaml: expected one Pod, or one object with a pod template$/],
  ['no YAML', 'a: [', /^f\.yaml: /],
  ['a pod that the server refuses', 'kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {containers: []}\n', /spec\.containers: Required value/],
]

for (const [name, text, want] of badFiles)
  test(`X8 why -f reports the error in ${name}`, () =>
    assert.rejects(explainManifest(ask, text, 'f.yaml', undefined), (error: CommandError) => want.test(error.message)))

test('user need 18: why ns/NAME names what is left, the finalizers that hold it, and the next step', async () => {
  const name = 'team'
  await api.client.of(namespaces).create({ metadata: { name }, spec: {} })
  assert.match(describeNamespace(await explainNamespace(ask, name)), /It is not being deleted\.\n$/)
  await api.client.of(configMaps).create({ metadata: { namespace: name, name: 'kept', finalizers: ['example.com/backup'] } })
  await api.client.of(configMaps).delete({ namespace: name, name: 'kept' })
  await api.client.of(namespaces).delete({ name })
  const found = await explainNamespace(ask, name)
  assert.deepEqual([found.phase, found.finalizers, found.silentGroups], ['Terminating', ['kubernetes'], []])
  assert.deepEqual(
    found.remaining.map(({ resource, count, objects }) => [resource, count, objects.map((object) => [object.name, object.finalizers])]),
    [['configmaps', 1, [['kept', ['example.com/backup']]]]],
  )
  const text = describeNamespace(found)
  assert.match(text, /^configmaps +kept +\S+Z +example\.com\/backup$/m)
  assert.match(text, /^Objects wait for the controller that owns the finalizer example\.com\/backup/m)
  await assert.rejects(explainNamespace(ask, 'none'), (error: CommandError) => error.exit === 'notFound')
})

test('user need 29: why can names the rule that allows, or the nearest rules', async () => {
  const namespace = 'default'
  const rules = [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list'] }]
  await api.client.of(roles).create({ metadata: { namespace, name: 'reader' }, rules })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'team' }]
  await api.client.of(roleBindings).create({ metadata: { namespace, name: 'readers' }, roleRef, subjects })
  const asked = { user: 'jane', groups: ['team'], resource: 'deploy', name: undefined, namespace }
  const allowed = await until(
    () => explainAccess(ask, { ...asked, verb: 'get' }),
    (found) => found.allowed,
  )
  assert.match(
    describeAccess({ ...asked, verb: 'get' }, allowed),
    /^yes: jane get deploy in default\nRBAC: allowed by RoleBinding "readers\/default" of Role "reader"/,
  )
  assert.match(describeAccess({ ...asked, verb: 'get' }, allowed), /\n {2}Role\/reader through RoleBinding\/readers in default: get, list on deployments\n$/)
  const refused = await explainAccess(ask, { ...asked, verb: 'delete' })
  assert.equal(refused.allowed, false)
  const no = describeAccess({ ...asked, verb: 'delete' }, refused)
  assert.ok(no.startsWith('no: jane delete deploy in default\n'))
  assert.match(no, /with other verbs or names:\n {2}Role\/reader through /)
  const stranger = await explainAccess(ask, { ...asked, groups: [], verb: 'get' })
  assert.match(describeAccess({ ...asked, verb: 'get' }, stranger), /No rule of this user is about it\./)
  await assert.rejects(explainAccess(ask, { ...asked, verb: 'get', resource: 'unicorns' }), /the cluster serves no resource "unicorns"/)
  const path = await explainAccess(ask, { ...asked, verb: 'get', resource: '/version' })
  assert.equal(path.allowed, true)
  assert.ok(path.rules.length > 0)
})
