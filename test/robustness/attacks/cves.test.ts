/**
 * Holes that Kubernetes' API server had (docs/cves.md), each tried over TLS by a user with just the rights that it took. Attacks on memory and time
 * are in bombs.test.ts and its neighbours.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { definition, establish, version } from '../../integration/crd/support.ts'
import { until } from '../../support/until.ts'
import { type Json, RawAnswer, startWebhookServer, type WebhookServer } from '../../support/webhookServer.ts'
import { startTokenServer, type TokenServer } from './tokenServer.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const namespaced = '/api/v1/namespaces/default'
const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
const groupPath = '/apis/example.com/v1'

let server: TokenServer
let hooks: WebhookServer
before(async () => {
  const users = { mallory: ['dev'], editor: ['dev'], manager: ['dev'], 'system:node:one': ['system:nodes'] }
  const plugins = 'NodeRestriction,DenyServiceExternalIPs'
  server = await startTokenServer(users, ['--authorization-mode=Node,RBAC', `--enable-admission-plugins=${plugins}`])
  hooks = await startWebhookServer()
  // The roles that edit and admin gather, since no controller gathers them here.
  const gathered = { editor: ['edit', 'view'], manager: ['admin', 'edit', 'view'] }
  for (const [user, roles] of Object.entries(gathered)) for (const role of roles) await bind(user, 'ClusterRole', `system:aggregate-to-${role}`)
})
after(async () => {
  await hooks.close()
  await server.close()
})

const admin = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => server.json('admin', method, path, body, headers)

async function bind(user: string, kind: 'Role' | 'ClusterRole', name: string): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const body = { metadata: { name: `${user}-${name}` }, roleRef: { apiGroup, kind, name }, subjects: [{ apiGroup, kind: 'User', name: user }] }
  await admin('POST', `${rbac}/namespaces/default/rolebindings`, body)
}

test('AUZ-01 CVE-2019-11247 a role of a namespace does not reach a custom resource of the cluster', async () => {
  const schema = { type: 'object', properties: { spec: free } }
  await establish(server.api.client, definition('worlds', 'World', [version('v1', schema)], { scope: 'Cluster' }))
  await admin('POST', `${groupPath}/worlds`, { apiVersion: 'example.com/v1', kind: 'World', metadata: { name: 'earth' } })
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]
  await admin('POST', `${rbac}/namespaces/default/roles`, { metadata: { name: 'all' }, rules })
  await bind('mallory', 'Role', 'all')
  assert.equal(await server.statusOf('mallory', 'GET', `${namespaced}/configmaps`), 200, 'the role counts in its namespace')
  for (const [method, path, body] of [
    ['GET', `${groupPath}/namespaces/default/worlds/earth`],
    ['GET', `${groupPath}/namespaces/default/worlds`],
    ['GET', `${groupPath}/namespaces/default/worlds?watch=true&timeoutSeconds=1`],
    ['DELETE', `${groupPath}/namespaces/default/worlds/earth`],
    ['DELETE', `${groupPath}/namespaces/default/worlds`],
    ['POST', `${groupPath}/namespaces/default/worlds`, { apiVersion: 'example.com/v1', kind: 'World', metadata: { name: 'moon', namespace: 'default' } }],
    ['PUT', `${groupPath}/namespaces/default/worlds/earth`, { apiVersion: 'example.com/v1', kind: 'World', metadata: { name: 'earth' } }],
    ['GET', `${groupPath}/worlds/earth`],
  ] as const) {
    const status = await server.statusOf('mallory', method, path, body)
    assert.ok(status === 403 || status === 404, `${method} ${path}: ${status}`)
  }
  assert.equal((await admin('GET', `${groupPath}/worlds`)).items.length, 1)
})

test('CRD-01 CVE-2022-3162 who lists one custom resource sees no other of its group', async () => {
  const schema = { type: 'object', properties: { spec: free } }
  for (const [plural, kind] of [
    ['apples', 'Apple'],
    ['applesauces', 'AppleSauce'],
  ] as const) {
    await establish(server.api.client, definition(plural, kind, [version('v1', schema)]))
    for (const namespace of ['default', 'kube-system'])
      await admin('POST', `${groupPath}/namespaces/${namespace}/${plural}`, { apiVersion: 'example.com/v1', kind, metadata: { name: plural } })
  }
  const rules = [{ apiGroups: ['example.com'], resources: ['apples'], verbs: ['list', 'watch', 'get'] }]
  await admin('POST', `${rbac}/clusterroles`, { metadata: { name: 'apples' }, rules })
  const apiGroup = 'rbac.authorization.k8s.io'
  const subjects = [{ apiGroup, kind: 'User', name: 'editor' }]
  await admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name: 'apples' }, roleRef: { apiGroup, kind: 'ClusterRole', name: 'apples' }, subjects })
  const kinds = (list: Json) => [...new Set(list.items.map(({ kind }: { kind: string }) => kind))]
  assert.deepEqual(kinds(await server.json('editor', 'GET', `${groupPath}/apples`)), ['Apple'])
  const events = (await server.send('editor', 'GET', `${groupPath}/apples?watch=true&timeoutSeconds=1`)).body.toString()
  assert.match(events, /"kind":"Apple"/)
  assert.doesNotMatch(events, /AppleSauce/)
  for (const path of ['apples/..%2Fapplesauces', 'apples/../applesauces', 'applesauces', 'apples%2F..%2Fapplesauces', 'apples/..%2Fapplesauces%2Fdefault'])
    assert.ok([400, 403, 404].includes(await server.statusOf('editor', 'GET', `${groupPath}/${path}`)), path)
  for (const namespace of ['..%2Fapplesauces', '..%2Fapplesauces%2Fdefault', 'default%2F..%2F..%2Fapplesauces'])
    assert.ok([400, 403, 404].includes(await server.statusOf('editor', 'GET', `${groupPath}/namespaces/${namespace}/apples`)), namespace)
  const broken = Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: 1, start: '../applesauces/default' })).toString('base64url')
  const next = await server.send('editor', 'GET', `${groupPath}/apples?limit=10&continue=${broken}`)
  assert.equal(next.status, 400, next.body.toString())
})

test('ADM-03 CVE-2021-25735 a webhook gets the stored node as oldObject, whatever the update contains', async () => {
  hooks.on('/nodes', (request) => ({
    uid: request.uid,
    allowed: request.oldObject?.metadata.labels?.sealed !== 'yes' || request.object.metadata.labels?.sealed === 'yes',
  }))
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['nodes', 'nodes/status'], operations: ['UPDATE'] }]
  const webhook = { name: 'nodes.example.com', rules, clientConfig: hooks.client('/nodes'), sideEffects: 'None', admissionReviewVersions: ['v1'] }
  await admin('POST', '/api/v1/nodes', { metadata: { name: 'watched', labels: { sealed: 'yes' }, annotations: { a: '1' } } })
  const hook = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
  await admin('POST', hook, { metadata: { name: 'nodes' }, webhooks: [webhook] })
  const path = '/api/v1/nodes/watched'
  const patch = (target: string, body: unknown, type = 'application/merge-patch+json') =>
    server.statusOf('admin', 'PATCH', target, body, { 'content-type': type })
  await until('the webhook refuses', async () => (await patch(`${path}?dryRun=All`, { metadata: { labels: { sealed: 'no' } } })) === 400)
  const whole = await admin('GET', path)
  const opened = { ...whole, metadata: { ...whole.metadata, labels: {}, managedFields: [], uid: undefined, resourceVersion: undefined } }
  assert.equal(await server.statusOf('admin', 'PUT', path, opened), 400)
  assert.equal(await patch(path, [{ op: 'remove', path: '/metadata/labels/sealed' }], 'application/json-patch+json'), 400)
  assert.equal(await patch(path, { metadata: { labels: { $patch: 'replace' } } }, 'application/strategic-merge-patch+json'), 400)
  assert.equal(await patch(`${path}/status`, { metadata: { labels: { sealed: null } } }), 400)
  const seen = hooks
    .askedAt('/nodes')
    .map(({ oldObject }: Json) => [oldObject.metadata.labels.sealed, oldObject.metadata.annotations.a, typeof oldObject.metadata.uid])
  assert.ok(seen.length >= 4)
  for (const one of seen) assert.deepEqual(one, ['yes', '1', 'string'])
  await admin('DELETE', `${hook}/nodes`)
})

test('ADM-03 CVE-2020-8561 a webhook that redirects sends the server nowhere', async () => {
  const elsewhere = await startWebhookServer()
  try {
    elsewhere.on('/secret', () => ({ allowed: true }))
    for (const status of [301, 302, 303, 307, 308])
      hooks.on(`/to-${status}`, () => new RawAnswer(status, 'see there', { location: `https://127.0.0.1:${elsewhere.port}/secret` }))
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }]
    const hook = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    for (const status of [301, 302, 303, 307, 308]) {
      const webhook = { name: 'r.example.com', rules, clientConfig: hooks.client(`/to-${status}`), sideEffects: 'None', admissionReviewVersions: ['v1'] }
      await admin('POST', hook, { metadata: { name: 'redirects' }, webhooks: [webhook] })
      let refused: Buffer | undefined
      await until(`the webhook of ${status} counts`, async () => {
        const answer = await server.send('admin', 'POST', `${namespaced}/configmaps?dryRun=All`, { metadata: { name: 'a' } })
        refused = answer.body
        return answer.status === 500
      })
      assert.match(String(refused), /failed calling webhook/)
      await admin('DELETE', `${hook}/redirects`)
      await until(
        'it is gone',
        async () => (await server.send('admin', 'POST', `${namespaced}/configmaps?dryRun=All`, { metadata: { name: 'a' } })).status === 201,
      )
    }
    assert.equal(elsewhere.asked.length, 0)
    assert.equal(elsewhere.connections(), 0)
  } finally {
    await elsewhere.close()
  }
})

test('SVC-10 CVE-2021-25737 an EndpointSlice leads to no address of the node itself', async () => {
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  const addresses = { IPv4: ['127.0.0.1', '127.255.1.1', '169.254.169.254', '224.0.0.1', '0.0.0.0'], IPv6: ['::1', 'fe80::1', 'ff02::1', '::'] }
  for (const [addressType, list] of Object.entries(addresses))
    for (const address of list) {
      const body = { metadata: { generateName: 's-' }, addressType, endpoints: [{ addresses: [address] }], ports: [{ port: 80 }] }
      assert.equal(await server.statusOf('admin', 'POST', slices, body), 422, address)
      const old = { metadata: { generateName: 'e-' }, subsets: [{ addresses: [{ ip: address }], ports: [{ port: 80 }] }] }
      assert.equal(await server.statusOf('admin', 'POST', `${namespaced}/endpoints`, old), 422, address)
    }
})

test('AUZ-02 CVE-2021-25740 who edits or administers a namespace writes no endpoints', async () => {
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  const endpoints = { metadata: { name: 'e' }, subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }] }
  const slice = { metadata: { name: 's' }, addressType: 'IPv4', endpoints: [{ addresses: ['10.1.2.3'] }], ports: [{ port: 80 }] }
  await admin('POST', `${namespaced}/endpoints`, endpoints)
  await admin('POST', slices, slice)
  for (const user of ['editor', 'manager']) {
    for (const [collection, name, body] of [
      [`${namespaced}/endpoints`, 'e', endpoints],
      [slices, 's', slice],
    ] as const) {
      assert.equal(await server.statusOf(user, 'GET', `${collection}/${name}`), 200)
      assert.equal(await server.statusOf(user, 'POST', collection, body), 403)
      assert.equal(await server.statusOf(user, 'PUT', `${collection}/${name}`, body), 403)
      assert.equal(await server.statusOf(user, 'PATCH', `${collection}/${name}`, {}, { 'content-type': 'application/merge-patch+json' }), 403)
      assert.equal(await server.statusOf(user, 'DELETE', `${collection}/${name}`), 403)
    }
  }
})

test('ADM-11 CVE-2020-8554 DenyServiceExternalIPs refuses a Service with external addresses', async () => {
  const body = { metadata: { name: 'taken' }, spec: { ports: [{ port: 443 }], externalIPs: ['203.0.113.7'] } }
  assert.equal(await server.statusOf('editor', 'POST', `${namespaced}/services`, body), 403)
  const plain = { ...body, spec: { ports: body.spec.ports } }
  assert.equal(await server.statusOf('editor', 'POST', `${namespaced}/services`, plain), 201)
  const patch = { spec: { externalIPs: ['203.0.113.7'] } }
  assert.equal(await server.statusOf('editor', 'PATCH', `${namespaced}/services/taken`, patch, { 'content-type': 'application/merge-patch+json' }), 403)
  const status = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } } }
  for (const user of ['editor', 'manager'])
    assert.equal(await server.statusOf(user, 'PATCH', `${namespaced}/services/taken/status`, status, { 'content-type': 'application/merge-patch+json' }), 403)
})

test('AUN-08 CVE-2023-2728 CVE-2024-3177 a strict account’s pods use no other secret, by no field', async () => {
  const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' }
  await admin('POST', `${namespaced}/serviceaccounts`, { metadata: { name: 'strict', annotations }, secrets: [{ name: 'mine' }] })
  for (const name of ['mine', 'other']) await admin('POST', `${namespaced}/secrets`, { metadata: { name } })
  const keyRef = (name: string) => ({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name, key: 'k' } } }] })
  const envFrom = (name: string) => ({ envFrom: [{ secretRef: { name } }] })
  const container = (more: object = {}) => ({ name: 'c', image: 'i', ...more })
  const pod = (name: string, spec: object) => ({ metadata: { name }, spec: { serviceAccountName: 'strict', automountServiceAccountToken: false, ...spec } })
  const ways: readonly (readonly [string, (secret: string) => object])[] = [
    ['key', (secret) => ({ containers: [container(keyRef(secret))] })],
    ['all', (secret) => ({ containers: [container(envFrom(secret))] })],
    ['init-key', (secret) => ({ containers: [container()], initContainers: [{ ...container(keyRef(secret)), name: 'i' }] })],
    ['init-all', (secret) => ({ containers: [container()], initContainers: [{ ...container(envFrom(secret)), name: 'i' }] })],
    ['volume', (secret) => ({ containers: [container()], volumes: [{ name: 'v', secret: { secretName: secret } }] })],
    ['pull', (secret) => ({ containers: [container()], imagePullSecrets: [{ name: secret }] })],
  ]
  for (const [name, spec] of ways) {
    assert.equal(await server.statusOf('editor', 'POST', `${namespaced}/pods`, pod(name, spec('other'))), 403, name)
    if (name !== 'pull') assert.equal(await server.statusOf('editor', 'POST', `${namespaced}/pods`, pod(name, spec('mine'))), 201, name)
  }
  await admin('POST', `${namespaced}/pods/key/binding`, { target: { kind: 'Node', name: 'watched' } })
  for (const [index, more] of [keyRef('other'), envFrom('other')].entries()) {
    const ephemeral = { spec: { ephemeralContainers: [{ name: `d${index}`, image: 'i', ...more }] } }
    const path = `${namespaced}/pods/key/ephemeralcontainers`
    const type = { 'content-type': 'application/strategic-merge-patch+json' }
    const refused = await server.send('admin', 'PATCH', path, ephemeral, type)
    assert.match(refused.body.toString(), /is not allowed because service account strict does not reference that secret/)
    assert.ok(refused.status >= 400)
    const harmless = { spec: { ephemeralContainers: [{ name: `e${index}`, image: 'i' }] } }
    assert.equal(await server.statusOf('admin', 'PATCH', path, harmless, type), 200)
  }
})

test('AUZ-04 CVE-2025-5187 CVE-2025-4563 a node neither deletes itself by an owner nor takes devices by a mirror pod', async () => {
  const node = 'system:node:one'
  const { metadata } = await server.json(node, 'POST', '/api/v1/nodes', { metadata: { name: 'one' } })
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Namespace', name: 'gone', uid: 'none' }]
  for (const target of ['/api/v1/nodes/one', '/api/v1/nodes/one/status']) {
    for (const type of ['application/merge-patch+json', 'application/strategic-merge-patch+json'])
      assert.equal(await server.statusOf(node, 'PATCH', target, { metadata: { ownerReferences } }, { 'content-type': type }), 403, target)
    const operations = [{ op: 'add', path: '/metadata/ownerReferences', value: ownerReferences }]
    assert.equal(await server.statusOf(node, 'PATCH', target, operations, { 'content-type': 'application/json-patch+json' }), 403)
    const applied = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one', ownerReferences } }
    assert.equal(await server.statusOf(node, 'PATCH', `${target}?fieldManager=n&force=true`, applied, { 'content-type': 'application/apply-patch+yaml' }), 403)
    assert.equal(await server.statusOf(node, 'PUT', target, { metadata: { ...metadata, ownerReferences, resourceVersion: undefined } }), 403)
  }
  assert.equal(await server.statusOf(node, 'DELETE', '/api/v1/nodes/one'), 403)
  assert.equal((await admin('GET', '/api/v1/nodes/one')).metadata.ownerReferences, undefined)

  const owner = { apiVersion: 'v1', kind: 'Node', name: 'one', uid: metadata.uid, controller: true }
  const mirror = (name: string, spec: object, status?: object) => ({
    metadata: { name, annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] },
    spec: { nodeName: 'one', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }], ...spec },
    ...(status ? { status } : {}),
  })
  const pods = `${namespaced}/pods`
  assert.equal(await server.statusOf(node, 'POST', pods, mirror('plain', {})), 201)
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'theirs' }]
  assert.equal(await server.statusOf(node, 'POST', pods, mirror('devices', { resourceClaims })), 403)
  const told = {
    resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'theirs' }],
    extendedResourceClaimStatus: { resourceClaimName: 'theirs', requestMappings: [] },
  }
  const created = await server.send(node, 'POST', pods, mirror('told', {}, told))
  assert.ok(
    created.status === 403 || (created.status === 201 && JSON.parse(created.body.toString()).status?.resourceClaimStatuses === undefined),
    created.body.toString(),
  )
  const statusPatch = await server.statusOf(node, 'PATCH', `${pods}/plain/status`, { status: told }, { 'content-type': 'application/merge-patch+json' })
  assert.ok(statusPatch === 403 || statusPatch === 422, String(statusPatch))
})

test('API-17 CVE-2024-0793 an autoscaler whose annotations are broken is an object like any other', async () => {
  const v1 = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers'
  const broken = [
    '',
    'null',
    '{',
    '[]',
    '[null]',
    '[1]',
    '{"a":1}',
    '[{"type":"Resource"}]',
    '[{"type":"Object","object":null}]',
    '[{"type":"Pods","pods":{"metricName":1}}]',
    `[${'['.repeat(5_000)}`,
  ]
  const spec = { maxReplicas: 2, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } }
  for (const [index, text] of broken.entries()) {
    for (const key of ['metrics', 'current-metrics', 'behavior', 'conditions']) {
      const name = `h${index}-${key}`
      const body = { metadata: { name, annotations: { [`autoscaling.alpha.kubernetes.io/${key}`]: text } }, spec }
      const status = await server.statusOf('editor', 'POST', v1, body)
      if (key === 'metrics' && /Resource|Object/.test(text)) {
        // The annotation parses as an empty metric, which validation refuses.
        assert.equal(status, 422, text)
        continue
      }
      assert.equal(status, 201, `${key}: ${text.slice(0, 40)}`)
      assert.equal(await server.statusOf('editor', 'GET', `/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/${name}`), 200)
      assert.equal(await server.statusOf('editor', 'GET', `${v1}/${name}`), 200)
    }
  }
  for (const list of ['v1', 'v2'])
    assert.equal(await server.statusOf('editor', 'GET', `/apis/autoscaling/${list}/namespaces/default/horizontalpodautoscalers`), 200)
})

test('API-16 CVE-2021-3121 protobuf that ends early, or announces more bytes than it has, is refused', { timeout: 60_000 }, async () => {
  const type = 'application/vnd.kubernetes.protobuf'
  const pod = {
    metadata: { name: 'encoded', labels: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 1 }] }], terminationGracePeriodSeconds: 5 },
  }
  await admin('POST', `${namespaced}/pods`, pod)
  const body = withoutVersion((await server.send('admin', 'GET', `${namespaced}/pods/encoded`, undefined, { accept: type })).body)
  const post = async (bytes: Buffer) => {
    const answer = await server.send('editor', 'POST', `${namespaced}/pods?dryRun=All`, bytes, { 'content-type': type })
    // Upstream's refusal of a version on create is an error without a reason, which is 500.
    assert.ok(answer.status < 500 || /resourceVersion should not be set/.test(answer.body.toString()), answer.body.toString())
    return answer.status
  }
  await admin('DELETE', `${namespaced}/pods/encoded?gracePeriodSeconds=0`)
  assert.equal(await post(body), 201, 'whole')
  for (let length = 0; length < body.length; length += 3) await post(body.subarray(0, length))
  for (let at = 4; at < body.length; at += 7) {
    for (const byte of [0xff, 0x80, 0x7f]) {
      const changed = Buffer.from(body)
      changed[at] = byte
      await post(changed)
    }
  }
})

/** A resource version may not be given on create: its field gets a number that is unknown and skipped. */
function withoutVersion(body: Buffer): Buffer {
  const copy = Buffer.from(body)
  const at = /\*\$[0-9a-f-]{36}2/.exec(copy.toString('latin1'))
  assert.ok(at)
  copy[at.index + at[0].length - 1] = 0x7a
  return copy
}

