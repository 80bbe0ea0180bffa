/** HA: two API servers over one store. What they must agree on stands in the store, since nothing else connects them. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { TokenRequest, TokenReview } from '#api/gen/types/authentication.v1'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import { isStatus, type StatusError } from '#api/machinery/status'
import type { ServiceNetwork } from '#apiserver/kinds/services/serviceStorage'
import type { Registry } from '#apiserver/registry/registry'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { configMaps, namespaces, pods, resourceQuotas, serviceAccounts, services } from '#client/builtIn'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { changedStore, lastingStore } from '#testing/changedStore'
import { defaultStore } from '#testing/defaultStore'
import { realClock } from '#testing/realClock'
import { testServiceAccountKey } from '../controllers/cluster.ts'
import { definition, establish, version } from '../crd/support.ts'

const serviceNetwork: ServiceNetwork = { cidr: '10.96.0.0/16', nodePorts: [30_000, 30_039] }
const store = await defaultStore.open(realClock)
/** What the server over it reads may be this old. */
const lagMs = 40
/** Writes of another server arrive late at the watch cache. */
const laggingStore = changedStore(store, {
  watch: (options, onBatch, signal) => store.watch({ ...options }, (batch) => void setTimeout(onBatch, lagMs, batch), signal),
})
const serviceAccountKey = testServiceAccountKey()
const secure = (registry: Registry) => {
  const { admission, connect } = createSecurity({ reader: registry.reader, clock: realClock, random: seededRandom(1), serviceAccountKey })
  return { admission: admission.filter(({ name }) => name === 'ResourceQuota' || name === 'NamespaceLifecycle'), connect }
}
const [a, b] = (await Promise.all([0, 1].map(() => startTestApiServer({ store, serviceNetwork, deps: secure })))) as [TestApiServer, TestApiServer]
after(async () => {
  await Promise.all([a.close(), b.close()])
})

const map = (name: string) => ({ metadata: { namespace: 'default', name }, data: { k: 'v' } })

test('HA-01 a watch at one server sees what was written at the other', async () => {
  const { metadata } = await a.client.of(configMaps).list({ namespace: 'default' })
  const seen: (string | undefined)[] = []
  const following = (async () => {
    const stop = new AbortController()
    const watch = a.client.of(configMaps).watch({ namespace: 'default', resourceVersion: metadata.resourceVersion, signal: stop.signal })
    for await (const events of watch) {
      for (const { object } of events) seen.push(object.metadata.name)
      if (seen.length >= 20) stop.abort()
    }
  })()
  for (let i = 0; i < 20; i++) await (i % 2 ? a : b).client.of(configMaps).create(map(`w${i}`))
  await following.catch(() => {})
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, i) => `w${i}`),
  )
})

test('HA-01 one server reads what the other has just written', async () => {
  for (let i = 0; i < 50; i++) {
    const [writer, reader] = i % 2 ? [a, b] : [b, a]
    await writer.client.of(configMaps).create(map(`r${i}`))
    assert.equal((await reader.client.of(configMaps).get({ namespace: 'default', name: `r${i}` })).data?.k, 'v')
    assert.ok((await reader.client.of(configMaps).list({ namespace: 'default' })).items.some(({ metadata }) => metadata.name === `r${i}`))
  }
})

