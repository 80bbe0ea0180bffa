/** Gateways and their routes against the real API server, with the ingress's own rights: definitions, statuses, Services and requests. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Frozen } from '#api/machinery/meta'
import { customResourceDefinitions, endpointSlices, ingresses, namespaces, secrets, services } from '#client/builtIn'
import { gatewayClasses, gateways, grpcRoutes, httpRoutes, referenceGrants } from '#ingress/gatewayResources'
import { gatewayServiceName } from '#ingress/model/gateway/gatewayService'
import type { Condition, Gateway, HttpRoute, HttpRule, Listener } from '#ingress/model/gateway/kinds'
import { ingressPlace } from '#ingress/place'
import { removeIngressObjects } from '#main/layouts/ingress/ingressObjects'
import { testCertificates } from '#testing/testCertificates'
import { eventually, type TestCluster } from '../controllers/cluster.ts'
import { ingressHost, type RunningIngress, startIngress } from './runningIngress.ts'

const namespace = 'default'
let cluster: TestCluster
let ingress: RunningIngress
let ports: RunningIngress['ports']

before(async () => {
  ingress = await startIngress()
  cluster = ingress.cluster
  ports = ingress.ports
})

after(async () => {
  await ingress.stop()
  await removeIngressObjects(cluster.client, new AbortController().signal)
  await ingress.close()
})

const httpListener: Listener = { name: 'http', port: 80, protocol: 'HTTP' }

async function makeGateway(name: string, listeners: Listener[] = [httpListener]): Promise<void> {
  await cluster.client.of(gateways).create({ metadata: { namespace, name }, spec: { gatewayClassName: 'skiff', listeners } })
}

async function makeRoute(name: string, gateway: string, rules: HttpRule[], more: Partial<HttpRoute['spec']> = {}): Promise<void> {
  await cluster.client.of(httpRoutes).create({ metadata: { namespace, name }, spec: { parentRefs: [{ name: gateway }], rules, ...more } })
}

/** A Service without endpoints: its requests get 503. */
async function makeService(name: string): Promise<void> {
  await cluster.client.of(services).create({ metadata: { namespace, name }, spec: { ports: [{ port: 80 }] } })
}

const gatewayOf = async (name: string): Promise<Frozen<Gateway>> => cluster.client.of(gateways).get({ namespace, name })
const routeOf = async (name: string): Promise<Frozen<HttpRoute>> => cluster.client.of(httpRoutes).get({ namespace, name })
const serviceOf = async (gateway: string) =>
  cluster.client.of(services).get({ namespace: ingressPlace.namespace, name: gatewayServiceName(`${namespace}/${gateway}`) })
const short = (conditions: readonly Frozen<Condition>[] = []) => Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]))
const parentOf = async (name: string) => short((await routeOf(name)).status?.parents?.[0]?.conditions)

/** The node's port that port 80 of the Gateway leads to. */
async function portOf(gateway: string, port = 80): Promise<number> {
  let found = 0
  await eventually(async () => {
    const { items } = await cluster.client.of(services).list({ namespace: ingressPlace.namespace })
    const service = items.find(({ metadata }) => metadata.name === gatewayServiceName(`${namespace}/${gateway}`))
    found = Number(service?.spec.ports?.find((one) => one.port === port)?.targetPort ?? 0)
    return found > 0
  })
  return found
}

async function statusOf(port: number, path: string, hostName = 'a.test'): Promise<number> {
  const request = http.get({ host: ingressHost, port, path, headers: { host: hostName }, agent: false })
  request.on('error', () => {})
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    response.resume()
    return response.statusCode ?? 0
  } catch {
    return 0
  }
}

test('ING-05 the definitions of the Gateway API are served and the class is accepted with its features', async () => {
  const { items } = await cluster.client.of(customResourceDefinitions).list()
  const ours = items.filter(({ spec }) => spec.group === 'gateway.networking.k8s.io')
  assert.deepEqual(ours.map(({ spec }) => spec.names.kind).sort(), [
    'BackendTLSPolicy',
    'GRPCRoute',
    'Gateway',
    'GatewayClass',
    'HTTPRoute',
    'ListenerSet',
    'ReferenceGrant',
    'TLSRoute',
  ])
  assert.equal(ours[0]?.metadata.annotations?.['gateway.networking.k8s.io/bundle-version'], 'v1.6.3')
  assert.ok(!JSON.stringify(ours.map(({ spec }) => spec.versions)).includes('"description":"'))
  await eventually(async () => {
    const { status, metadata } = await cluster.client.of(gatewayClasses).get({ name: 'skiff' })
    const accepted = status?.conditions?.find(({ type }) => type === 'Accepted')
    return accepted?.status === 'True' && accepted.observedGeneration === metadata.generation && (status?.supportedFeatures?.length ?? 0) > 0
  })
})

