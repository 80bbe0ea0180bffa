import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Node } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { createTopologyCache } from './topologyCache.ts'
import { addZoneHints } from './zoneHints.ts'
import { allocate, isOverloaded, zoneShares } from './zoneShares.ts'

interface NodeFacts {
  readonly zone?: string
  readonly cpu?: string
  readonly ready?: string
  readonly labels?: Record<string, string>
}

const node = ({ zone, cpu, ready = 'True', labels = {} }: NodeFacts): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', labels: { ...labels, ...(zone ? { 'topology.kubernetes.io/zone': zone } : {}) } },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: ready }], ...(cpu ? { allocatable: { cpu } } : {}) },
})
const twoZones = [node({ zone: 'a', cpu: '1' }), node({ zone: 'b', cpu: '3000m' })]

for (const { says, nodes, want } of [
  { says: 'counts the CPU of zones', nodes: [...twoZones, node({ zone: 'a', cpu: '1' })], want: { a: 0.4, b: 0.6 } },
  { says: 'leaves out nodes that are not ready', nodes: [...twoZones, node({ ready: 'False' })], want: { a: 0.25, b: 0.75 } },
  {
    says: 'leaves out control-plane nodes',
    nodes: [...twoZones, node({ labels: { 'node-role.kubernetes.io/control-plane': '' } })],
    want: { a: 0.25, b: 0.75 },
  },
  { says: 'gives none for one zone', nodes: [node({ zone: 'a', cpu: '1' })], want: undefined },
  { says: 'gives none when a node has no zone', nodes: [...twoZones, node({ cpu: '1' })], want: undefined },
  { says: 'gives none when a node has no CPU', nodes: [...twoZones, node({ zone: 'a' })], want: undefined },
]) {
  test(`CTL-12 zoneShares ${says}`, () => {
    const shares = zoneShares(nodes)
    assert.deepEqual(shares && Object.fromEntries(shares), want)
  })
}

const thirds = new Map(['a', 'b', 'c'].map((zone) => [zone, 1 / 3]))
for (const { says, shares, endpoints, want } of [
  { says: 'no shares', shares: undefined, endpoints: 9, want: /^Insufficient Node information: allocatable CPU or zone not specified on one or more nodes$/ },
  { says: 'fewer endpoints than zones', shares: thirds, endpoints: 2, want: /^Insufficient number of endpoints \(2 endpoints, 3 zones\)$/ },
  {
    says: 'too few endpoints for the minimum of every zone',
    shares: thirds,
    endpoints: 4,
    want: /^Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \(4 endpoints, 3 zones\)$/,
  },
]) {
  test(`CTL-12 allocate refuses ${says}`, () => assert.match(String(allocate(shares, endpoints)), want))
}

test('CTL-12 allocate gives zones their share, at least the minimum, and the spare endpoints as room', () => {
  const shares = new Map(Object.entries({ a: 0.25, b: 0.5, c: 0.25 }))
  const quarter = { maximum: 3, desired: 2.25 }
  assert.deepEqual(allocate(shares, 9), new Map(Object.entries({ a: quarter, b: { maximum: 5, desired: 4.5 }, c: quarter })))
})

for (const [says, counts, want] of [
  ['no endpoint has a hint', {}, false],
  ['every zone has its share', { a: 3, b: 3, c: 3 }, false],
  ['a zone is 20 % below its share', { a: 5, b: 6, c: 6 }, false],
  ['a zone is further below its share', { a: 4, b: 7, c: 7 }, true],
  ['a zone has no endpoint', { a: 3, b: 3 }, true],
] as const) {
  test(`CTL-12 a Service is ${want ? '' : 'not '}overloaded when ${says}`, () => assert.equal(isOverloaded(new Map(Object.entries(counts)), thirds), want))
}

test('CTL-12 a Service with hints is overloaded when shares are unknown', () => assert.equal(isOverloaded(new Map([['a', 1]]), undefined), true))

/** A slice named by its endpoints: 'a b>a -b' has one in zone a without hint, one in b with a hint for a, one in b that is not ready. */
const slice = (name: string): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name },
  addressType: 'IPv4',
  endpoints: name.split(' ').map((said, index): Endpoint => {
    const [zone = '', hint] = said.replace('-', '').split('>')
    return {
      addresses: [`10.0.0.${index + 1}`],
      conditions: { ready: !said.startsWith('-') },
      ...(zone ? { zone } : {}),
      ...(hint ? { hints: { forZones: [{ name: hint }] } } : {}),
    }
  }),
  ports: [],
})
const hintsOf = (slices: readonly { readonly endpoints?: readonly Endpoint[] | null | undefined }[]) =>
  slices.map(({ endpoints }) => endpoints?.map(({ hints }) => hints?.forZones?.map(({ name }) => name).join() ?? '-').join(' '))

