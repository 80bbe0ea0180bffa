/** BackendTLSPolicies against the real API server, with the ingress's own rights: conditions for each Gateway, and what they do to requests. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { configMaps, services } from '#client/builtIn'
import { backendTlsPolicies, gateways, httpRoutes } from '#ingress/gatewayResources'
import { gatewayServiceName } from '#ingress/model/gateway/gatewayService'
import type { BackendTlsPolicy } from '#ingress/model/gateway/kinds'
import { ingressPlace } from '#ingress/place'
import { testCertificates } from '#testing/testCertificates'
import { eventually, type TestCluster } from '../controllers/cluster.ts'
import { get } from './fixture.ts'
import { ingressHost, type RunningIngress, startIngress } from './runningIngress.ts'

const namespace = 'default'
let cluster: TestCluster
let ingress: RunningIngress

before(async () => {
  ingress = await startIngress()
  cluster = ingress.cluster
  const { client } = cluster
  await client.of(services).create({ metadata: { namespace, name: 'secure' }, spec: { ports: [{ name: 'https', port: 443 }] } })
  for (const name of ['one', 'two']) {
    const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }]
    await client.of(gateways).create({ metadata: { namespace, name }, spec: { gatewayClassName: 'skiff', listeners } })
  }
  const rules = [{ backendRefs: [{ name: 'secure', port: 443 }] }]
  await client.of(httpRoutes).create({ metadata: { namespace, name: 'secure' }, spec: { parentRefs: [{ name: 'two' }, { name: 'one' }], rules } })
})

after(() => ingress.close())

const validation = { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'authorities' }], hostname: 'backend.test' }

async function makePolicy(name: string, more: Partial<BackendTlsPolicy['spec']> = {}): Promise<void> {
  const targetRefs = [{ group: '', kind: 'Service', name: 'secure' }]
  await cluster.client.of(backendTlsPolicies).create({ metadata: { namespace, name }, spec: { targetRefs, validation, ...more } })
}

/** By Gateway, the reasons of the conditions. */
async function verdictsOn(name: string): Promise<unknown> {
  const { status, metadata } = await cluster.client.of(backendTlsPolicies).get({ namespace, name })
  return Object.fromEntries(
    (status?.ancestors ?? []).map(({ ancestorRef, conditions }) => {
      assert.ok(conditions.every(({ observedGeneration = 0 }) => observedGeneration <= (metadata.generation ?? 0)))
      return [ancestorRef.name, conditions.map(({ type, status: state, reason }) => `${type} ${state} ${reason}`).join(', ')]
    }),
  )
}

const onBoth = (text: string) => ({ one: text, two: text })
const isSoon = (wanted: unknown, found: () => Promise<unknown>) =>
  eventually(async () => isDeepStrictEqual(await found(), wanted)).catch(async () => assert.deepEqual(await found(), wanted))

async function statusOf(): Promise<number> {
  const ref = { namespace: ingressPlace.namespace, name: gatewayServiceName(`${namespace}/one`) }
  const { spec } = await cluster.client.of(services).get(ref)
  return (await get(Number(spec.ports?.[0]?.targetPort), { host: ingressHost, headers: { host: 'a.test' } })).status
}

/** The Service has no endpoint: a request that would reach it gets 503, one that must not be sent 500. */
const isAnsweredWith = (wanted: number) => isSoon(wanted, () => statusOf().catch(() => 0))

const good = 'Accepted True Accepted, ResolvedRefs True ResolvedRefs'
const bad = 'Accepted False NoValidCACertificate, ResolvedRefs False InvalidCACertificateRef'

test('ING-05 a policy gets conditions for each Gateway that uses its Service, and follows its ConfigMap; without usable certificates requests fail', async () => {
  await isAnsweredWith(503)
  await makePolicy('first')
  await isSoon(onBoth(bad), () => verdictsOn('first'))
  await isAnsweredWith(500)
  const { cert } = await testCertificates('CN=authority')
  const metadata = { namespace, name: 'authorities' }
  await cluster.client.of(configMaps).create({ metadata, data: { 'ca.crt': cert, other: 'text' } })
  await isSoon(onBoth(good), () => verdictsOn('first'))
  await isAnsweredWith(503)
  for (const text of ['', cert.replace(/\n[A-Za-z]/, '\n*'), 'x'.repeat(200_000)]) {
    await cluster.client.of(configMaps).patch(metadata, 'merge', { data: { 'ca.crt': text } })
    await isSoon(onBoth(bad), () => verdictsOn('first'))
    await isAnsweredWith(500)
    await cluster.client.of(configMaps).patch(metadata, 'merge', { data: { 'ca.crt': cert } })
    await isSoon(onBoth(good), () => verdictsOn('first'))
  }
  await isAnsweredWith(503)
})

test('ING-05 a younger policy for the same target is in conflict until the older one is gone', async () => {
  await makePolicy('second')
  await isSoon(onBoth('Accepted False Conflicted, ResolvedRefs True ResolvedRefs'), () => verdictsOn('second'))
  await makePolicy('port', { targetRefs: [{ group: '', kind: 'Service', name: 'secure', sectionName: 'https' }] })
  await isSoon(onBoth(good), () => verdictsOn('port'))
  await cluster.client.of(backendTlsPolicies).delete({ namespace, name: 'first' })
  await isSoon(onBoth(good), () => verdictsOn('second'))
})

test('ING-05 a policy has no entry for a Gateway whose routes no longer lead to its Service', async () => {
  await cluster.client.of(httpRoutes).patch({ namespace, name: 'secure' }, 'merge', { spec: { parentRefs: [{ name: 'one' }] } })
  await isSoon({ one: good }, () => verdictsOn('second'))
  await cluster.client.of(httpRoutes).delete({ namespace, name: 'secure' })
  await isSoon({}, () => verdictsOn('second'))
})
