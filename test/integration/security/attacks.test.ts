/**
 * Attempts to gain rights (AUZ-03, AUZ-04, SDR-01), each by a user with the rights for the preceding step: through roles, bindings, labels that aggregate,
 * acting as others, a node's identity, and configurations of admission. Every one is refused, with upstream's reason.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { StatusError } from '#api/machinery/status'
import type { UserInfo } from '#apiserver/core/request'
import type { TestApiServer } from '#testing/apiServer'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH'

const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, 'system:authenticated'] })
const admin = user('admin', 'system:masters')
const mallory = user('mallory')
const node = user('system:node:one', 'system:nodes')
const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`
const inDefault = '/api/v1/namespaces/default'

let api: TestApiServer

async function call(as: UserInfo, method: Method, path: string, body?: unknown): Promise<{ metadata: { uid: string } }> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
  return (await api.server.transport(as, 'test').request({ method, path, body, contentType })).body as { metadata: { uid: string } }
}

/** The message of the refusal, without its beginning that names the object. */
async function refusal(as: UserInfo, method: Method, path: string, body?: unknown): Promise<string> {
  try {
    await call(as, method, path, body)
    return 'allowed'
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return `${error.code} ${error.message.replace(/^.*? is forbidden: /, '')}`
  }
}

const uids: Record<string, string> = {}
const pod = (name: string, spec: object, metadata: object = {}) => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
})
const everything = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]

before(async () => {
  api = await startServerWithFlags(['--enable-admission-plugins=NodeRestriction'])
  const managed = 'clusterroles clusterrolebindings roles rolebindings'.split(' ')
  await call(admin, 'POST', `${rbac}/clusterroles`, {
    metadata: { name: 'manager' },
    rules: [
      { verbs: ['create', 'update', 'patch', 'get', 'list'], apiGroups: [group], resources: managed },
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] },
      { verbs: ['bind'], apiGroups: [group], resources: ['clusterroles'], resourceNames: ['view'] },
    ],
  })
  const subjects = [{ kind: 'User', apiGroup: group, name: 'mallory' }]
  await call(admin, 'POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'mallory' },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'manager' },
    subjects,
  })
  for (const name of ['one', 'two']) uids[name] = (await call(admin, 'POST', '/api/v1/nodes', { metadata: { name } })).metadata.uid
  for (const name of ['default', 'other']) await call(admin, 'POST', `${inDefault}/serviceaccounts`, { metadata: { name } })
  for (const [name, nodeName] of [
    ['mine', 'one'],
    ['theirs', 'two'],
  ] as const) {
    uids[name] = (await call(admin, 'POST', `${inDefault}/pods`, pod(name, { nodeName }))).metadata.uid
  }
  await call(admin, 'POST', `${inDefault}/persistentvolumeclaims`, {
    metadata: { name: 'claim' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
})
after(() => api.close())

const held = 'user "mallory" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
const allResources = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
const binding = (role: string, name = 'b') => ({
  metadata: { name },
  roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'User', apiGroup: group, name: 'mallory' }],
})
const bindings = `${rbac}/namespaces/default/rolebindings`

const escalations: readonly (readonly [name: string, method: Method, path: string, body: object, want: string])[] = [
  ['a role with everything', 'POST', `${rbac}/clusterroles`, { metadata: { name: 'god' }, rules: everything }, `403 ${held}${allResources}`],
  [
    'more verbs than held, named together',
    'POST',
    `${rbac}/clusterroles`,
    { metadata: { name: 'more' }, rules: [{ verbs: ['get', 'list', 'delete', 'watch'], apiGroups: [''], resources: ['pods', 'secrets'] }] },
    `403 ${held}{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "delete" "watch"]}`,
  ],
  [
    'a role that gathers others',
    'POST',
    `${rbac}/clusterroles`,
    { metadata: { name: 'sum' }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }, rules: [] },
    '403 must have cluster-admin privileges to use the aggregationRule',
  ],
  [
    'a role that others gather',
    'POST',
    `${rbac}/clusterroles`,
    { metadata: { name: 'part', labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } }, rules: everything },
    `403 ${held}${allResources}`,
  ],
  [
    'the strongest role, everywhere',
    'POST',
    `${rbac}/clusterrolebindings`,
    binding('cluster-admin', 'c'),
    `403 ${held}${allResources}\n{NonResourceURLs:["*"], Verbs:["*"]}`,
  ],
  ['a role that may be bound, somewhere', 'POST', bindings, binding('view', 'v'), 'allowed'],
  ['a role that does not exist', 'POST', bindings, binding('none', 'n'), '404 clusterroles.rbac.authorization.k8s.io "none" not found'],
  ['a role that is held', 'POST', bindings, binding('manager', 'm'), 'allowed'],
]
for (const [name, method, path, body, want] of escalations) {
  test(`AUZ-03 ${name}`, async () => assert.equal(await refusal(mallory, method, path, body), want))
}

