/**
 * TLSRoutes and a BackendTLSPolicy on a real node: TLS passes through, or ends at the Gateway, which opens a TLS connection of its own. The backend is the
 * node's kubelet: its certificate is signed by the cluster's authority, and it answers 401 to a client without credentials.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { testCertificates } from '#testing/testCertificates'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-gwtls'
const [tlsPort, httpPort] = [8443, 8080]
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>
let node = { name: '', address: '' }

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '1', '--ingress'])
  const jsonpath = 'jsonpath={.items[0].metadata.name} {.items[0].status.addresses[?(@.type=="InternalIP")].address}'
  const [nodeName = '', address = ''] = (await cluster.must(['get', 'nodes', '-o', jsonpath])).split(' ')
  node = { name: nodeName, address }
  await apply(...(await objects()))
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const apply = (...items: unknown[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
const of = (kind: string, objectName: string, rest: object) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind,
  metadata: { name: objectName },
  ...rest,
})
const backendRefs = [{ name: 'kubelet', port: 443 }]

async function objects() {
  const { cert, key } = await testCertificates('CN=ended', ['ended.test'])
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubelet', labels: { 'kubernetes.io/service-name': 'kubelet' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [node.address] }],
    ports: [{ name: 'https', port: 10_250 }],
  }
  const tlsListener = { port: tlsPort, protocol: 'TLS' }
  const listeners = [
    { ...tlsListener, name: 'through', hostname: '*.through.test', tls: { mode: 'Passthrough' } },
    { ...tlsListener, name: 'ended', hostname: 'ended.test', tls: { mode: 'Terminate', certificateRefs: [{ name: 'ended' }] } },
    { name: 'http', port: httpPort, protocol: 'HTTP' },
  ]
  const parentRefs = [{ name: 'tls' }]
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'ended' }, type: 'kubernetes.io/tls', stringData: { 'tls.crt': cert, 'tls.key': key } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'kubelet' }, spec: { ports: [{ name: 'https', port: 443, targetPort: 10_250 }] } },
    slice,
    of('Gateway', 'tls', { spec: { gatewayClassName: 'skiff', listeners } }),
    of('TLSRoute', 'through', { spec: { parentRefs, hostnames: ['*.through.test'], rules: [{ backendRefs }] } }),
    of('TLSRoute', 'ended', { spec: { parentRefs, hostnames: ['ended.test'], rules: [{ backendRefs }] } }),
    of('HTTPRoute', 'http', { spec: { parentRefs, rules: [{ backendRefs }] } }),
    policy(node.name),
  ]
}

/** The namespace's own ConfigMap has the cluster's authority. */
const policy = (hostname: string) =>
  of('BackendTLSPolicy', 'kubelet', {
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: 'kubelet' }],
      validation: { hostname, caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'kube-root-ca.crt' }] },
    },
  })

interface Answer {
  /** 0: the connection was refused or cut. */
  readonly status: number
  readonly certificate: string
}

async function ask(servername: string | undefined): Promise<Answer> {
  const to = { host: node.address, path: '/pods', agent: false as const, timeout: 5000 }
  const request = servername === undefined ? http.get({ ...to, port: httpPort }) : https.get({ ...to, port: tlsPort, servername, rejectUnauthorized: false })
  request.on('timeout', () => request.destroy(new Error('no answer')))
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    const certificate = response.socket instanceof tls.TLSSocket ? String(response.socket.getPeerCertificate().subject.CN) : ''
    response.resume()
    return { status: response.statusCode ?? 0, certificate }
  } catch {
    return { status: 0, certificate: '' }
  }
}

const isSoon = (what: string, servername: string | undefined, wanted: number) =>
  eventually(
    what,
    20_000,
    () => ask(servername),
    ({ status }) => status === wanted,
  )

test('ING-05 a TLSRoute leads to its backend by the server name, with the backend’s own certificate; another name is refused', options, async () => {
  const { certificate } = await isSoon('the kubelet’s answer', 'a.through.test', 401)
  assert.equal(certificate, `system:node:${node.name}`)
  assert.deepEqual(await ask('through.test'), { status: 0, certificate: '' })
  assert.deepEqual(await ask('other.test'), { status: 0, certificate: '' })
  const jsonpath = 'jsonpath={range .status.listeners[*]}{.name}={.attachedRoutes} {end}'
  assert.equal((await cluster.must(['get', 'gateway', 'tls', '-o', jsonpath])).trim(), 'through=1 ended=1 http=1')
})

test('ING-05 TLS ends at the Gateway with the listener’s certificate, on the port on which other names pass through', options, async () => {
  const { certificate } = await isSoon('the kubelet’s answer', 'ended.test', 401)
  assert.equal(certificate, 'ended')
})

test('ING-05 a BackendTLSPolicy makes requests go over verified TLS, and ones that cannot be verified fail', options, async () => {
  await isSoon('the kubelet’s answer', undefined, 401)
  await apply(policy('other.test'))
  await isSoon('a refusal', undefined, 502)
  await isSoon('a cut connection', 'ended.test', 0)
  assert.equal((await ask('a.through.test')).status, 401)
  await apply(policy(node.name))
  await isSoon('the kubelet’s answer', undefined, 401)
  const jsonpath = 'jsonpath={.status.ancestors[0].conditions[*].reason}'
  assert.equal(await cluster.must(['get', 'backendtlspolicy', 'kubelet', '-o', jsonpath]), 'Accepted ResolvedRefs')
})

test('ARC-04 deleting a cluster with a Gateway for TLS leaves nothing on the host', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
