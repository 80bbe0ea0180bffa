/** The component that opens local ports, over an API in memory and a forwarder whose answers the test decides. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServiceSpec } from '#api/gen/types/core.v1'
import { type Logger, noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import type { EventRecorder } from '#client/eventRecorder'
import type { PortHolder } from '#host/portHolder'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createLocalPorts } from './localPorts.ts'
import type { ForwarderRun } from './portForwarder.ts'

const address = '10.88.1.10'
const servicePath = (name: string) => `/api/v1/namespaces/d/services/${name}`

class World {
  readonly server = new HistoryTransport()
  readonly clock = new VirtualClock()
  readonly events: string[] = []
  /** The reasons of the log's warnings about ports. */
  readonly reasons: string[] = []
  /** Ports that a bind finds taken. */
  readonly taken = new Set<number>()
  /** What is open, as `PROTOCOL/PORT → targets`. */
  readonly open = new Set<string>()
  holder: PortHolder | undefined
  /** How often holders were looked for. */
  lookups = 0
  failsLookups = false
  readonly apiPorts = new Map([[6443, 'main']])
  /** The port whose forwarding fails with an error that no bind makes. */
  broken: number | undefined
  run: ForwarderRun | undefined = this.newRun()
  onChange = () => {}

  newRun(): ForwarderRun {
    return {
      open: async ({ protocol, port, targets }) => {
        if (this.taken.has(port)) throw Object.assign(new Error('bind failed'), { code: 'EADDRINUSE', address: '127.0.0.1' })
        if (this.broken === port) throw Object.assign(new Error('/secret/place: not now'), { code: 'EMFILE', address: '127.0.0.1' })
        const text = (list: typeof targets) => `${protocol}/${port} → ${list.map((one) => `${one.address}:${one.port}`).join(' ')}`
        let shown = text(targets)
        this.open.add(shown)
        return {
          setTargets: (renewed) => {
            this.open.delete(shown)
            shown = text(renewed)
            this.open.add(shown)
          },
          close: () => void this.open.delete(shown),
        }
      },
    }
  }

  putService(name: string, spec: Partial<ServiceSpec>, ips = [address], uid = name): void {
    const ingress = ips.map((ip) => ({ ip, ports: spec.ports?.map(({ port, protocol = 'TCP' }) => ({ port, protocol })) }))
    const metadata = { name, namespace: 'd', uid, creationTimestamp: '2026-01-01T00:00:00Z' }
    this.server.put(servicePath(name), anObject('Service', metadata, { spec, status: { loadBalancer: { ingress } } }))
  }

  putNode(ip: string): void {
    const status = { addresses: [{ type: 'InternalIP', address: ip }], conditions: [{ type: 'Ready', status: 'True' }] }
    this.server.put(`/api/v1/nodes/${ip}`, anObject('Node', { name: ip }, { status }))
  }

  /** Lets the component see what was changed. */
  settle(): Promise<void> {
    return this.clock.advance(100)
  }
}

async function withPorts(work: (world: World) => Promise<void>): Promise<void> {
  const world = new World()
  const { clock } = world
  const informers = createSharedInformerFactory(createClient(world.server), { clock, random: seededRandom(1), log: noLog })
  const event: EventRecorder['event'] = (regarding, type, reason, message) => {
    world.events.push(`${'metadata' in regarding ? regarding.metadata?.name : ''} ${type} ${reason} ${message}`)
  }
  const log: Logger = {
    ...noLog,
    warn: (_message, values) => void world.reasons.push(String(values?.why)),
    error: (error) => void world.reasons.push(String(error)),
  }
  const component = createLocalPorts(
    {
      informers,
      clock,
      log,
      events: { event, flush: async () => {} },
      forwarder: {
        current: () => world.run,
        onChange: (call) => {
          world.onChange = call
        },
      },
      holderOf: async () => {
        world.lookups++
        if (world.failsLookups) throw new Error('/proc is not mounted')
        return world.holder
      },
      clustersByApiPort: async () => world.apiPorts,
    },
    { cluster: 'main', isReal: (ip) => ip.startsWith('10.88.1.') },
  )
  const stop = new AbortController()
  world.putNode(address)
  const running = Promise.all([component.run(stop.signal), informers.run(stop.signal)])
  running.catch(() => {})
  try {
    await clock.advance(1000)
    await work(world)
  } finally {
    stop.abort()
    await clock.advance(1000)
    await running
  }
  assert.deepEqual([...world.open], [])
}

