/**
 * A change of a ResourceClaim's status needs more than resourceclaims/status (AUZ-01): to bind the claim, the right on resourceclaims/binding, and for
 * each driver's devices a right on resourceclaims/driver, which may be limited to drivers on the claim's own node. Over the wire, with real tokens.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`
const inDefault = '/api/v1/namespaces/default'
const claims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims'
const driver = 'gpu.example.com'

let api: TestApiServer
let server: TestListener
/** Bearer tokens of the driver's service account, by the node of its pod. */
const tokens: Record<string, string> = {}

function call(token: string, method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<HttpsAnswer> {
  return httpsCall(server, path, { method, body, headers: { authorization: `Bearer ${token}`, 'content-type': contentType } })
}

async function made(work: Promise<HttpsAnswer>): Promise<HttpsAnswer> {
  const answer = await work
  assert.ok(answer.status < 300, answer.text)
  return answer
}

const rule = (verbs: string, resource: string, more: object = {}) => ({
  verbs: verbs.split(' '),
  apiGroups: ['resource.k8s.io'],
  resources: [resource],
  ...more,
})
const writesStatus = rule('get update patch', 'resourceclaims/status')
const rules: Readonly<Record<string, readonly object[]>> = {
  writer: [writesStatus],
  binder: [writesStatus, rule('update patch', 'resourceclaims/binding')],
  controller: [writesStatus, rule('arbitrary-node:patch', 'resourceclaims/driver', { resourceNames: [driver] })],
  driver: [writesStatus, rule('associated-node:patch', 'resourceclaims/driver', { resourceNames: [driver] })],
}

before(async () => {
  const names = ['admin', 'writer', 'binder', 'controller']
  const lines = names.map((name) => `${name},${name},uid-${name}${name === 'admin' ? ',system:masters' : ''}\n`)
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', lines.join(''))}`])
  server = await api.listen()
  for (const [name, own] of Object.entries(rules)) {
    const subject = name === 'driver' ? { kind: 'ServiceAccount', namespace: 'default', name } : { kind: 'User', apiGroup: group, name }
    await made(call('admin', 'POST', `${rbac}/clusterroles`, { metadata: { name }, rules: own }))
    const roleRef = { apiGroup: group, kind: 'ClusterRole', name }
    await made(call('admin', 'POST', `${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects: [subject] }))
  }
  await made(call('admin', 'POST', `${inDefault}/serviceaccounts`, { metadata: { name: 'driver' } }))
  for (const node of ['n1', 'n2']) {
    await made(call('admin', 'POST', '/api/v1/nodes', { metadata: { name: node } }))
    const spec = { nodeName: node, serviceAccountName: 'driver', containers: [{ name: 'c', image: 'i' }] }
    const pod = await made(call('admin', 'POST', `${inDefault}/pods`, { metadata: { name: `on-${node}` }, spec }))
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: `on-${node}`, uid: pod.json.metadata.uid }
    const token = await made(call('admin', 'POST', `${inDefault}/serviceaccounts/driver/token`, { spec: { boundObjectRef } }))
    tokens[node] = token.json.status.token
  }
})
after(async () => {
  await api.close()
  ssl.remove()
})

const results = [
  { request: 'r', driver, pool: 'p', device: 'g0' },
  { request: 'r', driver: 'other.example.com', pool: 'p', device: 'o0' },
]
const allocation = (node: string) => ({
  devices: { results },
  nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }] },
})
const report = (of: string, device: string) => ({ driver: of, pool: 'p', device, data: { seen: true } })

async function claim(name: string, status?: object): Promise<void> {
  const spec = { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'gpus', count: 2 } }] } }
  await made(call('admin', 'POST', claims, { metadata: { name }, spec }))
  if (status) await made(patch('admin', name, status))
}

const patch = (token: string, name: string, status: object) => call(token, 'PATCH', `${claims}/${name}/status`, { status }, 'application/merge-patch+json')

async function refusal(work: Promise<HttpsAnswer>): Promise<string> {
  const { status, json, text } = await work
  assert.equal(status, 422, text)
  return json.message
}

test('AUZ-01 allocating and reserving a claim needs resourceclaims/binding', async () => {
  await claim('bound')
  const statuses = [{ allocation: allocation('n1') }, { allocation: allocation('n1'), reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] }]
  for (const status of statuses) {
    const needed = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission'
    const denied = 'User "writer" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
    const wanted = `ResourceClaim.resource.k8s.io "bound" is invalid: status.allocation: Forbidden: ${needed}: resourceclaims.resource.k8s.io is forbidden: ${denied}`
    assert.equal(await refusal(patch('writer', 'bound', status)), wanted)
    await made(patch('binder', 'bound', status))
  }
})

test('AUZ-01 reporting on devices needs resourceclaims/driver, for each driver whose reports change', async () => {
  await claim('reported', { allocation: allocation('n1') })
  const own = [report(driver, 'g0')]
  assert.match(
    await refusal(patch('binder', 'reported', { devices: own })),
    /status\.devices: Forbidden: .* verb="\[arbitrary-node:patch\]" permission: .*"gpu\.example\.com" is forbidden/,
  )
  await made(patch('controller', 'reported', { devices: own }))
  const both = [...own, report('other.example.com', 'o0')]
  assert.match(await refusal(patch('controller', 'reported', { devices: both })), /"other\.example\.com" is forbidden/)
  // The other driver's report cannot be taken away either.
  await made(patch('admin', 'reported', { devices: both }))
  assert.match(await refusal(patch('controller', 'reported', { devices: own })), /"other\.example\.com" is forbidden/)
})

test('AUZ-01 a driver limited to its node reports on claims of that node alone', async () => {
  await claim('of-n1', { allocation: allocation('n1') })
  const own = { devices: [report(driver, 'g0')] }
  assert.match(await refusal(patch(tokens.n2 as string, 'of-n1', own)), /verb="\[arbitrary-node:patch\]" permission/)
  await made(patch(tokens.n1 as string, 'of-n1', own))
})

test('AUZ-01 giving up an allocation needs the right to bind alone, although the reports on its devices go with it', async () => {
  await claim('freed', { allocation: allocation('n1'), devices: [report(driver, 'g0')] })
  assert.match(await refusal(patch('writer', 'freed', { allocation: null, devices: null })), /resourceclaims\/binding/)
  const freed = await made(patch('binder', 'freed', { allocation: null, devices: null }))
  assert.deepEqual(freed.json.status, {})
})
