/** The server with its real security: bootstrap policy, RBAC, reviews, tokens, escalation, the Node authorizer. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { SelfSubjectReview, TokenRequest, TokenReview } from '#api/gen/types/authentication.v1'
import type { SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview } from '#api/gen/types/authorization.v1'
import type { Pod } from '#api/gen/types/core.v1'
import type { ClusterRole } from '#api/gen/types/rbac.v1'
import { StatusError } from '#api/machinery/status'
import type { UserInfo } from '#apiserver/core/request'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const serviceAccountKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, 'system:authenticated'] })
const admin = user('admin', 'system:masters')
const alice = user('alice')
const nodeOne = user('system:node:one', 'system:nodes')

let api: TestApiServer
before(async () => {
  api = await startTestApiServer({
    deps: (registry) => createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey }),
  })
  for (const name of ['default', 'builder']) await call(admin, 'POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name } })
  for (const name of ['one', 'two']) await call(admin, 'POST', '/api/v1/nodes', { metadata: { name } })
  for (const name of ['used', 'unused']) await call(admin, 'POST', '/api/v1/namespaces/default/secrets', { metadata: { name } })
})
after(() => api.close())

/** One request as a user: the answer's body, or the Status' code and message. */
async function call<T>(as: UserInfo, method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH', path: string, body?: unknown): Promise<T> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
  const [bare = '', query] = path.split('?')
  const request = { method, path: bare, query: Object.fromEntries(new URLSearchParams(query)), body, contentType }
  return (await api.server.transport(as, 'test').request(request)).body as T
}

async function refused(as: UserInfo, method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH', path: string, body?: unknown): Promise<string> {
  try {
    await call(as, method, path, body)
    return 'allowed'
  } catch (error) {
    if (error instanceof StatusError) return `${error.code} ${error.message}`
    throw error
  }
}

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const roleRef = (kind: string, name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name })
const subject = (name: string) => [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }]
const pod = (name: string, spec: object = {}, metadata: object = {}) => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
})

test('AUZ-01 the bootstrap policy is there, and a refusal reads as upstream', async () => {
  const role = await call<ClusterRole>(admin, 'GET', `${rbac}/clusterroles/system:discovery`)
  assert.deepEqual(role.metadata.labels, { 'kubernetes.io/bootstrapping': 'rbac-defaults' })
  assert.equal(
    await refused(alice, 'GET', '/api/v1/namespaces/default/pods'),
    '403 pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"',
  )
  assert.equal(await refused(alice, 'GET', '/metrics'), '403 forbidden: User "alice" cannot get path "/metrics"')
  await call(alice, 'GET', '/api')
})

test("AUZ-01 a binding grants exactly its role's permissions, in its namespace", async () => {
  await call(admin, 'POST', `${rbac}/namespaces/default/roles`, {
    metadata: { name: 'reader' },
    rules: [
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'pods/log'] },
      { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['used'] },
      { verbs: ['update'], apiGroups: ['*'], resources: ['*/scale'] },
    ],
  })
  await call(admin, 'POST', `${rbac}/namespaces/default/rolebindings`, {
    metadata: { name: 'bob' },
    roleRef: roleRef('Role', 'reader'),
    subjects: subject('bob'),
  })
  const may = async (attributes: object) => {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: 'bob', groups: ['system:authenticated'], resourceAttributes: attributes },
    }
    return (await call<SubjectAccessReview>(admin, 'POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)).status.allowed
  }
  const namespace = 'default'
  const cases = [
    [{ namespace, verb: 'list', resource: 'pods' }, true],
    [{ namespace, verb: 'get', resource: 'pods', subresource: 'log' }, true],
    [{ namespace, verb: 'get', resource: 'pods', subresource: 'exec' }, false],
    [{ namespace, verb: 'delete', resource: 'pods' }, false],
    [{ namespace: 'kube-system', verb: 'list', resource: 'pods' }, false],
    [{ verb: 'list', resource: 'pods' }, false],
    [{ namespace, verb: 'get', resource: 'secrets', name: 'used' }, true],
    [{ namespace, verb: 'get', resource: 'secrets', name: 'unused' }, false],
    [{ namespace, verb: 'list', resource: 'secrets' }, false],
    [{ namespace, verb: 'update', group: 'apps', resource: 'deployments', subresource: 'scale' }, true],
    [{ namespace, verb: 'update', group: 'apps', resource: 'deployments' }, false],
  ] as const
  for (const [attributes, want] of cases) assert.equal(await may(attributes), want, JSON.stringify(attributes))
})