test('API-11 CVE-2019-1002100 a JSON patch of too many operations, or whose copies multiply, is refused', { timeout: 60_000 }, async () => {
  await admin('POST', `${namespaced}/configmaps`, { metadata: { name: 'patched', labels: { a: 'a' } }, data: { a: 'x'.repeat(1_000) } })
  const path = `${namespaced}/configmaps/patched`
  const type = { 'content-type': 'application/json-patch+json' }
  const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/data/a', value: 'a' }))
  assert.equal(await server.statusOf('editor', 'PATCH', path, many, type), 413)
  const copies = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '/data', path: `/data/c${index}` }))
  const started = performance.now()
  const status = await server.statusOf('editor', 'PATCH', path, copies, type)
  assert.ok(status >= 400, String(status))
  assert.ok(performance.now() - started < 5_000)
})

test('API-28 CVE-2020-8552 what clients call themselves and ask for makes no more series of metrics', { timeout: 60_000 }, async () => {
  const lines = async () => (await server.send('admin', 'GET', '/metrics')).body.toString().split('\n').length
  const round = async (from: number) => {
    for (let index = from; index < from + 150; index++) {
      const headers = { 'user-agent': `agent-${index}`, accept: `application/x-${index}`, 'content-type': `application/y-${index}` }
      await server.send('editor', 'GET', `${namespaced}/pods/p-${index}?a${index}=b`, undefined, headers)
      await server.send('editor', 'GET', `/apis/group-${index}/v${index}/kinds-${index}`, undefined, headers)
      await server.send('editor', 'POST', `${namespaced}/pods/p-${index}/sub-${index}`, '{}', headers)
      await server.send(`token-${index}`, 'GET', `/path-${index}`, undefined, headers)
    }
  }
  await round(0)
  const before = await lines()
  await round(1_000)
  assert.ok((await lines()) - before <= 20, `${before} lines became ${await lines()}`)
})