const elsewhere: readonly (readonly [name: string, method: Method, path: string, body: object | undefined, want: RegExp])[] = [
  [
    'a webhook that admits',
    'POST',
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
    { metadata: { name: 'w' } },
    /^403 User "mallory" cannot create/,
  ],
  ['a debugging container', 'PATCH', `${inDefault}/pods/mine/ephemeralcontainers`, {}, /^403 .*cannot patch resource "pods\/ephemeralcontainers"/],
  ['a token of an account', 'POST', `${inDefault}/serviceaccounts/other/token`, {}, /^403 .*cannot create resource "serviceaccounts\/token"/],
  [
    'approving a certificate',
    'PUT',
    '/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval',
    {},
    /^403 .*cannot update resource "certificatesigningrequests\/approval"/,
  ],
  [
    'the secrets of the system',
    'GET',
    '/api/v1/namespaces/kube-system/secrets',
    undefined,
    /^403 .*cannot list resource "secrets" in API group "" in the namespace "kube-system"$/,
  ],
]
for (const [name, method, path, body, want] of elsewhere) {
  test(`SDR-01 ${name}`, async () => assert.match(await refusal(mallory, method, path, body), want))
}

const mirror = (spec: object = {}, owner: object = {}) => ({
  metadata: {
    name: 'mirror',
    annotations: { 'kubernetes.io/config.mirror': 'x' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'one', uid: uids.one, controller: true, ...owner }],
  },
  spec: { nodeName: 'one', containers: [{ name: 'c', image: 'i' }], ...spec },
})
const token = (boundPod: string, audiences?: string[], uid?: string) => ({
  spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: boundPod, uid: uid ?? uids[boundPod] }, ...(audiences ? { audiences } : {}) },
})
const tokens = `${inDefault}/serviceaccounts/default/token`
const slices = '/apis/resource.k8s.io/v1/resourceslices'
const slice = (name: string, nodeName: string) => ({
  metadata: { name },
  spec: { driver: 'd.example.org', nodeName, pool: { name: 'p', generation: 1, resourceSliceCount: 1 } },
})