test('HA-01 of two servers that create one object, one is refused', async () => {
  const outcomes = await Promise.allSettled([a, b].flatMap((server) => [0, 1, 2].map(() => server.client.of(configMaps).create(map('same')))))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('HA-01 of two servers that get the same update of one version, one answers 409', async () => {
  for (let round = 0; round < 30; round++) {
    const made = await a.client.of(configMaps).create(map(`u${round}`))
    const change = { ...made, data: { k: 'w' } }
    const outcomes = await Promise.allSettled([a, b].map((server) => server.client.of(configMaps).update(change)))
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    for (const outcome of outcomes) if (outcome.status === 'rejected') assert.ok(isStatus(outcome.reason, 'Conflict'), String(outcome.reason))
  }
})

const rounds = 10
const both = <T>(count: number, one: (server: TestApiServer, index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => one(index % 2 ? a : b, index)))
const service = (name: string, spec: Partial<ServiceSpec> = {}) =>
  ({ metadata: { namespace: 'default', name }, spec: { ports: [{ port: 80 }], ...spec } }) as Service
const remove = (server: TestApiServer, name: string) => server.client.of(services).delete({ namespace: 'default', name })

test('HA-01 two servers give services different addresses', async () => {
  for (let round = 0; round < rounds; round++) {
    const made = await both(60, (server, i) => server.client.of(services).create(service(`s${i}`)))
    assert.equal(new Set(made.map(({ spec }) => spec?.clusterIP)).size, 60)
    await both(60, (server, i) => remove(server, `s${i}`))
  }
})

test('HA-01 two servers give services different node ports, and none when all are taken', async () => {
  const spec = { type: 'NodePort' } as const
  for (let round = 0; round < rounds; round++) {
    const made = await both(40, (server, i) => server.client.of(services).create(service(`n${i}`, spec)))
    assert.equal(new Set(made.map((one) => one.spec?.ports?.[0]?.nodePort)).size, 40)
    await assert.rejects((round % 2 ? a : b).client.of(services).create(service('full', spec)), /failed to allocate a nodePort: range is full/)
    await both(40, (server, i) => remove(server, `n${i}`))
  }
})

test('HA-01 of two servers that are asked for one address or node port, one refuses', async () => {
  const wanted: readonly Partial<ServiceSpec>[] = [{ clusterIP: '10.96.3.3' }, { type: 'NodePort', ports: [{ port: 80, nodePort: 30_005 }] as never }]
  for (let round = 0; round < rounds; round++) {
    for (const spec of wanted) {
      const outcomes = await Promise.allSettled([a, b].map((server, i) => server.client.of(services).create(service(`t${i}`, spec))))
      assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      await remove(a, outcomes[0]?.status === 'fulfilled' ? 't0' : 't1')
    }
  }
})

test('HA-01 a node port that a failed write took at one server is free at the other', async () => {
  const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_006 }] } as Partial<ServiceSpec>
  await assert.rejects(a.client.of(services).create(service('wrong', { ...spec, sessionAffinity: 'Never' })), /sessionAffinity/)
  await b.client.of(services).create(service('right', spec))
  await b.client.of(services).patch({ namespace: 'default', name: 'right' }, 'merge', { spec: { type: 'ClusterIP' } })
  await a.client.of(services).create(service('right2', spec))
  await Promise.all([remove(a, 'right'), remove(b, 'right2')])
})

test('HA-01 two servers together admit what a quota allows, no more and no less, and count it', async () => {
  const hard = { 'count/configmaps': '30' }
  for (let round = 0; round < rounds; round++) {
    const namespace = `quota-${round}`
    await a.client.of(namespaces).create({ metadata: { name: namespace }, spec: {} })
    const made = await a.client.of(resourceQuotas).create({ metadata: { namespace, name: 'q' }, spec: { hard } })
    await b.client.of(resourceQuotas).updateStatus({ ...made, status: { hard, used: { 'count/configmaps': '0' } } })
    // A quota limits at a server whose cache has it: a read brings the cache up to date.
    await a.client.of(resourceQuotas).get({ namespace, name: 'q' })
    const outcomes = await Promise.allSettled(
      Array.from({ length: 80 }, (_, i) => (i % 2 ? a : b).client.of(configMaps).create({ metadata: { namespace, name: `m${i}` } })),
    )
    for (const outcome of outcomes) if (outcome.status === 'rejected') assert.match(String(outcome.reason.message), /exceeded quota: q, requested: count/)
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 30)
    assert.deepEqual((await b.client.of(resourceQuotas).get({ namespace, name: 'q' })).status?.used, { 'count/configmaps': '30' })
  }
})

