/** Which front proxies the server trusts, how it publishes that for extension servers, and the APIServices of its own groups. */
import assert from 'node:assert/strict'
import { request } from 'node:https'
import test, { after, before } from 'node:test'
import { builtInGroupVersions } from '#api/discovery/resources'
import type { SelfSubjectReview } from '#api/gen/types/authentication.v1'
import { standardRequestHeaders } from '#apiserver/authn/settings'
import { createSecurity } from '#apiserver/security'
import type { Listener } from '#apiserver/server/listener'
import { seededRandom } from '#base/random'
import { apiServices, configMaps } from '#client/builtIn'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { eventually, testServiceAccountKey } from '../controllers/cluster.ts'
import { certificates } from './extension.ts'

const now = Date.now()
const allowedNames = ['front-proxy-client']
let clientCa: KeyPair
let proxyCa: KeyPair
let serving: KeyPair
let api: TestApiServer
let listener: Listener

before(async () => {
  const made = await certificates()
  proxyCa = made.proxyCa
  clientCa = await createAuthority('kubernetes', now, 10)
  serving = await issueCertificate(clientCa, { commonName: 'kube-apiserver', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, now)
  const serviceAccountKey = testServiceAccountKey()
  api = await startTestApiServer({
    deps: (registry) =>
      createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey, frontProxyNames: allowedNames }),
    config: { trust: { clientCa: clientCa.cert, requestHeaderCa: proxyCa.cert, requestHeader: { ...standardRequestHeaders, allowedNames } } },
  })
  const tls = { cert: serving.cert, key: serving.key, clientCa: clientCa.cert, requestHeaderCa: proxyCa.cert }
  listener = await api.server.listen({ host: '127.0.0.1', port: 0, tls })
})
after(async () => {
  await listener.close()
  await api.close()
})

const issue = (by: KeyPair, commonName: string, organizations: readonly string[] = []) =>
  issueCertificate(by, { commonName, organizations, usage: 'client', validDays: 1 }, now)

/** The authenticated user of a SelfSubjectReview, or the code of a refusal. */
function whoAmI(certificate: KeyPair, headers: Record<string, string | string[]> = {}): Promise<{ user: SelfSubjectReview['status']['userInfo'] } | number> {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const tls = { ca: clientCa.cert, cert: certificate.cert, key: certificate.key, agent: false }
    const call = request({ host: '127.0.0.1', port: listener.port, method: 'POST', path, ...tls, headers: { 'content-type': 'application/json', ...headers } })
    call.on('error', reject)
    call.on('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(response.statusCode === 201 ? { user: JSON.parse(text).status.userInfo } : (response.statusCode ?? 0)))
    })
    call.end(body)
  })
}

const asked = { 'x-remote-user': 'jane', 'x-remote-uid': '42', 'x-remote-group': ['dev', 'ops, night'], 'x-remote-extra-example.org%2fteam': 'blue' }

test('AUN-06 a front proxy sets the user by headers, and each group header is one group', async () => {
  assert.deepEqual(await whoAmI(await issue(proxyCa, 'front-proxy-client'), asked), {
    user: { username: 'jane', uid: '42', groups: ['dev', 'ops, night', 'system:authenticated'], extra: { 'example.org/team': ['blue'] } },
  })
})

test("AUN-06 identity headers are ignored from a user's certificate, one with another name, and without a user name", async () => {
  const user = await whoAmI(await issue(clientCa, 'bob', ['dev']), { ...asked, 'x-remote-user': 'admin' })
  assert.ok(typeof user === 'object')
  assert.deepEqual([user.user?.username, user.user?.groups], ['bob', ['dev', 'system:authenticated']])
  assert.equal(await whoAmI(await issue(proxyCa, 'somebody'), asked), 401)
  assert.equal(await whoAmI(await issue(proxyCa, 'front-proxy-client')), 401)
})

test('AUN-06 a certificate of the front proxy authority with system:masters is refused, and one of an unknown authority too', async () => {
  assert.equal(await whoAmI(await issue(proxyCa, 'admin', ['system:masters'])), 401)
  const stranger = await createAuthority('front-proxy-ca', now, 1)
  assert.equal(await whoAmI(await issue(stranger, 'front-proxy-client'), asked), 401)
})

