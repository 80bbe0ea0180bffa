/** Which addresses services get, case by case. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadBalancerIngress, Node, Service, ServiceSpec } from '#api/gen/types/core.v1'
import { assignAddresses, type HolderOf, rivalWithPort, takesTraffic, wantsLoadBalancer } from './addresses.ts'

const address = '192.0.2.1'
const http = { port: 80, protocol: 'TCP' }
const nobody: HolderOf = () => undefined

function service(name: string, spec: Partial<ServiceSpec> = {}, ingress: LoadBalancerIngress[] = [], creationTimestamp = '2026-01-01T00:00:00Z'): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'd', name, uid: name, creationTimestamp },
    spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [http], ...spec },
    status: { loadBalancer: { ingress } },
  }
}

const held = [{ ip: address, ports: [http] }]
const node = (changes: Partial<Node>): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
  ...changes,
})

test('CTL-11 a service is given addresses unless it is of another type or names a class', () => {
  assert.deepEqual(
    [{}, { type: 'NodePort' }, { loadBalancerClass: 'example.com/own' }].map((spec) => wantsLoadBalancer(service('a', spec))),
    [true, false, false],
  )
})

const nodes: readonly (readonly [string, boolean, Partial<Node>])[] = [
  ['ready', true, {}],
  ['not ready', false, { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }],
  ['without a Ready condition', false, { status: {} }],
  ['cordoned', true, { spec: { unschedulable: true } }],
  ['excluded by its label', false, { metadata: { name: 'n', labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } } }],
  ['about to be taken away', false, { spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } }],
]
for (const [name, takes, changes] of nodes)
  test(`CTL-11 a node ${name} ${takes ? 'takes' : 'does not take'} traffic`, () => assert.equal(takesTraffic(node(changes)), takes))

test('CTL-11 addresses are in the order of the families, each with the ports', () => {
  const { ingress, problem } = assignAddresses(service('a', { ipFamilies: ['IPv6', 'IPv4'] }), ['192.0.2.2', '2001:db8::1', address, address], nobody)
  assert.deepEqual(
    ingress.map(({ ip }) => ip),
    ['2001:db8::1', address, '192.0.2.2'],
  )
  assert.deepEqual([ingress[0], problem], [{ ip: '2001:db8::1', ipMode: 'VIP', ports: [http] }, undefined])
})

test('CTL-11 an address where one port is taken is left out, and the holder is named', () => {
  const two = service('a', { ports: [http, { port: 443 }] })
  const holderOf: HolderOf = (at, { port }) => (at === address && port === 443 ? 'service d/b' : undefined)
  const { ingress, problem } = assignAddresses(two, [address, '192.0.2.2'], holderOf)
  assert.deepEqual(
    ingress.map(({ ip }) => ip),
    ['192.0.2.2'],
  )
  assert.equal(problem, 'port 443/TCP of 192.0.2.1 is taken by service d/b')
})

test('CTL-11 the address that is asked for, or none', () => {
  const asked = (loadBalancerIP: string) => assignAddresses(service('a', { loadBalancerIP }), [address, '192.0.2.2'], nobody)
  assert.deepEqual(
    asked('192.0.2.2').ingress.map(({ ip }) => ip),
    ['192.0.2.2'],
  )
  assert.deepEqual(asked('192.0.2.9'), { ingress: [], problem: 'no node that may take its traffic has the address 192.0.2.9' })
})

test('CTL-11 who has a port keeps it; of two that were given it at once, the older', () => {
  const rival = (mine: Service, other: Service) => rivalWithPort(mine, [other], address, http)?.metadata.name
  const old = service('old', {}, held)
  const young = service('young', {}, held, '2026-01-02T00:00:00Z')
  assert.equal(rival(service('new'), old), 'old')
  assert.equal(rival(service('older', {}, [], '2025-01-01T00:00:00Z'), old), 'old')
  assert.deepEqual([rival(young, old), rival(old, young)], ['old', undefined])
  assert.equal(rival(service('new'), service('udp', {}, [{ ip: address, ports: [{ port: 80, protocol: 'UDP' }] }])), undefined)
  assert.equal(rival(service('new'), service('elsewhere', {}, [{ ip: '192.0.2.2', ports: [http] }])), undefined)
})
