/** Which local ports Services get, case by case. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadBalancerIngress, Node, Service, ServiceSpec } from '#api/gen/types/core.v1'
import { maxLocalPorts, planLocalPorts, realNodeAddresses } from './localPortPlan.ts'

const one = '10.88.1.10'
const two = '10.88.1.11'
const isReal = (address: string) => address.startsWith('10.88.1.')
const http = { port: 80, protocol: 'TCP', nodePort: 30_080 }

function service(name: string, spec: Partial<ServiceSpec>, ingress: LoadBalancerIngress[] = [], minute = 0): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'd', uid: name, creationTimestamp: `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z` },
    spec,
    status: { loadBalancer: { ingress } },
  }
}

const balanced = (name: string, spec: Partial<ServiceSpec> = {}, addresses: readonly string[] = [one, two], minute = 0) => {
  const ports = spec.ports ?? [http]
  const ingress = addresses.map((ip) => ({ ip, ports: ports.map(({ port, protocol = 'TCP' }) => ({ port, protocol })) }))
  return service(name, { type: 'LoadBalancer', ports, ...spec }, ingress, minute)
}

function node(address: string, ready: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: address },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: ready }] },
  }
}

const nodes = [node(two, 'True'), node(one, 'True')]

/** Each port as `PROTOCOL/PORT use service → targets`. */
function planned(...services: Service[]): string[] {
  const { ports, refused } = planLocalPorts(services, nodes, isReal)
  return [
    ...[...ports].map(
      ([
        key,
        {
          use,
          service: { metadata },
          targets,
        },
      ]) => {
        return `${key} ${use} ${metadata.name} → ${targets.map(({ address, port }) => `${address}:${port}`).join(' ')}`
      },
    ),
    ...refused.map(({ protocol, port, service: { metadata }, reason }) => `${protocol}/${port} of ${metadata.name} refused: ${reason}`),
  ]
}

const nodePort = (name: string, port: object) => service(name, { type: 'NodePort', ports: [{ port: 80, ...port }] })
const nodePortOf = (name: string) => `TCP/30080 node port ${name} → ${two}:30080 ${one}:30080`

const cases: readonly { name: string; services: Service[]; want: string[] }[] = [
  { name: 'a node port', services: [nodePort('a', { nodePort: 30_080 })], want: [nodePortOf('a')] },
  {
    name: 'a UDP node port',
    services: [nodePort('a', { nodePort: 30_053, protocol: 'UDP' })],
    want: [`UDP/30053 node port a → ${two}:30053 ${one}:30053`],
  },
  { name: 'an SCTP node port', services: [nodePort('a', { nodePort: 30_001, protocol: 'SCTP' })], want: [] },
  { name: 'a ClusterIP Service that kept its node port', services: [service('a', { type: 'ClusterIP', ports: [http] })], want: [] },
  {
    name: 'a load balancer, by the node ports of the nodes whose addresses it has',
    services: [balanced('a', {}, [two])],
    want: [nodePortOf('a'), `TCP/80 load balancer a → ${two}:30080`],
  },
  {
    name: 'a load balancer without node ports, by its own port',
    services: [balanced('a', { ports: [{ port: 80, protocol: 'TCP' }] }, [one])],
    want: [`TCP/80 load balancer a → ${one}:80`],
  },
  { name: 'a load balancer that has no address', services: [balanced('a', {}, [])], want: [nodePortOf('a')] },
  { name: 'a load balancer with an address of no real node', services: [balanced('a', {}, ['192.0.2.1'])], want: [nodePortOf('a')] },
  { name: 'a load balancer of another class', services: [balanced('a', { loadBalancerClass: 'example.com/own' })], want: [nodePortOf('a')] },
  {
    name: 'source ranges without 127.0.0.1',
    services: [balanced('a', { loadBalancerSourceRanges: ['10.0.0.0/8', 'fd00::/8'] })],
    want: [nodePortOf('a'), 'TCP/80 of a refused: 127.0.0.1 is not in its loadBalancerSourceRanges'],
  },
  {
    name: 'source ranges with 127.0.0.1',
    services: [balanced('a', { loadBalancerSourceRanges: ['10.0.0.0/8', '127.0.0.1/32'] }, [one])],
    want: [nodePortOf('a'), `TCP/80 load balancer a → ${one}:30080`],
  },
  {
    name: 'two load balancers with one port on different nodes: the older one',
    services: [balanced('young', { ports: [{ port: 80, protocol: 'TCP' }] }, [one], 2), balanced('old', { ports: [{ port: 80, protocol: 'TCP' }] }, [two], 1)],
    want: [`TCP/80 load balancer old → ${two}:80`, 'TCP/80 of young refused: it is the load balancer of Service d/old'],
  },
  {
    name: 'a load balancer with the node port of another Service: the node port',
    services: [balanced('old', { ports: [{ port: 30_080, protocol: 'TCP' }] }), nodePort('young', { nodePort: 30_080 })],
    want: [nodePortOf('young'), 'TCP/30080 of old refused: it is the node port of Service d/young'],
  },
]
for (const { name, services, want } of cases) test(`SVC-03 local ports of ${name}`, () => assert.deepEqual(planned(...services), want))

test('SVC-03 ports beyond the limit are refused, those of the newest Services', () => {
  const ports = (count: number, first: number) => Array.from({ length: count }, (_, i) => ({ port: first + i, protocol: 'TCP' }))
  const first = balanced('first', { ports: ports(maxLocalPorts - 1, 1000) }, [one], 1)
  const plan = planLocalPorts([balanced('second', { ports: ports(2, 10_000) }, [one], 2), first], nodes, isReal)
  assert.equal(plan.ports.size, maxLocalPorts)
  assert.deepEqual(
    plan.refused.map(({ port, reason }) => ({ port, reason })),
    [{ port: 10_001, reason: `${maxLocalPorts} ports of the cluster are open there already` }],
  )
})

test('SVC-03 only real nodes are targets, those that are Ready first', () => {
  const list = [node(one, 'Unknown'), node(two, 'True'), node('10.200.0.1', 'True')]
  assert.deepEqual(realNodeAddresses(list, isReal), [two, one])
})

test('SVC-03 the reason of a refused port names no Service of another namespace; the details for the log do', () => {
  const spec = { ports: [{ port: 80, protocol: 'TCP' }] }
  const young = balanced('young', spec, [one], 2)
  const other = { ...balanced('old', spec, [two], 1), metadata: { ...balanced('old').metadata, namespace: 'secret' } }
  const [refused] = planLocalPorts([young, other], nodes, isReal).refused
  assert.equal(refused?.reason, 'it is the load balancer of a Service in another namespace')
  assert.equal(refused?.details, 'it is the load balancer of Service secret/old')
})