test("AUZ-07 the self reviews return the caller's permissions, the reason, and the user", async () => {
  const bob = user('bob')
  const asked = { spec: { resourceAttributes: { namespace: 'default', verb: 'list', resource: 'pods' } } }
  const review = await call<SelfSubjectAccessReview>(bob, 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', asked)
  assert.deepEqual(review.status, { allowed: true, reason: 'RBAC: allowed by RoleBinding "bob/default" of Role "reader" to User "bob"' })
  const rules = await call<SelfSubjectRulesReview>(bob, 'POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: { namespace: 'default' } })
  assert.ok(rules.status.resourceRules.some((rule) => rule.resources?.includes('pods/log') && rule.verbs.includes('get')))
  const me = await call<SelfSubjectReview>(bob, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {})
  assert.deepEqual(me.status.userInfo, { username: 'bob', groups: ['system:authenticated'] })
  const both = { spec: { ...asked.spec, nonResourceAttributes: { path: '/', verb: 'get' } } }
  assert.match(
    await refused(bob, 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', both),
    /^422 .*cannot be specified in combination with resourceAttributes/,
  )
})

test('AUZ-01 a user cannot grant permissions that they do not hold, by role or by binding', async () => {
  const rule = { verbs: ['*'], apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings', 'clusterrolebindings'] }
  await call(admin, 'POST', `${rbac}/clusterroles`, { metadata: { name: 'role-manager' }, rules: [{ ...rule, verbs: ['create', 'update', 'patch', 'get'] }] })
  await call(admin, 'POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'mallory' },
    roleRef: roleRef('ClusterRole', 'role-manager'),
    subjects: subject('mallory'),
  })
  const mallory = user('mallory')
  const everything = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]
  assert.equal(
    await refused(mallory, 'POST', `${rbac}/namespaces/default/roles`, { metadata: { name: 'god' }, rules: everything }),
    '403 roles.rbac.authorization.k8s.io "god" is forbidden: user "mallory" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
      '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
  )
  const toAdmin = { metadata: { name: 'me' }, roleRef: roleRef('ClusterRole', 'cluster-admin'), subjects: subject('mallory') }
  assert.match(await refused(mallory, 'POST', `${rbac}/clusterrolebindings`, toAdmin), /^403 .*not currently held/)
  assert.equal(
    await refused(mallory, 'POST', `${rbac}/namespaces/default/roles`, { metadata: { name: 'same' }, rules: [{ ...rule, verbs: ['get'] }] }),
    'allowed',
  )
  assert.match(await refused(mallory, 'PATCH', `${rbac}/namespaces/default/roles/same`, { rules: everything }), /^403 .*not currently held/)
})

test('AUN-03 a token names its service account and dies with its pod', async () => {
  const made = await call<Pod>(admin, 'POST', '/api/v1/namespaces/default/pods', pod('worker', { serviceAccountName: 'builder', nodeName: 'one' }))
  const request = (spec: object) => call<TokenRequest>(admin, 'POST', '/api/v1/namespaces/default/serviceaccounts/builder/token', { spec })
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'worker', uid: made.metadata.uid }
  const { status } = await request({ boundObjectRef: bound })
  const review = async (token: string | undefined, audiences?: string[]) =>
    (await call<TokenReview>(admin, 'POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } })).status
  const good = await review(status.token)
  assert.deepEqual(
    [good.authenticated, good.user?.username, good.user?.groups],
    [true, 'system:serviceaccount:default:builder', ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated']],
  )
  assert.deepEqual(good.user?.extra?.['authentication.kubernetes.io/pod-name'], ['worker'])
  assert.equal((await review(status.token, ['elsewhere'])).authenticated, undefined)
  const unbound = await request({ audiences: ['vault'] })
  assert.equal((await review(unbound.status.token)).authenticated, undefined)
  assert.deepEqual((await review(unbound.status.token, ['vault', 'other'])).audiences, ['vault'])
  await call(admin, 'DELETE', '/api/v1/namespaces/default/pods/worker?gracePeriodSeconds=0').catch(() => undefined)
  await call(admin, 'DELETE', '/api/v1/namespaces/default/pods/worker', { gracePeriodSeconds: 0 }).catch(() => undefined)
  assert.equal((await review(status.token)).authenticated, undefined)
  const path = '/api/v1/namespaces/default/serviceaccounts/builder/token'
  assert.match(await refused(admin, 'POST', path, { spec: { expirationSeconds: 10 } }), /^422 .*may not specify a duration less than 10 minutes/)
  assert.match(await refused(admin, 'POST', path, { spec: { boundObjectRef: bound } }), /^404 pods "worker" not found/)
})

test('AUZ-04 a node reads only what its pods use, and edits only itself', async () => {
  const volumes = [{ name: 's', secret: { secretName: 'used' } }]
  const made = await call<Pod>(admin, 'POST', '/api/v1/namespaces/default/pods', pod('on-one', { nodeName: 'one', volumes }))
  await call(nodeOne, 'GET', '/api/v1/namespaces/default/secrets/used')
  assert.match(
    await refused(nodeOne, 'GET', '/api/v1/namespaces/default/secrets/unused'),
    /^403 secrets "unused" is forbidden: User "system:node:one" cannot get resource "secrets" in API group "" in the namespace "default": no relationship found between node 'one' and this object$/,
  )
  assert.match(await refused(user('system:node:two', 'system:nodes'), 'GET', '/api/v1/namespaces/default/secrets/used'), /^403/)
  assert.match(await refused(nodeOne, 'GET', '/api/v1/namespaces/default/secrets'), /^403/)
  assert.match(await refused(nodeOne, 'PATCH', '/api/v1/nodes/two/status', { status: { phase: 'Running' } }), /^403 .*is not allowed to modify node "two"/)
  assert.match(await refused(nodeOne, 'POST', '/api/v1/namespaces/default/pods', pod('rogue', { nodeName: 'one' })), /^403 .*mirror/)
  const token = '/api/v1/namespaces/default/serviceaccounts/default/token'
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'on-one', uid: made.metadata.uid }
  assert.equal(await refused(nodeOne, 'POST', token, { spec: { boundObjectRef: bound } }), 'allowed')
  assert.match(await refused(nodeOne, 'POST', token, { spec: {} }), /^403 .*node requested token not bound to a pod/)
})

test('AUZ-04 a node lists and watches only its own pods and itself', async () => {
  const selector = '?fieldSelector=spec.nodeName%3D'
  const answers: Record<string, string> = {}
  for (const path of [
    `pods${selector}one`,
    `namespaces/default/pods${selector}one`,
    `pods${selector}two`,
    'pods?fieldSelector=spec.nodeName!%3Done',
    'pods',
    'namespaces/default/pods/on-one',
    'namespaces/default/pods/none',
    'nodes/one',
    'nodes?fieldSelector=metadata.name%3Done',
    'nodes/two',
    'nodes',
    'services',
  ]) {
    answers[path] = (await refused(nodeOne, 'GET', `/api/v1/${path}`)).replace(/^(403) .*(cluster scope|"default"): /, '$1 ')
  }
  const unscoped = '403 can only list/watch pods with spec.nodeName field selector'
  assert.deepEqual(answers, {
    [`pods${selector}one`]: 'allowed',
    [`namespaces/default/pods${selector}one`]: 'allowed',
    [`pods${selector}two`]: unscoped,
    'pods?fieldSelector=spec.nodeName!%3Done': unscoped,
    pods: unscoped,
    'namespaces/default/pods/on-one': 'allowed',
    'namespaces/default/pods/none': "403 no relationship found between node 'one' and this object",
    'nodes/one': 'allowed',
    'nodes?fieldSelector=metadata.name%3Done': 'allowed',
    'nodes/two': "403 node 'one' cannot read 'two', only its own Node object",
    nodes: "403 node 'one' cannot read all nodes, only its own Node object",
    services: 'allowed',
  })
})

test('AUZ-07 a review may ask about a selection, and a list of rules is incomplete for nodes only', async () => {
  const ask = async (fieldSelector: object) => {
    const review = { spec: { user: 'system:node:one', groups: ['system:nodes'], resourceAttributes: { verb: 'list', resource: 'pods', fieldSelector } } }
    return (await call<SubjectAccessReview>(admin, 'POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)).status.allowed
  }
  const requirement = { key: 'spec.nodeName', operator: 'In', values: ['one'] }
  assert.deepEqual(
    [
      await ask({ rawSelector: 'spec.nodeName=one' }),
      await ask({ requirements: [requirement] }),
      await ask({ requirements: [{ ...requirement, operator: 'NotIn' }] }),
      await ask({ requirements: [{ ...requirement, values: ['one', 'two'] }] }),
    ],
    [true, true, false, false],
  )
  const rules = async (who: UserInfo) => {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
    const { incomplete, evaluationError } = (await call<SelfSubjectRulesReview>(who, 'POST', path, { spec: { namespace: 'default' } })).status
    return [incomplete, evaluationError]
  }
  assert.deepEqual(
    [await rules(admin), await rules(nodeOne)],
    [
      [false, undefined],
      [true, 'node authorizer does not support user rule resolution'],
    ],
  )
})

test('RBAC and the Node authorizer know what a restarted server found in its store', async () => {
  const memory = createMemoryStore({ clock: realClock })
  const close = memory.close.bind(memory)
  // It outlives its first server.
  memory.close = async () => {}
  const start = () =>
    startTestApiServer({
      store: memory,
      deps: (registry) => createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey }),
    })
  const as = (server: TestApiServer, who: UserInfo) => server.server.transport(who, 'test')
  const first = await start()
  await as(first, admin).request({ method: 'POST', path: '/api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'default' } } })
  await as(first, admin).request({ method: 'POST', path: '/api/v1/namespaces/default/secrets', body: { metadata: { name: 'used' } } })
  const volumes = [{ name: 's', secret: { secretName: 'used' } }]
  await as(first, admin).request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: pod('p', { nodeName: 'one', volumes }) })
  const binding = { metadata: { name: 'eve' }, roleRef: roleRef('ClusterRole', 'cluster-admin'), subjects: subject('eve') }
  await as(first, admin).request({ method: 'POST', path: `${rbac}/clusterrolebindings`, body: binding })
  await first.close()
  const second = await start()
  await as(second, user('eve')).request({ method: 'GET', path: '/api/v1/secrets' })
  await as(second, nodeOne).request({ method: 'GET', path: '/api/v1/namespaces/default/secrets/used' })
  await second.close()
  await close()
})

test('a quota holds against requests side by side', async () => {
  await call(admin, 'POST', '/api/v1/namespaces', { metadata: { name: 'small' } })
  await call(admin, 'POST', '/api/v1/namespaces/small/serviceaccounts', { metadata: { name: 'default' } })
  const hard = { pods: '2', 'count/configmaps': '1' }
  const quotas = '/api/v1/namespaces/small/resourcequotas'
  const made = await call<object>(admin, 'POST', quotas, { metadata: { name: 'two' }, spec: { hard } })
  await call(admin, 'PUT', `${quotas}/two/status`, { ...made, status: { hard, used: { pods: '0', 'count/configmaps': '0' } } })
  const path = '/api/v1/namespaces/small/pods'
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map((name) => refused(admin, 'POST', path, pod(name))))
  assert.deepEqual(answers.map((answer) => answer.slice(0, 7)).sort(), ['403 pod', '403 pod', 'allowed', 'allowed'])
  assert.match(answers[3] ?? '', /pods "d" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2$/)
  assert.equal(await refused(admin, 'POST', '/api/v1/namespaces/small/configmaps', { metadata: { name: 'a' } }), 'allowed')
  assert.match(await refused(admin, 'POST', '/api/v1/namespaces/small/configmaps', { metadata: { name: 'b' } }), /exceeded quota/)
  const review = { spec: { user: 'x', resourceAttributes: { namespace: 'small', verb: 'get', resource: 'pods' } } }
  assert.equal(await refused(admin, 'POST', '/apis/authorization.k8s.io/v1/namespaces/small/localsubjectaccessreviews', review), 'allowed')
})