test('HA-01 two servers that charge two quotas of a namespace count each write once in both', async () => {
  const namespace = 'two-quotas'
  const hard = { 'count/configmaps': '1000' }
  await a.client.of(namespaces).create({ metadata: { name: namespace }, spec: {} })
  for (const name of ['q1', 'q2']) {
    const made = await a.client.of(resourceQuotas).create({ metadata: { namespace, name }, spec: { hard } })
    await b.client.of(resourceQuotas).updateStatus({ ...made, status: { hard, used: { 'count/configmaps': '0' } } })
  }
  for (const server of [a, b]) await server.client.of(resourceQuotas).list({ namespace })
  for (let round = 0; round < rounds; round++) {
    await both(20, (server, i) => server.client.of(configMaps).create({ metadata: { namespace, name: `m${round}-${i}` } }))
  }
  for (const name of ['q1', 'q2']) {
    assert.deepEqual((await a.client.of(resourceQuotas).get({ namespace, name })).status?.used, { 'count/configmaps': String(20 * rounds) })
  }
})

const securityOf = (seed: number) => (registry: Registry) => {
  const waitUntilCurrent = () => registry.cacher.waitUntilCurrent()
  return createSecurity({ reader: registry.reader, waitUntilCurrent, clock: realClock, random: seededRandom(seed), serviceAccountKey })
}

test('HA-01 a token that one server issues is good at another whose cache does not have its account and pod yet', async () => {
  const lagging = await startTestApiServer({
    store: lastingStore(laggingStore),
    serviceNetwork,
    deps: securityOf(2),
  })
  const issuer = await startTestApiServer({
    store: lastingStore(store),
    serviceNetwork,
    deps: securityOf(3),
  })
  const namespace = 'tokens'
  await issuer.client.of(namespaces).create({ metadata: { name: namespace }, spec: {} })
  const review = async (token: string) => {
    const request = { method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body: { spec: { token } } } as const
    return ((await lagging.client.transport.request(request)).body as TokenReview).status
  }
  for (let round = 0; round < 3; round++) {
    const name = `t${round}`
    await issuer.client.of(serviceAccounts).create({ metadata: { namespace, name } })
    const pod = await issuer.client.of(pods).create({
      metadata: { namespace, name },
      spec: { serviceAccountName: name, automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    })
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name, uid: pod.metadata.uid }
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
    // The server that lags issues a token for what the other one has just created, too.
    for (const server of [issuer, lagging]) {
      const { body } = await server.client.transport.request({ method: 'POST', path, body: { spec: { boundObjectRef } } })
      const status = await review((body as TokenRequest).status?.token ?? '')
      assert.deepEqual([status?.error, status?.authenticated, status?.user?.username], [undefined, true, `system:serviceaccount:${namespace}:${name}`])
    }
    await issuer.client.of(pods).delete({ namespace, name }, { gracePeriodSeconds: 0 })
    const gone = lagging.client.transport.request({ method: 'POST', path, body: { spec: { boundObjectRef } } })
    await assert.rejects(gone, (error) => isStatus(error, 'NotFound'))
  }
  await Promise.all([lagging.close(), issuer.close()])
})

test('HA-01 a custom resource that one server has established is served by another whose cache does not have it yet', async () => {
  const lagging = await startTestApiServer({ store: lastingStore(laggingStore), serviceNetwork })
  for (let round = 0; round < 5; round++) {
    const [plural, kind] = [`gadgets${round}`, `Gadget${round}`]
    await establish(a.client, definition(plural, kind, [version('v1', { type: 'object' })]))
    const body = { apiVersion: 'example.com/v1', kind, metadata: { name: 'one' } }
    await lagging.client.transport.request({ method: 'POST', path: `/apis/example.com/v1/namespaces/default/${plural}`, body })
  }
  const unknown = lagging.client.transport.request({ method: 'GET', path: '/apis/example.com/v1/namespaces/default/nothings' })
  await assert.rejects(unknown, (error) => (error as StatusError).code === 404)
  await lagging.close()
})
