/** The ingress controller against the real API server, with its own rights: classes, routes, certificates, Events and statuses. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { endpointSlices, events, ingressClasses, ingresses, namespaces, secrets } from '#client/builtIn'
import { ingressPlace } from '#ingress/place'
import { ensureIngressObjects, removeIngressObjects } from '#main/layouts/ingress/ingressObjects'
import { realClock as clock } from '#testing/realClock'
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
  await ingress.close()
})

async function statusOf(name: string, path = '/'): Promise<number> {
  const request = http.get({ host: ingressHost, port: ports.http, path, headers: { host: name }, agent: false })
  request.on('error', () => {})
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    response.resume()
    return response.statusCode ?? 0
  } catch {
    return 0
  }
}

async function certificateOf(servername: string): Promise<string> {
  const socket = tls.connect({ host: ingressHost, port: ports.https, servername, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

const eventsOf = async (name: string) =>
  (await cluster.client.of(events).list({ namespace })).items
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ reason, message }) => `${reason}: ${message}`)

function ingressOf(name: string, hostName: string, spec: object = {}) {
  const paths = [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'missing', port: { number: 80 } } } }]
  return { metadata: { namespace, name }, spec: { rules: [{ host: hostName, http: { paths } }], ...spec } }
}

/** A route without endpoints gets 503, no route 404. */
const routed = 503

test('ING-01 an Ingress without a class gets the default class, is routed, and gets the address of the node whose ingress is ready', async () => {
  await eventually(async () => (await statusOf('a.test')) === 404)
  const made = await cluster.client.of(ingresses).create(ingressOf('a', 'a.test'))
  assert.equal(made.spec.ingressClassName, 'skiff')
  await eventually(async () => (await statusOf('a.test')) === routed)
  const slice = await cluster.client.of(endpointSlices).get({ namespace: ingressPlace.namespace, name: 'skiff-ingress-n1' })
  assert.deepEqual(
    slice.endpoints?.map(({ addresses, nodeName }) => [...addresses, nodeName]),
    [['192.0.2.1', 'n1']],
  )
  await eventually(async () => (await cluster.client.of(ingresses).get({ namespace, name: 'a' })).status?.loadBalancer?.ingress?.[0]?.ip === '192.0.2.1')
})

test('ING-01 an Ingress of another class is not routed, and one that changes its class is dropped', async () => {
  await cluster.client.of(ingresses).create(ingressOf('other', 'other.test', { ingressClassName: 'nginx' }))
  await cluster.client.of(ingresses).create(ingressOf('b', 'b.test'))
  await eventually(async () => (await statusOf('b.test')) === routed)
  assert.equal(await statusOf('other.test'), 404)
  await cluster.client.of(ingresses).patch({ namespace, name: 'b' }, 'merge', { spec: { ingressClassName: 'nginx' } })
  await eventually(async () => (await statusOf('b.test')) === 404)
})

test('ING-02 the younger of two Ingresses with one path gets an Event', async () => {
  await cluster.client.of(ingresses).create(ingressOf('z-copy', 'a.test'))
  const message = 'NotServed: Parts of the Ingress are not served: path / of host "a.test" belongs to an older Ingress'
  await eventually(async () => (await eventsOf('z-copy')).includes(message))
  assert.deepEqual(await eventsOf('a'), [])
})

test('ING-02 a certificate is that of its Secret as soon as it can be used; until then an Event says why not', async () => {
  await cluster.client.of(ingresses).create(ingressOf('t', 't.test', { tls: [{ hosts: ['t.test'], secretName: 'pair' }] }))
  await eventually(async () => (await eventsOf('t')).some((text) => text.includes('Secret pair: there is no Secret')))
  const [one, two] = await Promise.all([testCertificates('CN=one'), testCertificates('CN=two')])
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const dataOf = (cert: string, key: string) => ({ 'tls.crt': encoded(cert), 'tls.key': encoded(key) })
  await cluster.client.of(secrets).create({ metadata: { namespace, name: 'pair' }, type: 'kubernetes.io/tls', data: dataOf(one.cert, two.key) })
  await eventually(async () => (await eventsOf('t')).some((text) => text.includes('its key does not belong to its certificate')))
  assert.equal(await certificateOf('t.test'), 'default')
  for (const [name, { cert, key }] of Object.entries({ one, two })) {
    await cluster.client.of(secrets).patch({ namespace, name: 'pair' }, 'merge', { data: dataOf(cert, key) })
    await eventually(async () => (await certificateOf('t.test')) === name)
  }
})

test('ING-01 without its class nothing is routed, and with it everything is again', async () => {
  await cluster.client.of(ingressClasses).delete({ name: 'skiff' })
  await eventually(async () => (await statusOf('a.test')) === 404)
  await ensureIngressObjects(cluster.client, clock, new AbortController().signal)
  await eventually(async () => (await statusOf('a.test')) === routed)
})

test('ING-01 turning the ingress off removes its class, its namespace and the addresses of Ingresses', async () => {
  await ingress.stop()
  assert.equal(await statusOf('a.test'), 0)
  await removeIngressObjects(cluster.client, new AbortController().signal)
  assert.deepEqual((await cluster.client.of(ingressClasses).list()).items, [])
  assert.equal((await cluster.client.of(ingresses).get({ namespace, name: 'a' })).status?.loadBalancer?.ingress, undefined)
  await eventually(async () => {
    const { items } = await cluster.client.of(namespaces).list()
    return !items.some(({ metadata }) => metadata.name === ingressPlace.namespace)
  })
})
