/** Published ports over an API in memory and a forwarder of the test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { planLocalPorts } from './localPortPlan.ts'
import type { ForwarderRun } from './portForwarder.ts'
import { createPublishedPorts } from './publishedPorts.ts'

function forwarderRun(open: Map<number, string>, taken: ReadonlySet<number>): ForwarderRun {
  return {
    open: async ({ port, targets }) => {
      if (taken.has(port)) throw Object.assign(new Error('in use'), { code: 'EADDRINUSE', address: '127.0.0.1' })
      const set = (list: typeof targets) => void open.set(port, list.map((one) => `${one.address}:${one.port}`).join(' '))
      set(targets)
      return { setTargets: set, close: () => void open.delete(port) }
    },
  }
}

test('SVC-02 published ports lead to the nodes, follow them, are opened again by the next forwarder, and wait for a port that is taken', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const informers = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const putNode = (ip: string, status = 'True') => {
    const node = { status: { addresses: [{ type: 'InternalIP', address: ip }], conditions: [{ type: 'Ready', status }] } }
    server.put(`/api/v1/nodes/${ip}`, anObject('Node', { name: ip }, node))
  }
  const open = new Map<number, string>()
  const taken = new Set([443])
  let run: ForwarderRun | undefined = forwarderRun(open, taken)
  let onChange = () => {}
  const ports = [
    { protocol: 'TCP' as const, port: 8080, nodePort: 80 },
    { protocol: 'TCP' as const, port: 443, nodePort: 443 },
  ]
  const forwarder = {
    current: () => run,
    onChange: (call: () => void) => {
      onChange = call
    },
  }
  const component = createPublishedPorts({ informers, clock, log: noLog, forwarder }, { ports, isReal: (ip) => ip.startsWith('10.88.') })
  const stop = new AbortController()
  putNode('10.88.1.10')
  const running = Promise.all([component.run(stop.signal), informers.run(stop.signal)])
  await clock.advance(1_000)
  assert.deepEqual([...open], [[8080, '10.88.1.10:80']])
  putNode('10.88.1.10', 'False')
  putNode('10.88.1.11')
  putNode('192.0.2.1')
  taken.clear()
  await clock.advance(3_000)
  assert.deepEqual([...open].sort(), [
    [443, '10.88.1.11:443 10.88.1.10:443'],
    [8080, '10.88.1.11:80 10.88.1.10:80'],
  ])
  open.clear()
  run = undefined
  onChange()
  await clock.advance(1_000)
  run = forwarderRun(open, taken)
  onChange()
  await clock.advance(1_000)
  assert.deepEqual([...open.keys()].sort(), [443, 8080])
  stop.abort()
  await clock.advance(1_000)
  await running
  assert.equal(open.size, 0)
})

test('SVC-03 a load balancer does not take a published port of localhost, and has no warning', () => {
  const ingress = [{ ip: '10.88.1.10', ports: [{ port: 80, protocol: 'TCP' }] }]
  const service = anObject(
    'Service',
    { name: 'web', namespace: 'd' },
    { spec: { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_080 }] }, status: { loadBalancer: { ingress } } },
  )
  const planned = (published: ReadonlySet<string>) => planLocalPorts([service as never], [], () => true, published)
  assert.deepEqual([...planned(new Set()).ports.keys()], ['TCP/30080', 'TCP/80'])
  assert.deepEqual([...planned(new Set(['TCP/80'])).ports.keys()], ['TCP/30080'])
  assert.deepEqual(planned(new Set(['TCP/80'])).refused, [])
})