test('ING-05 a Gateway gets a Service, an address and its conditions; an HTTPRoute is attached and its requests reach the Service', async () => {
  await makeService('web')
  await makeGateway('one')
  await makeRoute('web', 'one', [{ matches: [{ path: { type: 'PathPrefix', value: '/web' } }], backendRefs: [{ name: 'web', port: 80 }] }])
  const port = await portOf('one')
  // No endpoints: 503. No route: 404.
  await eventually(async () => (await statusOf(port, '/web/x')) === 503)
  assert.equal(await statusOf(port, '/other'), 404)
  await eventually(async () => short((await gatewayOf('one')).status?.conditions).Programmed === 'True Programmed')
  const { status } = await gatewayOf('one')
  assert.deepEqual(short(status?.conditions), { Accepted: 'True Accepted', Programmed: 'True Programmed' })
  assert.deepEqual(
    status?.listeners?.map(({ conditions, ...rest }) => ({ ...rest, conditions: short(conditions) })),
    [
      {
        name: 'http',
        supportedKinds: ['HTTPRoute', 'GRPCRoute'].map((kind) => ({ group: 'gateway.networking.k8s.io', kind })),
        attachedRoutes: 1,
        conditions: { Accepted: 'True Accepted', Programmed: 'True Programmed', ResolvedRefs: 'True ResolvedRefs', Conflicted: 'False NoConflicts' },
      },
    ],
  )
  await eventually(async () => (await parentOf('web')).ResolvedRefs === 'True ResolvedRefs')
  assert.deepEqual(await parentOf('web'), { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' })
  const slice = await cluster.client.of(endpointSlices).get({ namespace: ingressPlace.namespace, name: `${gatewayServiceName('default/one')}-n1` })
  assert.deepEqual([slice.endpoints?.[0]?.addresses, slice.ports?.map((one) => one.port)], [['192.0.2.1'], [port]])
})

test('ING-05 two Gateways with the same port keep their routes apart', async () => {
  await makeGateway('two')
  const [one, two] = [await portOf('one'), await portOf('two')]
  assert.notEqual(one, two)
  await eventually(async () => (await statusOf(two, '/web')) === 404)
  assert.equal(await statusOf(one, '/web'), 503)
})

test('ING-05 the oldest Gateway on port 80 also gets what no Ingress takes of the ingress’s own port', async () => {
  assert.equal(await statusOf(ports.http, '/web'), 503)
  assert.equal(await statusOf(ports.http, '/other'), 404)
  const backend = { service: { name: 'missing', port: { number: 80 } } }
  const paths = [{ path: '/other', pathType: 'Prefix', backend }]
  await cluster.client.of(ingresses).create({ metadata: { namespace, name: 'web' }, spec: { rules: [{ host: 'a.test', http: { paths } }] } })
  await eventually(async () => (await statusOf(ports.http, '/other')) === 503)
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
  await cluster.client.of(services).patch(ingressPlace, 'merge', { status }, { subresource: 'status' })
  await eventually(async () => (await gatewayOf('one')).status?.addresses?.[0]?.value === '192.0.2.1')
})

test('ING-05 a route whose Service does not exist answers 500 and says BackendNotFound, until the Service exists', async () => {
  await makeRoute('late', 'one', [{ matches: [{ path: { type: 'Exact', value: '/late' } }], backendRefs: [{ name: 'late', port: 80 }] }])
  const port = await portOf('one')
  await eventually(async () => (await statusOf(port, '/late')) === 500)
  await eventually(async () => (await parentOf('late')).ResolvedRefs === 'False BackendNotFound')
  assert.equal((await parentOf('late')).Accepted, 'True Accepted')
  await makeService('late')
  await eventually(async () => (await statusOf(port, '/late')) === 503)
  await eventually(async () => (await parentOf('late')).ResolvedRefs === 'True ResolvedRefs')
})

const encoded = (text: string) => Buffer.from(text).toString('base64')

async function certificateOf(port: number, servername: string): Promise<string> {
  const socket = tls.connect({ host: ingressHost, port, servername, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('ING-05 an HTTPS listener serves the certificate of another namespace once a ReferenceGrant permits it and the Secret can be read', async () => {
  await cluster.client.of(namespaces).create({ metadata: { name: 'keys' }, spec: {} })
  const { cert, key } = await testCertificates('CN=tls.test')
  const certificateRefs = [{ name: 'pair', namespace: 'keys' }]
  await makeGateway('tls', [httpListener, { name: 'https', hostname: 'tls.test', port: 443, protocol: 'HTTPS', tls: { certificateRefs } }])
  await makeRoute('tls', 'tls', [{ backendRefs: [{ name: 'web', port: 80 }] }])
  const resolved = async () => {
    const { status } = await gatewayOf('tls')
    const https = status?.listeners?.find(({ name }) => name === 'https')
    return [short(https?.conditions).ResolvedRefs, short(https?.conditions).Programmed, short(status?.conditions).Programmed, https?.attachedRoutes]
  }
  await eventually(async () => (await resolved())[3] === 1)
  const refused = ['False RefNotPermitted', 'False Invalid', 'True Programmed', 1]
  await eventually(async () => isDeepStrictEqual(await resolved(), refused))
  const data = { 'tls.crt': encoded('no certificate'), 'tls.key': encoded(key) }
  await cluster.client.of(secrets).create({ metadata: { namespace: 'keys', name: 'pair' }, type: 'kubernetes.io/tls', data })
  const spec = { from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace }], to: [{ group: '', kind: 'Secret' }] }
  await cluster.client.of(referenceGrants).create({ metadata: { namespace: 'keys', name: 'all' }, spec })
  await eventually(async () => (await resolved())[0] === 'False InvalidCertificateRef')
  // Neighbours are served meanwhile.
  assert.equal(await statusOf(await portOf('tls'), '/'), 503)
  await cluster.client.of(secrets).patch({ namespace: 'keys', name: 'pair' }, 'merge', { data: { 'tls.crt': encoded(cert) } })
  await eventually(async () => isDeepStrictEqual((await resolved()).slice(0, 2), ['True ResolvedRefs', 'True Programmed']))
  const port = await portOf('tls', 443)
  await eventually(async () => (await certificateOf(port, 'tls.test').catch(() => '')) === 'tls.test')
  assert.equal(await certificateOf(port, 'other.test'), 'default')
})

test('ING-05 a GRPCRoute is attached by service and method, and its status is written', async () => {
  await makeGateway('grpc')
  const matches = [{ method: { service: 'pkg.Service', method: 'Call' } }, { method: { method: 'Any' } }]
  const spec = { parentRefs: [{ name: 'grpc' }], rules: [{ matches, backendRefs: [{ name: 'web', port: 80 }] }] }
  await cluster.client.of(grpcRoutes).create({ metadata: { namespace, name: 'grpc' }, spec })
  const port = await portOf('grpc')
  await eventually(async () => (await statusOf(port, '/pkg.Service/Call')) === 503)
  assert.deepEqual([await statusOf(port, '/other.Service/Any'), await statusOf(port, '/pkg.Service/Other'), await statusOf(port, '/Any')], [503, 404, 404])
  const conditions = async () => short((await cluster.client.of(grpcRoutes).get({ namespace, name: 'grpc' })).status?.parents?.[0]?.conditions)
  await eventually(async () => isDeepStrictEqual(await conditions(), { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' }))
})

test('ING-05 a listener admits the routes of namespaces with its labels, and follows the labels', async () => {
  await cluster.client.of(namespaces).create({ metadata: { name: 'team' }, spec: {} })
  const allowedRoutes = { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'a' } } } }
  await makeGateway('chosen', [{ ...httpListener, allowedRoutes }])
  const parentRefs = [{ name: 'chosen', namespace }]
  await cluster.client
    .of(httpRoutes)
    .create({ metadata: { namespace: 'team', name: 'r' }, spec: { parentRefs, rules: [{ backendRefs: [{ name: 'web', namespace, port: 80 }] }] } })
  const conditions = async () => short((await cluster.client.of(httpRoutes).get({ namespace: 'team', name: 'r' })).status?.parents?.[0]?.conditions)
  await eventually(async () => (await conditions()).Accepted === 'False NotAllowedByListeners')
  assert.equal((await conditions()).ResolvedRefs, 'False RefNotPermitted')
  await cluster.client.of(namespaces).patch({ name: 'team' }, 'merge', { metadata: { labels: { team: 'a' } } })
  await eventually(async () => (await conditions()).Accepted === 'True Accepted')
  // The backend of another namespace is not permitted.
  await eventually(async () => (await statusOf(await portOf('chosen'), '/')) === 500)
})

test('ING-05 listeners in conflict are refused, and the others of the Gateway are served', async () => {
  const secure: Listener = { name: 'b', port: 81, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'pair' }] } }
  await makeGateway('conflicts', [httpListener, { name: 'a', port: 81, protocol: 'HTTP' }, secure, { name: 'udp', port: 82, protocol: 'UDP' }])
  await eventually(async () => short((await gatewayOf('conflicts')).status?.conditions).Accepted === 'True ListenersNotValid')
  const { status } = await gatewayOf('conflicts')
  const [, a, b, udp] = status?.listeners?.map(({ conditions }) => short(conditions)) ?? []
  assert.deepEqual([a?.Conflicted, b?.Accepted, udp?.Accepted], ['True ProtocolConflict', 'False ProtocolConflict', 'False UnsupportedProtocol'])
  await portOf('conflicts')
  const service = await serviceOf('conflicts')
  assert.deepEqual(
    service.spec.ports?.map(({ port }) => port),
    [80],
  )
})

test('ING-05 a deleted Gateway takes its Service, its port and the statuses of its routes with it', async () => {
  await makeRoute('leaving', 'two', [{ backendRefs: [{ name: 'web', port: 80 }] }])
  await eventually(async () => (await parentOf('leaving')).Accepted === 'True Accepted')
  const port = await portOf('two')
  await cluster.client.of(gateways).delete({ namespace, name: 'two' })
  await eventually(async () => (await statusOf(port, '/')) === 0)
  await eventually(async () => (await routeOf('leaving')).status?.parents?.length === 0)
  await assert.rejects(serviceOf('two'), /not found/)
})