const asNode: readonly (readonly [name: string, method: Method, path: string, body: () => object | undefined, want: string])[] = [
  ['another node', 'PATCH', '/api/v1/nodes/two', () => ({ metadata: { labels: { a: 'b' } } }), '403 node "one" is not allowed to modify node "two"'],
  [
    'its taints',
    'PATCH',
    '/api/v1/nodes/one',
    () => ({ spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
    '403 node "one" is not allowed to modify taints',
  ],
  [
    'its restricted labels',
    'PATCH',
    '/api/v1/nodes/one',
    () => ({ metadata: { labels: { 'x.node-restriction.kubernetes.io/a': '', 'node-role.kubernetes.io/control-plane': '' } } }),
    '403 is not allowed to modify labels: node-role.kubernetes.io/control-plane, x.node-restriction.kubernetes.io/a',
  ],
  [
    'its owners',
    'PATCH',
    '/api/v1/nodes/one',
    () => ({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }] } }),
    '403 node "one" is not allowed to modify ownerReferences',
  ],
  ['its own labels', 'PATCH', '/api/v1/nodes/one', () => ({ metadata: { labels: { 'kubelet.kubernetes.io/a': 'b', own: 'c' } } }), 'allowed'],
  [
    'deleting itself',
    'DELETE',
    '/api/v1/nodes/one',
    () => undefined,
    '403 User "system:node:one" cannot delete resource "nodes" in API group "" at the cluster scope',
  ],
  [
    'a pod that is no mirror',
    'POST',
    `${inDefault}/pods`,
    () => pod('p', { nodeName: 'one' }),
    '403 pod does not have "kubernetes.io/config.mirror" annotation, node "one" can only create mirror pods',
  ],
  [
    'a mirror pod elsewhere',
    'POST',
    `${inDefault}/pods`,
    () => mirror({ nodeName: 'two' }),
    '403 node "one" can only create pods with spec.nodeName set to itself',
  ],
  [
    'a mirror pod of others',
    'POST',
    `${inDefault}/pods`,
    () => mirror({}, { name: 'two' }),
    '403 node "one" can only create pods with an owner reference set to itself',
  ],
  [
    'a mirror pod of no controller',
    'POST',
    `${inDefault}/pods`,
    () => mirror({}, { controller: false }),
    '403 node "one" can only create pods with a controller owner reference set to itself',
  ],
  ['a mirror pod with the uid of an earlier node', 'POST', `${inDefault}/pods`, () => mirror({}, { uid: 'u' }), `403 node one UID mismatch: expected u got `],
  ['a mirror pod with an account', 'POST', `${inDefault}/pods`, () => mirror({ serviceAccountName: 'other' }), '403 '],
  ['a mirror pod with a secret', 'POST', `${inDefault}/pods`, () => mirror({ volumes: [{ name: 'v', secret: { secretName: 's' } }] }), '403 '],
  [
    'a mirror pod with a claim',
    'POST',
    `${inDefault}/pods`,
    () => mirror({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'claim' } }] }),
    '403 node "one" can not create pods that reference persistentvolumeclaims',
  ],
  [
    'a mirror pod with a projected token',
    'POST',
    `${inDefault}/pods`,
    () => mirror({ volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] }),
    '403 a mirror pod may not use ServiceAccountToken volume projections',
  ],
  ['a mirror pod', 'POST', `${inDefault}/pods`, () => mirror(), 'allowed'],
  ['deleting a pod elsewhere', 'DELETE', `${inDefault}/pods/theirs`, () => undefined, '403 node "one" can only delete pods with spec.nodeName set to itself'],
  [
    'the status of a pod elsewhere',
    'PATCH',
    `${inDefault}/pods/theirs/status`,
    () => ({ status: { phase: 'Failed' } }),
    '403 node "one" can only update pod status for pods with spec.nodeName set to itself',
  ],
  [
    'labels through a status',
    'PATCH',
    `${inDefault}/pods/mine/status`,
    () => ({ metadata: { labels: { a: 'b' } } }),
    '403 node "one" cannot update labels through pod status',
  ],
  ['the status of its pod', 'PATCH', `${inDefault}/pods/mine/status`, () => ({ status: { message: 'x' } }), 'allowed'],
  [
    'evicting a pod elsewhere',
    'POST',
    `${inDefault}/pods/theirs/eviction`,
    () => ({ metadata: { name: 'theirs' } }),
    '403 node one can only evict pods with spec.nodeName set to itself',
  ],
  [
    'a claim of others',
    'PATCH',
    `${inDefault}/persistentvolumeclaims/claim/status`,
    () => ({ status: {} }),
    '403 User "system:node:one" cannot patch resource "persistentvolumeclaims/status" in API group "" in the namespace "default": no relationship found between node \'one\' and this object',
  ],
  ['a token for a pod elsewhere', 'POST', tokens, () => token('theirs'), '403 node requested token bound to a pod scheduled on a different node'],
  [
    'a token for an earlier pod of the same name',
    'POST',
    tokens,
    () => token('mine', undefined, 'u'),
    '403 the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated',
  ],
  ['a token for no pod', 'POST', tokens, () => ({ spec: {} }), '403 node requested token not bound to a pod'],
  ['a token for two audiences', 'POST', tokens, () => token('mine', ['a', 'b']), '403 node may only request 0 or 1 audiences'],
  [
    'a token for an audience of its choice',
    'POST',
    tokens,
    () => token('mine', ['vault']),
    '403 audience "vault" not found in pod spec volume, system:node:one is not authorized to request tokens for this audience',
  ],
  ["a token that its pod's volume wants", 'POST', tokens, () => token('mine'), 'allowed'],
  [
    'a token of an account that no pod of it has',
    'POST',
    `${inDefault}/serviceaccounts/other/token`,
    () => token('mine'),
    '403 User "system:node:one" cannot create resource "serviceaccounts/token" in API group "" in the namespace "default": no relationship found between node \'one\' and this object',
  ],
  [
    'a lease in its namespace',
    'POST',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
    () => ({ metadata: { name: 'two' } }),
    '403 can only access node lease with the same name as the requesting node',
  ],
  [
    'a CSINode of others',
    'POST',
    '/apis/storage.k8s.io/v1/csinodes',
    () => ({ metadata: { name: 'two' }, spec: { drivers: [] } }),
    '403 can only access CSINode with the same name as the requesting node',
  ],
  ['devices of others', 'POST', slices, () => slice('s', 'two'), '403 can only create ResourceSlice with the same NodeName as the requesting node'],
  ['its devices', 'POST', slices, () => slice('s', 'one'), 'allowed'],
]
test('AUZ-03 a label that makes others gather a strong role is a grant, too', async () => {
  const label = { metadata: { labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } } }
  const path = `${rbac}/clusterroles/cluster-admin`
  assert.equal(await refusal(mallory, 'PATCH', path, label), `403 ${held}${allResources}\n{NonResourceURLs:["*"], Verbs:["*"]}`)
  assert.equal(await refusal(mallory, 'PATCH', path, { metadata: { finalizers: ['example.org/x'] } }), 'allowed')
})

