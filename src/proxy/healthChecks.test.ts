import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { EventRecorder } from '#client/eventRecorder'
import { createHealthCheckServer, healthCheckAnswer, healthChecksOf, hostsOf } from './healthCheckServer.ts'
import { createHealthChecks } from './healthChecks.ts'

function aService(name: string, spec: Partial<Service['spec']> = {}): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shop' },
    spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_001, ipFamilies: ['IPv4'], ...spec },
  } as Service
}

type SliceEndpoint = NonNullable<EndpointSlice['endpoints']>[number]

function aSlice(endpoints: readonly SliceEndpoint[], { name = 'web-1', addressType = 'IPv4', ports = [{ port: 8080 }] } = {}): EndpointSlice {
  const metadata = { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } }
  return { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType, endpoints: [...endpoints], ports }
}

const here = (address: string, conditions: SliceEndpoint['conditions'] = { ready: true }): SliceEndpoint => ({
  addresses: [address],
  nodeName: 'self',
  conditions,
})

function countOf(slices: readonly EndpointSlice[], service = aService('web')): number | undefined {
  return healthChecksOf({ services: [service], slices, nodePortCidrs: undefined }, 'self')[0]?.localEndpoints
}

test('SVC-10 a health check counts the ready endpoints of its node, each address once, and no endpoint that terminates', () => {
  const elsewhere = { ...here('10.244.1.1'), nodeName: 'other' }
  const terminating = here('10.244.0.3', { ready: false, serving: true, terminating: true })
  assert.equal(countOf([aSlice([here('10.244.0.1'), here('10.244.0.2', {}), elsewhere, terminating])]), 2)
  assert.equal(countOf([aSlice([here('10.244.0.1')]), aSlice([here('10.244.0.1')], { name: 'web-2' })]), 1)
  assert.equal(countOf([aSlice([elsewhere, terminating])]), 0)
  assert.equal(countOf([aSlice([here('10.244.0.1')], { ports: [] })]), 0)
  assert.equal(countOf([]), 0)
})

test('SVC-10 a health check counts a pod with addresses of two families as one endpoint', () => {
  const slices = [aSlice([here('10.244.0.1')]), aSlice([here('fd01::1')], { name: 'web-6', addressType: 'IPv6' })]
  assert.equal(countOf(slices, aService('web', { ipFamilies: ['IPv4', 'IPv6'] })), 1)
  assert.equal(countOf(slices, aService('web', { ipFamilies: ['IPv6'] })), 1)
})

test('SVC-10 a health check answers 200 only with a local endpoint and a healthy proxy, with upstream’s body and headers', () => {
  const check = { namespace: 'shop', name: 'web', port: 30_001, localEndpoints: 2, service: aService('web') }
  const { status, headers, body } = healthCheckAnswer(check, true)
  assert.equal(status, 200)
  assert.equal(body, '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}')
  assert.equal(headers['x-load-balancing-endpoint-weight'], '2')
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(healthCheckAnswer(check, false).status, 503)
  const without = healthCheckAnswer({ ...check, localEndpoints: 0 }, true)
  assert.deepEqual([without.status, without.headers['x-load-balancing-endpoint-weight']], [503, '0'])
})

test('SVC-10 health checks listen where node ports answer: everywhere, on whole families, or on the node’s addresses in the ranges', () => {
  const local = ['127.0.0.1', '10.0.0.5', '192.168.1.2', '::1', 'fd00::5', 'fe80::1']
  assert.deepEqual(hostsOf(undefined, local), [undefined])
  assert.deepEqual(hostsOf(['10.0.0.0/8', 'fd00::/8'], local), ['10.0.0.5', 'fd00::5'])
  assert.deepEqual(hostsOf(['0.0.0.0/0', '10.0.0.0/8', 'fd00::/8'], local), ['0.0.0.0', 'fd00::5'])
  assert.deepEqual(hostsOf(['172.16.0.0/12', 'fe80::/10'], local), [])
})

/** A port of 127.0.0.1 that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

interface World {
  readonly clock: VirtualClock
  readonly events: string[]
  setHealthy(isHealthy: boolean): void
  /** Serves until `until` holds. */
  serve(services: readonly Service[], slices: readonly EndpointSlice[], until: () => Promise<boolean>): Promise<void>
}