const balanced = { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_080 }] }
const withoutNodePort = { type: 'LoadBalancer', ports: [{ port: 80 }], allocateLoadBalancerNodePorts: false }
const nginx = { pid: 812, program: 'nginx', words: ['nginx'] }

test('SVC-03 a load balancer and its node port are open while the Service is there, at the nodes that it has', () =>
  withPorts(async (world) => {
    world.putService('web', balanced)
    await world.settle()
    assert.deepEqual([...world.open].sort(), [`TCP/30080 → ${address}:30080`, `TCP/80 → ${address}:30080`])
    world.putNode('10.88.1.11')
    world.putService('web', balanced, ['10.88.1.11'])
    await world.settle()
    assert.deepEqual([...world.open].sort(), [`TCP/30080 → ${address}:30080 10.88.1.11:30080`, 'TCP/80 → 10.88.1.11:30080'])
    world.server.remove(servicePath('web'))
    await world.settle()
    assert.deepEqual([...world.open], [])
    assert.deepEqual(world.events, [])
  }))

test('SVC-03 a taken port gets one Event with the node port, without its holder, and is opened within 2 s after the holder has gone', () =>
  withPorts(async (world) => {
    world.taken.add(80)
    world.holder = nginx
    world.putService('web', balanced)
    await world.clock.advance(60_000)
    assert.deepEqual(world.events, ['web Warning LocalPortUnavailable Port 80 is not reachable on localhost: it is in use on the host; use localhost:30080'])
    assert.deepEqual(world.reasons, ['127.0.0.1:80: bind failed; held by nginx (pid 812)'])
    assert.equal(world.lookups, 1)
    world.taken.clear()
    await world.clock.advance(2000)
    assert.ok(world.open.has(`TCP/80 → ${address}:30080`))
    assert.equal(world.events.at(-1), 'web Normal LocalPortOpened Port 80 is reachable on localhost now')
  }))

const holders: readonly { name: string; holder: PortHolder | undefined; want: string }[] = [
  { name: 'a process that the host does not tell', holder: undefined, want: 'another process' },
  {
    name: 'another cluster’s forwarder',
    holder: { pid: 7, program: 'node', words: ['node', 'skiff.mjs', 'forwarder', '--cluster', 'two'] },
    want: 'cluster two (pid 7)',
  },
  {
    name: 'another cluster’s server',
    holder: { pid: 7, program: 'node', words: ['node', 'skiff.mjs', 'server', '--cluster-dir', '/home/clusters/two', '--v', '2'] },
    want: 'cluster two (pid 7)',
  },
  { name: 'this cluster', holder: { pid: 7, program: 'node', words: ['node', 'skiff.mjs', 'forwarder', '--cluster', 'main'] }, want: 'this cluster (pid 7)' },
  { name: 'a program with control characters in its name', holder: { pid: 7, program: 'a\u001b[2J', words: [] }, want: 'a\\u001b[2J (pid 7)' },
]
for (const { name, holder, want } of holders) {
  test(`SVC-03 the log about a taken port names ${name}, the Event does not`, () =>
    withPorts(async (world) => {
      world.taken.add(80)
      world.holder = holder
      world.putService('web', balanced)
      await world.settle()
      assert.deepEqual(world.events, ['web Warning LocalPortUnavailable Port 80 is not reachable on localhost: it is in use on the host; use localhost:30080'])
      assert.deepEqual(world.reasons, [`127.0.0.1:80: bind failed; held by ${want}`])
    }))
}

test('SVC-03 a taken port without a node port has a free high port meanwhile, the same one after each start', async () => {
  const substitutes = new Set<string>()
  for (let start = 0; start < 2; start++) {
    await withPorts(async (world) => {
      world.taken.add(80)
      world.holder = nginx
      world.putService('web', withoutNodePort)
      await world.settle()
      const [event = ''] = world.events
      const port = /; use localhost:(2\d{4})$/.exec(event)?.[1] ?? ''
      assert.deepEqual([...world.open], [`TCP/${port} → ${address}:80`])
      substitutes.add(port)
      world.taken.clear()
      await world.clock.advance(2000)
      assert.deepEqual([...world.open], [`TCP/80 → ${address}:80`])
    })
  }
  assert.equal(substitutes.size, 1)
})