for (const { says, create = [], update = [], unchanged = [], want } of [
  { says: 'gives endpoints their own zone', create: ['a b c'], want: ['a b c'] },
  { says: 'gives no hint to endpoints that are not ready', create: ['a -a b c'], want: ['a - b c'] },
  { says: 'moves endpoints from a zone with too many to one with too few', create: ['a a b c a c'], want: ['b a b c a c'] },
  { says: 'leaves slices alone whose hints fit', unchanged: ['a>a b>b c>c'], want: [] },
  { says: 'writes a slice with an endpoint without a hint', unchanged: ['a>a b c>c'], want: ['a b c'] },
  { says: 'writes a slice with hints for a zone that is gone', unchanged: ['a>d b>b c>c'], want: ['a b c'] },
  { says: 'writes an unchanged slice that has more hints for a zone than it may', update: ['b c'], unchanged: ['a>a a>a a>a a>a'], want: ['b c', 'b c a a'] },
  { says: 'removes hints when an endpoint has no zone', update: ['a b c'], unchanged: ['a>a', '>a'], want: ['- - -', '-', '-'] },
  { says: 'removes hints when there are too few endpoints', unchanged: ['a>a b>b'], want: ['- -'] },
]) {
  test(`CTL-12 addZoneHints ${says}`, () => {
    const changes = addZoneHints({ create: create.map(slice), update: update.map(slice), unchanged: unchanged.map(slice) }, thirds)
    assert.deepEqual(hintsOf([...changes.create, ...changes.update] as EndpointSlice[]), want)
  })
}

test('CTL-12 addZoneHints counts the hints it gives, and gives the same ones again, for any endpoints and shares', () => {
  const zones = ['a', 'b', 'c', 'd']
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...zones), { minLength: 4, maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 4, maxLength: 4 }),
      (places, cpus) => {
        const total = cpus.reduce((sum, cpu) => sum + cpu, 0)
        const shares = new Map(zones.map((zone, index) => [zone, (cpus[index] ?? 0) / total]))
        const first = addZoneHints({ create: [slice(places.join(' '))], update: [], unchanged: [] }, shares)
        if (!first.endpointsOfZone) return assert.equal(typeof allocate(shares, places.length), 'string')
        const counted = new Map<string, number>()
        for (const zone of hintsOf(first.create as EndpointSlice[])[0]?.split(' ') ?? []) counted.set(zone, (counted.get(zone) ?? 0) + 1)
        for (const zone of zones) assert.equal(first.endpointsOfZone.get(zone) ?? 0, counted.get(zone) ?? 0)
        const again = addZoneHints({ create: [], update: [], unchanged: first.create as EndpointSlice[] }, shares)
        for (const hints of hintsOf(again.update as EndpointSlice[])) assert.equal(hints, hintsOf(first.create as EndpointSlice[])[0])
      },
    ),
    { numRuns: 200 },
  )
})

test('CTL-12 the topology cache reports when hints are given and removed, and which Services a change of nodes overloads', () => {
  let nodes: Node[] = ['a', 'b', 'c'].map((zone) => node({ zone, cpu: '1' }))
  const cache = createTopologyCache(() => nodes)
  const hint = () => cache.hint('x/s', 'IPv4', { create: [], update: [], unchanged: [slice('a>a b>b c>c')] }).events
  const enabled = { type: 'Normal', reason: 'TopologyAwareHintsEnabled', message: 'Topology Aware Hints has been enabled, addressType: IPv4' }
  const disabled = { type: 'Warning', reason: 'TopologyAwareHintsDisabled', message: 'Topology Aware Hints has been disabled, addressType: IPv4' }
  assert.deepEqual(hint(), [enabled])
  assert.deepEqual(hint(), [])
  assert.deepEqual(cache.overloaded(), [])
  nodes = [...nodes, node({ zone: 'd', cpu: '1' })]
  cache.nodesChanged()
  assert.deepEqual(cache.overloaded(), ['x/s'])
  assert.match(hint()[0]?.message ?? '', /^Insufficient number of endpoints \(3 endpoints, 4 zones\), addressType: IPv4$/)
  assert.deepEqual(cache.overloaded(), [])
  nodes.pop()
  cache.nodesChanged()
  assert.deepEqual(hint(), [enabled])
  assert.deepEqual(cache.unhint('x/s', 'IPv4'), [disabled])
  assert.deepEqual(cache.unhint('x/s', 'IPv4'), [])
})
