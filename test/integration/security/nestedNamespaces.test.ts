/**
 * A path that nests a cluster-scoped resource below a namespace is authorized in that namespace (AUZ-01), so an owner of one namespace must not reach
 * anything of the cluster through it. Over the wire, every cluster-scoped resource.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const group = 'rbac.authorization.k8s.io'

let api: TestApiServer
let server: TestListener

function call(who: string, method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<HttpsAnswer> {
  return httpsCall(server, path, { method, body, headers: { authorization: `Bearer ${who}`, 'content-type': contentType } })
}

before(async () => {
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', 'admin,admin,a,system:masters\nowner,owner,o\n')}`])
  server = await api.listen()
  for (const name of ['mine', 'theirs']) assert.equal((await call('admin', 'POST', '/api/v1/namespaces', { metadata: { name } })).status, 201)
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' }
  const binding = { metadata: { name: 'owner' }, roleRef, subjects: [{ kind: 'User', apiGroup: group, name: 'owner' }] }
  assert.equal((await call('admin', 'POST', `/apis/${group}/v1/namespaces/mine/rolebindings`, binding)).status, 201)
})
after(async () => {
  await api.close()
  ssl.remove()
})

test("AUZ-01 the owner of a namespace reads, changes and deletes no other namespace through the owner's own path", async () => {
  const nested = '/api/v1/namespaces/mine/namespaces'
  const merge = 'application/merge-patch+json'
  const privileged = { metadata: { name: 'theirs', labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } } }
  const answers = [
    await call('owner', 'GET', `${nested}/theirs`),
    await call('owner', 'GET', nested),
    await call('owner', 'GET', `${nested}?fieldSelector=metadata.name%3Dmine`),
    await call('owner', 'GET', '/api/v1/watch/namespaces/mine/namespaces/theirs?timeoutSeconds=1'),
    await call('owner', 'PATCH', `${nested}/theirs`, privileged, merge),
    await call('owner', 'PUT', `${nested}/theirs`, privileged),
    await call('owner', 'PUT', `${nested}/theirs/finalize`, privileged),
    await call('owner', 'PATCH', `${nested}/theirs/status`, { status: { phase: 'Terminating' } }, merge),
    await call('owner', 'POST', nested, { metadata: { name: 'more' } }),
    await call('owner', 'DELETE', `${nested}/theirs`),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    answers.map(() => 404),
  )
  const theirs = await call('admin', 'GET', '/api/v1/namespaces/theirs')
  assert.equal(theirs.json.metadata.labels['pod-security.kubernetes.io/enforce'], undefined)
  assert.equal(theirs.json.metadata.deletionTimestamp, undefined)
})

test('AUZ-01 the own namespace is still read and changed by its owner', async () => {
  assert.equal((await call('owner', 'GET', '/api/v1/namespaces/mine')).status, 200)
  assert.equal((await call('owner', 'PATCH', '/api/v1/namespaces/mine', { metadata: { labels: { a: 'b' } } }, 'application/merge-patch+json')).status, 200)
  assert.equal((await call('owner', 'GET', '/api/v1/namespaces/theirs')).status, 403)
})

test('AUZ-01 no cluster-scoped resource is reached below a namespace', async () => {
  for (const { group: of, version, resource, namespaced, verbs } of builtInResources()) {
    if (namespaced) continue
    const at = `${of === '' ? '/api/v1' : `/apis/${of}/${version}`}/namespaces/mine/${resource}`
    for (const path of [at, `${at}/any`]) assert.equal((await call('owner', 'GET', path)).status, 404, path)
    if (verbs.includes('create')) assert.equal((await call('owner', 'POST', at, { metadata: { name: 'any' } })).status, 404, at)
  }
})

test('API-02 the core group is not served below /apis', async () => {
  const paths = ['namespaces/mine/secrets', 'namespaces/mine/configmaps/kube-root-ca.crt', 'namespaces/mine', 'nodes', 'watch/pods?timeoutSeconds=1']
  const answers = await Promise.all(paths.map((path) => call('admin', 'GET', `/apis//v1/${path}`)))
  const created = await call('admin', 'POST', '/apis//v1/namespaces', { metadata: { name: 'more' } })
  assert.deepEqual(
    [...answers, created].map(({ status }) => status),
    [404, 404, 404, 404, 404, 404],
  )
  assert.equal((await call('admin', 'GET', '/api/v1/namespaces/mine/secrets')).status, 200)
})