test('ADM-11 CVE-2023-2727 the image policy is asked about debugging containers, too', { timeout: 60_000 }, async () => {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-image-policy-'))
  hooks.on('/images', () => {
    const { spec } = hooks.asked.at(-1)?.review ?? {}
    const allowed = spec.containers.every(({ image }: { image: string }) => !image.includes('forbidden'))
    return new RawAnswer(200, JSON.stringify({ apiVersion: 'imagepolicy.k8s.io/v1alpha1', kind: 'ImageReview', status: { allowed } }), {
      'content-type': 'application/json',
    })
  })
  const { url, caBundle } = hooks.client('/images')
  const clusters = [{ name: 'c', cluster: { server: url, 'certificate-authority-data': caBundle } }]
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters,
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  fs.writeFileSync(path.join(folder, 'kubeconfig'), JSON.stringify(kubeconfig))
  const imagePolicy = { kubeConfigFile: path.join(folder, 'kubeconfig'), allowTTL: 5, denyTTL: 5, retryBackoff: 500, defaultAllow: false }
  const plugins = [{ name: 'ImagePolicyWebhook', configuration: { imagePolicy } }]
  fs.writeFileSync(path.join(folder, 'admission.yaml'), JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins }))
  const strict = await startTokenServer({}, ['--enable-admission-plugins=ImagePolicyWebhook', `--admission-control-config-file=${folder}/admission.yaml`])
  try {
    const pod = (name: string, image: string) => ({ metadata: { name }, spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image }] } })
    assert.equal(await strict.statusOf('admin', 'POST', `${namespaced}/pods`, pod('bad', 'forbidden')), 403)
    assert.equal(await strict.statusOf('admin', 'POST', `${namespaced}/pods`, pod('good', 'fine')), 201)
    for (const [image, status] of [
      ['forbidden', 403],
      ['fine', 200],
    ] as const) {
      const debug = { spec: { ephemeralContainers: [{ name: image, image }] } }
      const type = { 'content-type': 'application/strategic-merge-patch+json' }
      assert.equal(await strict.statusOf('admin', 'PATCH', `${namespaced}/pods/good/ephemeralcontainers`, debug, type), status, image)
    }
    assert.equal(
      await strict.statusOf('admin', 'PATCH', `${namespaced}/pods/good`, [{ op: 'replace', path: '/spec/containers/0/image', value: 'forbidden' }], {
        'content-type': 'application/json-patch+json',
      }),
      403,
    )
  } finally {
    await strict.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