async function withServer(work: (world: World) => Promise<void>): Promise<void> {
  const clock = new VirtualClock()
  const events: string[] = []
  let isHealthy = true
  const stop = new AbortController()
  const recorder = { event: (_: unknown, type: string, reason: string, message: string) => events.push(`${type} ${reason}: ${message}`) }
  const deps = {
    clock,
    log: noLog,
    events: recorder as unknown as EventRecorder,
    health: { livez: () => ({ isHealthy, body: {} }) },
    nodeName: 'self',
  }
  const server = createHealthCheckServer(deps, stop.signal)
  try {
    await work({
      clock,
      events,
      setHealthy: (now) => {
        isHealthy = now
      },
      serve: async (services, slices, until) => {
        server.serve({ services, slices, nodePortCidrs: ['127.0.0.1/32'] })
        while (!(await until())) await new Promise((resolve) => setImmediate(resolve))
      },
    })
  } finally {
    stop.abort()
    await server.ended
  }
}

const ask = (port: number) => fetch(`http://127.0.0.1:${port}/any/path`)
const answers = (port: number, status: number) => async () => (await ask(port).catch(() => undefined))?.status === status
const refuses = (port: number) => async () => (await ask(port).catch(() => undefined)) === undefined

test('SVC-10 a health check port opens with its Service, follows endpoints and the proxy’s health, and closes with the Service', async () => {
  await withServer(async ({ serve, setHealthy }) => {
    const port = await freePort()
    const web = aService('web', { healthCheckNodePort: port })
    await serve([web], [aSlice([here('10.244.0.1')])], answers(port, 200))
    const answer = await ask(port)
    assert.equal(answer.headers.get('x-load-balancing-endpoint-weight'), '1')
    assert.deepEqual(await answer.json(), { service: { namespace: 'shop', name: 'web' }, localEndpoints: 1, serviceProxyHealthy: true })
    await serve([web], [], answers(port, 503))
    await serve([web], [aSlice([here('10.244.0.1')])], answers(port, 200))
    setHealthy(false)
    assert.equal((await ask(port)).status, 503)
    const other = await freePort()
    await serve([aService('web', { healthCheckNodePort: other })], [], answers(other, 503))
    assert.equal(await refuses(port)(), true)
    await serve([], [], refuses(other))
  })
})

test('SVC-10 a health check port that is taken gives one Event, leaves other ports alone, and opens once it is free', async () => {
  await withServer(async ({ serve, events, clock }) => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const other = await freePort()
    const services = [aService('web', { healthCheckNodePort: port }), aService('db', { healthCheckNodePort: other })]
    await serve(services, [], answers(other, 503))
    await serve([...services], [aSlice([here('10.244.0.1')])], answers(other, 503))
    assert.deepEqual(events, [
      `Warning FailedToStartServiceHealthcheck: node self failed to start healthcheck "shop/web" on port ${port}: listen tcp 127.0.0.1:${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    ])
    await new Promise((resolve) => taken.close(resolve))
    await clock.advance(30_000)
    const isOpen = answers(port, 200)
    while (!(await isOpen())) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(events.length, 1)
  })
})

test('SVC-10 a proxy opens health check ports for LoadBalancers with the policy Local alone, after the kernel has their rules', async () => {
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const stop = new AbortController()
  const clock = new VirtualClock()
  const events = { event: (_: unknown, ...words: readonly string[]) => assert.fail(words.join(' ')) } as unknown as EventRecorder
  const checks = createHealthChecks({ clock, log: noLog, events, health: { livez: () => ({ isHealthy: true, body: {} }) }, nodeName: 'self' }, stop.signal)
  const services = [
    aService('web', { healthCheckNodePort: ports[0] }),
    aService('cluster', { healthCheckNodePort: ports[1], externalTrafficPolicy: 'Cluster' }),
    aService('nodeport', { healthCheckNodePort: ports[2], type: 'NodePort' }),
  ]
  checks.take({ services, slices: [], nodePortCidrs: ['127.0.0.1/32'] })
  assert.equal(await refuses(ports[0])(), true)
  checks.applied()
  const isOpen = answers(ports[0], 503)
  while (!(await isOpen())) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(await refuses(ports[1])(), true)
  assert.equal(await refuses(ports[2])(), true)
  stop.abort()
  const isClosed = refuses(ports[0])
  while (!(await isClosed())) await new Promise((resolve) => setImmediate(resolve))
})