test('AUZ-04 what a node may do with its identity', async (context) => {
  for (const [name, method, path, body, want] of asNode) {
    await context.test(name, async () => {
      const got = await refusal(node, method, path, body())
      if (want.endsWith(' ')) assert.ok(got.startsWith(want), got)
      else assert.equal(got, want)
    })
  }
})

test('AUZ-04 an audience may be granted', async () => {
  await call(admin, 'POST', `${rbac}/clusterroles`, {
    metadata: { name: 'audience' },
    rules: [{ verbs: ['request-serviceaccounts-token-audience'], apiGroups: [''], resources: ['vault'], resourceNames: ['default'] }],
  })
  const subjects = [{ kind: 'Group', apiGroup: group, name: 'system:nodes' }]
  await call(admin, 'POST', `${rbac}/clusterrolebindings`, { ...binding('audience', 'audience'), subjects })
  assert.equal(await refusal(node, 'POST', tokens, token('mine', ['vault'])), 'allowed')
})

test('AUZ-04 a node asks the signers of kubelets only for certificates in its own name', async () => {
  const ask = (subject: string, signerName: string, usages: readonly string[]) => {
    const options = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null', '-subj', subject]
    const request = execFileSync('openssl', options, { stdio: ['ignore', 'pipe', 'ignore'] }).toString('base64')
    const body = { metadata: { generateName: 'r-' }, spec: { request, signerName, usages } }
    return refusal(node, 'POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', body)
  }
  const client = 'kubernetes.io/kube-apiserver-client-kubelet'
  const usages = ['digital signature', 'client auth']
  assert.equal(await ask('/O=system:nodes/CN=system:node:two', client, usages), '403 can only create a node CSR with CN=system:node:one')
  assert.equal(await ask('/O=system:nodes/CN=system:node:one', client, usages), 'allowed')
  assert.equal(await ask('/CN=anything', 'example.org/signer', usages), 'allowed')
  const masters = await ask('/O=system:masters/CN=root', 'kubernetes.io/kube-apiserver-client', usages)
  assert.match(masters, /^403 use of kubernetes.io\/kube-apiserver-client signer with system:masters group is not allowed$/)
})