test('SVC-03 a substitute that is taken too is another one', () =>
  withPorts(async (world) => {
    world.taken.add(80)
    world.putService('web', withoutNodePort)
    await world.settle()
    const first = Number(/localhost:(\d+)$/.exec(world.events[0] ?? '')?.[1])
    world.server.remove(servicePath('web'))
    await world.settle()
    world.taken.add(first)
    world.putService('web', withoutNodePort, [address], 'again')
    await world.settle()
    assert.match(world.events[1] ?? '', /use localhost:2\d{4}$/)
    assert.doesNotMatch(world.events[1] ?? '', new RegExp(`localhost:${first}$`))
  }))

test('SVC-03 a substitute is never the port of the API of a cluster', () =>
  withPorts(async (world) => {
    world.taken.add(80)
    world.putService('web', withoutNodePort)
    await world.settle()
    const first = Number(/localhost:(\d+)$/.exec(world.events[0] ?? '')?.[1])
    world.server.remove(servicePath('web'))
    await world.settle()
    world.apiPorts.set(first, 'stopped')
    world.putService('web', withoutNodePort, [address], 'again')
    await world.settle()
    assert.match(world.events[1] ?? '', /use localhost:2\d{4}$/)
    assert.doesNotMatch(world.events[1] ?? '', new RegExp(`localhost:${first}$`))
  }))

test('SVC-03 the Event about a port that fails otherwise has no text of the host', () =>
  withPorts(async (world) => {
    world.broken = 80
    world.putService('web', balanced)
    await world.settle()
    assert.deepEqual(world.events, [
      'web Warning LocalPortUnavailable Port 80 is not reachable on localhost: it cannot be opened on the host; use localhost:30080',
    ])
    assert.deepEqual(world.reasons, ['127.0.0.1:80: /secret/place: not now'])
    world.broken = undefined
    await world.clock.advance(2000)
    assert.ok(world.open.has(`TCP/80 → ${address}:30080`))
  }))

test('SVC-03 an error while searching the holder of a port affects no other port', () =>
  withPorts(async (world) => {
    world.taken.add(30_080)
    world.failsLookups = true
    world.putService('web', balanced)
    await world.settle()
    assert.deepEqual([...world.open], [`TCP/80 → ${address}:30080`])
    assert.deepEqual(world.reasons, ['Error: /proc is not mounted'])
    world.taken.clear()
    await world.clock.advance(2000)
    assert.equal(world.open.size, 2)
  }))

test('SVC-03 the port of a cluster’s API is never bound for a Service', () =>
  withPorts(async (world) => {
    world.putService('web', { type: 'LoadBalancer', ports: [{ port: 6443, nodePort: 30_080 }] })
    await world.settle()
    assert.deepEqual([...world.open], [`TCP/30080 → ${address}:30080`])
    assert.deepEqual(world.events, ['web Warning LocalPortUnavailable Port 6443 is not reachable on localhost: it is in use on the host; use localhost:30080'])
    assert.deepEqual(world.reasons, ['it is the port of the API of cluster main'])
    assert.equal(world.lookups, 0)
  }))

test('SVC-03 a load balancer with source ranges without 127.0.0.1 gets one Event and no port', () =>
  withPorts(async (world) => {
    world.putService('web', { ...balanced, loadBalancerSourceRanges: ['10.0.0.0/8'] })
    await world.clock.advance(30_000)
    assert.deepEqual([...world.open], [`TCP/30080 → ${address}:30080`])
    assert.deepEqual(world.events, [
      'web Warning LocalPortUnavailable Port 80 is not reachable on localhost: 127.0.0.1 is not in its loadBalancerSourceRanges; use localhost:30080',
    ])
  }))

test('SVC-02 a node port that is taken gets an Event, and the nodes serve it', () =>
  withPorts(async (world) => {
    world.taken.add(30_080)
    world.holder = nginx
    world.putService('web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] })
    await world.settle()
    assert.deepEqual(world.events, [
      'web Warning LocalPortUnavailable Node port 30080 is not reachable on localhost: it is in use on the host; the nodes’ own addresses serve it',
    ])
  }))

test('SVC-02 the ports of a forwarder that has ended are opened by the next one, without an Event', () =>
  withPorts(async (world) => {
    world.putService('web', balanced)
    await world.settle()
    world.run = undefined
    world.open.clear()
    world.onChange()
    await world.settle()
    assert.deepEqual([...world.open], [])
    world.run = world.newRun()
    world.onChange()
    await world.settle()
    assert.deepEqual([...world.open].sort(), [`TCP/30080 → ${address}:30080`, `TCP/80 → ${address}:30080`])
    assert.deepEqual(world.events, [])
  }))