test('AUN-07 groups of an impersonated user are one header each', async () => {
  const admin = await issue(clientCa, 'root', ['system:masters'])
  const seen = await whoAmI(admin, { 'impersonate-user': 'jane', 'impersonate-group': ['dev', 'ops'] })
  assert.ok(typeof seen === 'object')
  assert.deepEqual(seen.user?.groups, ['dev', 'ops', 'system:authenticated'])
})

test('API-28 the ConfigMap for extension servers is published, and restored after a deletion and a change', async () => {
  const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
  const wanted = {
    'client-ca-file': clientCa.cert,
    'requestheader-client-ca-file': proxyCa.cert,
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-allowed-names': '["front-proxy-client"]',
  }
  assert.deepEqual((await api.client.of(configMaps).get(key)).data, wanted)
  await api.client.of(configMaps).delete(key)
  await eventually(async () => (await api.client.of(configMaps).get(key)).data !== undefined)
  await api.client.of(configMaps).patch(key, 'merge', { data: { 'client-ca-file': 'x' } })
  await eventually(async () => (await api.client.of(configMaps).get(key)).data?.['client-ca-file'] === clientCa.cert)
})

test('API-28 every group-version has its APIService from the start, with upstream priorities', async () => {
  const { items } = await api.client.of(apiServices).list()
  const wanted = builtInGroupVersions().filter(({ group }) => group !== 'apiregistration.k8s.io')
  assert.deepEqual(items.map(({ metadata }) => metadata.name).sort(), wanted.map(({ group, version }) => `${version}.${group}`).sort())
  const core = items.find(({ metadata }) => metadata.name === 'v1.')
  assert.deepEqual(
    [core?.metadata.labels, core?.spec],
    [{ 'kube-aggregator.kubernetes.io/automanaged': 'onstart' }, { version: 'v1', groupPriorityMinimum: 18000, versionPriority: 1 }],
  )
  const [condition] = core?.status?.conditions ?? []
  assert.deepEqual([condition?.reason, condition?.message, condition?.status], ['Local', 'Local APIServices are always available', 'True'])
  assert.match(condition?.lastTransitionTime ?? '', /^\d{4}-/)
})

test('API-28 what an administrator does to them lasts until the next start, which puts them right', async () => {
  const store = createMemoryStore({ clock: realClock })
  const first = await startTestApiServer({ store })
  const priority = async (server: TestApiServer) => (await server.client.of(apiServices).get({ name: 'v1.apps' })).spec.groupPriorityMinimum
  const before = await priority(first)
  await first.client.of(apiServices).patch({ name: 'v1.apps' }, 'merge', { spec: { groupPriorityMinimum: 5 } })
  await first.client.of(apiServices).delete({ name: 'v1.batch' })
  const made = {
    metadata: { name: 'v9.mine.example', labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } },
    spec: { group: 'mine.example', version: 'v9', groupPriorityMinimum: 1, versionPriority: 1 },
  }
  await first.client.of(apiServices).create(made)
  await eventually(() =>
    first.client
      .of(apiServices)
      .get({ name: 'v9.mine.example' })
      .then(
        () => false as const,
        () => true,
      ),
  )
  assert.equal(await priority(first), 5)
  const second = await startTestApiServer({ store })
  try {
    assert.equal(await priority(second), before)
    assert.ok(await second.client.of(apiServices).get({ name: 'v1.batch' }))
  } finally {
    await second.close()
    await first.close()
  }
})

test('API-28 a custom group-version has an APIService while it is served, which is restored after a change', async () => {
  const name = 'v1beta1.custom.example'
  const found = () =>
    api.client
      .of(apiServices)
      .list()
      .then(({ items }) => items.find(({ metadata }) => metadata.name === name))
  const groupVersions = [{ group: 'custom.example', version: 'v1beta1', groupPriority: 1000, versionPriority: 100 }]
  api.server.catalog.set('custom', { revision: '1', groupVersions, entries: [] })
  const made = await eventually(async () => (await found()) ?? false)
  assert.deepEqual(
    [made.metadata.labels?.['kube-aggregator.kubernetes.io/automanaged'], made.spec.groupPriorityMinimum, made.spec.versionPriority],
    ['true', 1000, 100],
  )
  await api.client.of(apiServices).patch({ name }, 'merge', { spec: { versionPriority: 1 } })
  await eventually(async () => (await found())?.spec.versionPriority === 100)
  await api.client.of(apiServices).delete({ name })
  await eventually(async () => (await found()) !== undefined && (await found())?.metadata.uid !== made.metadata.uid)
  api.server.catalog.remove('custom')
  await eventually(async () => (await found()) === undefined)
})
