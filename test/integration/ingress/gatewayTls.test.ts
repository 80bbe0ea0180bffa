/** TLSRoutes against the real API server, with the ingress's own rights: conditions, counts and refused connections. Its backends are Services without endpoints. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Frozen } from '#api/machinery/meta'
import { namespaces, secrets, services } from '#client/builtIn'
import { gatewayClasses, gateways, referenceGrants, tlsRoutes } from '#ingress/gatewayResources'
import { gatewayServiceName } from '#ingress/model/gateway/gatewayService'
import type { Condition, Listener, TlsRoute } from '#ingress/model/gateway/kinds'
import { ingressPlace } from '#ingress/place'
import { testCertificates } from '#testing/testCertificates'
import { eventually, type TestCluster } from '../controllers/cluster.ts'
import { ingressHost, type RunningIngress, startIngress } from './runningIngress.ts'

const namespace = 'default'
let cluster: TestCluster
let ingress: RunningIngress

before(async () => {
  ingress = await startIngress()
  cluster = ingress.cluster
})

after(() => ingress.close())

const passthrough: Listener = { name: 'tls', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } }

async function makeGateway(name: string, listeners: Listener[]): Promise<void> {
  await cluster.client.of(gateways).create({ metadata: { namespace, name }, spec: { gatewayClassName: 'skiff', listeners } })
}

async function makeRoute(name: string, gateway: string, more: Partial<TlsRoute['spec']> = {}): Promise<void> {
  const spec = { parentRefs: [{ name: gateway }], hostnames: ['a.test'], rules: [{ backendRefs: [{ name: 'web', port: 443 }] }], ...more }
  await cluster.client.of(tlsRoutes).create({ metadata: { namespace, name }, spec })
}

const short = (conditions: readonly Frozen<Condition>[] = []) => Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]))
const parentOf = async (name: string) => short((await cluster.client.of(tlsRoutes).get({ namespace, name })).status?.parents?.[0]?.conditions)

async function listenersOf(gateway: string) {
  const { status } = await cluster.client.of(gateways).get({ namespace, name: gateway })
  return (status?.listeners ?? []).map(({ name, supportedKinds, attachedRoutes, conditions }) => {
    const { Accepted, ResolvedRefs, Programmed } = short(conditions)
    return [name, supportedKinds.map(({ kind }) => kind).join(), attachedRoutes, Accepted, ResolvedRefs, Programmed]
  })
}

const isSoon = (wanted: unknown, found: () => Promise<unknown>) =>
  eventually(async () => isDeepStrictEqual(await found(), wanted)).catch(async () => assert.deepEqual(await found(), wanted))

async function portOf(gateway: string): Promise<number> {
  let found = 0
  await eventually(async () => {
    const { items } = await cluster.client.of(services).list({ namespace: ingressPlace.namespace })
    const service = items.find(({ metadata }) => metadata.name === gatewayServiceName(`${namespace}/${gateway}`))
    found = Number(service?.spec.ports?.[0]?.targetPort ?? 0)
    return found > 0
  })
  return found
}

/** An error's code, or the name of the certificate. */
async function connected(port: number, servername: string): Promise<string> {
  const socket = tls.connect({ host: ingressHost, port, servername, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect')
    return String(socket.getPeerCertificate().subject.CN)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  } finally {
    socket.destroy()
  }
}

test('ING-05 a TLSRoute is attached to a TLS listener by its hostnames, is counted, and follows its Service', async () => {
  await makeGateway('one', [
    { ...passthrough, hostname: '*.test' },
    { name: 'http', port: 80, protocol: 'HTTP' },
  ])
  await makeRoute('web', 'one')
  await makeRoute('elsewhere', 'one', { hostnames: ['a.example.com'] })
  await makeRoute('wrong', 'one', { parentRefs: [{ name: 'one', sectionName: 'http' }] })
  await isSoon({ Accepted: 'True Accepted', ResolvedRefs: 'False BackendNotFound' }, () => parentOf('web'))
  await isSoon('False NoMatchingListenerHostname', async () => (await parentOf('elsewhere')).Accepted)
  await isSoon('False NotAllowedByListeners', async () => (await parentOf('wrong')).Accepted)
  const good = ['True Accepted', 'True ResolvedRefs', 'True Programmed']
  await isSoon(
    [
      ['tls', 'TLSRoute', 1, ...good],
      ['http', 'HTTPRoute,GRPCRoute', 0, ...good],
    ],
    () => listenersOf('one'),
  )
  await cluster.client.of(services).create({ metadata: { namespace, name: 'web' }, spec: { ports: [{ port: 443 }] } })
  await isSoon({ Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' }, () => parentOf('web'))
  const port = await portOf('one')
  await cluster.client.of(tlsRoutes).delete({ namespace, name: 'web' })
  await isSoon(0, async () => (await listenersOf('one'))[0]?.[2])
  assert.ok(port > 0)
})

test('ING-05 a TLS listener that ends TLS needs a certificate; a connection without a route or an endpoint is ended without an answer', async () => {
  const { cert, key } = await testCertificates('CN=pair')
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const certificateRefs = [{ name: 'pair' }]
  await makeGateway('ends', [
    { name: 'ends', hostname: 'ends.test', port: 443, protocol: 'TLS', tls: { mode: 'Terminate', certificateRefs } },
    { ...passthrough, hostname: 'through.test' },
  ])
  await makeRoute('ends', 'ends', { hostnames: ['ends.test', 'through.test'] })
  await isSoon(['ends', 'TLSRoute', 1, 'True Accepted', 'False InvalidCertificateRef', 'False Invalid'], async () => (await listenersOf('ends'))[0])
  await cluster.client
    .of(secrets)
    .create({ metadata: { namespace, name: 'pair' }, type: 'kubernetes.io/tls', data: { 'tls.crt': encoded(cert), 'tls.key': encoded(key) } })
  await isSoon(['ends', 'TLSRoute', 1, 'True Accepted', 'True ResolvedRefs', 'True Programmed'], async () => (await listenersOf('ends'))[0])
  const port = await portOf('ends')
  // The port opens a moment after its Service exists; the backend has no endpoint.
  for (const name of ['other.test', 'through.test']) await eventually(async () => (await connected(port, name)) === 'ECONNRESET')
  await eventually(async () => (await connected(port, 'ends.test')) === 'pair')
})

test('ING-05 a TLSRoute needs a ReferenceGrant for its own kind to name a Service of another namespace', async () => {
  await cluster.client.of(namespaces).create({ metadata: { name: 'backends' }, spec: {} })
  await cluster.client.of(services).create({ metadata: { namespace: 'backends', name: 'web' }, spec: { ports: [{ port: 443 }] } })
  await makeGateway('granted', [passthrough])
  await makeRoute('granted', 'granted', { rules: [{ backendRefs: [{ name: 'web', namespace: 'backends', port: 443 }] }] })
  await isSoon({ Accepted: 'True Accepted', ResolvedRefs: 'False RefNotPermitted' }, () => parentOf('granted'))
  const group = 'gateway.networking.k8s.io'
  const grant = (kind: string) => ({
    metadata: { namespace: 'backends', name: kind.toLowerCase() },
    spec: { from: [{ group, kind, namespace }], to: [{ group: '', kind: 'Service' }] },
  })
  await cluster.client.of(referenceGrants).create(grant('HTTPRoute'))
  await cluster.client.of(referenceGrants).create(grant('TLSRoute'))
  await isSoon({ Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' }, () => parentOf('granted'))
})

test('ING-05 the class claims what the suite tests of TLSRoutes', async () => {
  const { status } = await cluster.client.of(gatewayClasses).get({ name: 'skiff' })
  const claimed = status?.supportedFeatures?.map(({ name }) => name) ?? []
  assert.deepEqual(
    claimed.filter((name) => name.startsWith('TLSRoute')),
    ['TLSRoute', 'TLSRouteModeMixed', 'TLSRouteModeTerminate'],
  )
  assert.deepEqual(claimed, [...claimed].sort())
})
