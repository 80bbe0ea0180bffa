import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Node, Pod, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { type AddressType, planSlices, sliceLabels, wantedEndpoints } from './plan.ts'

const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'x', name: 's' },
  spec: { ports: [{ port: 80 }], ipFamilies: ['IPv4'] },
  status: {},
}
const pod = (index: number, more: { ready?: boolean; deleted?: boolean } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'x', name: `p${index}`, uid: `p${index}`, ...(more.deleted ? { deletionTimestamp: 't' } : {}) },
  spec: { containers: [], nodeName: 'n' },
  status: { phase: 'Running', podIP: `10.0.${index >> 8}.${index & 255}`, conditions: [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }] },
})
const max = 5
const plan = (of: Service, pods: readonly Pod[], slices: readonly EndpointSlice[]) =>
  planSlices(
    sliceLabels(of),
    new Map<AddressType, ReturnType<typeof wantedEndpoints>>([['IPv4', wantedEndpoints(of, pods, () => undefined, 'IPv4')]]),
    slices,
    newSlice,
    max,
  )
const newSlice = (addressType: AddressType) => ({ metadata: { namespace: 'x', generateName: 's-' }, addressType, endpoints: [], ports: [] })

test('CTL-12 conditions of ready, unready and terminating pods, also for services that publish all', () => {
  const conditions = (of: Service) =>
    wantedEndpoints(of, [pod(1), pod(2, { ready: false }), pod(3, { deleted: true })], () => undefined, 'IPv4')[0]?.endpoints.map(
      ({ conditions }) => conditions,
    )
  assert.deepEqual(conditions(service), [
    { ready: true, serving: true, terminating: false },
    { ready: false, serving: false, terminating: false },
    { ready: false, serving: true, terminating: true },
  ])
  const all = { ...service, spec: { ...service.spec, publishNotReadyAddresses: true } }
  assert.deepEqual(
    conditions(all)?.map((condition) => condition?.ready),
    [true, true, true],
  )
})

const nodeWith = (labels: Record<string, string>): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels }, spec: {}, status: {} })
const zone = nodeWith({ 'topology.kubernetes.io/zone': 'east' })
const inZone = { forZones: [{ name: 'east' }] }
const annotated = { 'service.kubernetes.io/topology-mode': 'Auto' }
for (const { says, trafficDistribution, node = zone, annotations, hints } of [
  { says: 'no distribution', trafficDistribution: undefined, hints: undefined },
  { says: 'PreferClose', trafficDistribution: 'PreferClose', hints: inZone },
  { says: 'PreferSameZone', trafficDistribution: 'PreferSameZone', hints: inZone },
  { says: 'PreferSameNode', trafficDistribution: 'PreferSameNode', hints: { ...inZone, forNodes: [{ name: 'n' }] } },
  { says: 'PreferClose, on a node without a zone,', trafficDistribution: 'PreferClose', node: nodeWith({}), hints: undefined },
  {
    says: 'PreferClose, and whose older annotation turns topology-mode Auto off,',
    trafficDistribution: 'PreferClose',
    annotations: { ...annotated, 'service.kubernetes.io/topology-aware-hints': 'Disabled' },
    hints: inZone,
  },
  { says: 'PreferClose, and asks for topology-mode Auto,', trafficDistribution: 'PreferClose', annotations: annotated, hints: undefined },
]) {
  test(`CTL-12 a service with ${says} has ready endpoints with the hints ${JSON.stringify(hints) ?? 'of none'}`, () => {
    const of = { ...service, metadata: { ...service.metadata, annotations }, spec: { ...service.spec, trafficDistribution } } as Service
    const [group] = wantedEndpoints(of, [pod(1), pod(2, { ready: false })], () => node, 'IPv4')
    assert.deepEqual(
      group?.endpoints.map((endpoint) => endpoint.hints),
      [hints, undefined],
    )
  })
}

test('CTL-12 after random changes of pods every endpoint is listed once, no slice is too full, and planning again changes nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 23 }), { maxLength: 24 }), { minLength: 1, maxLength: 6 }), (rounds) => {
      let slices: EndpointSlice[] = []
      let made = 0
      for (const round of rounds) {
        const pods = round.map((index) => pod(index))
        const changes = plan(service, pods, slices)
        const updated = new Map(changes.update.map((slice) => [slice.metadata.name, slice as EndpointSlice]))
        const removed = new Set(changes.remove.map(({ metadata }) => metadata.name))
        slices = slices.filter(({ metadata }) => !removed.has(metadata.name)).map((slice) => updated.get(slice.metadata.name) ?? slice)
        for (const slice of changes.create) {
          slices.push({ ...slice, apiVersion: '', kind: '', metadata: { ...slice.metadata, name: `s${made++}`, labels: labelsOf() } } as EndpointSlice)
        }
        const names = slices.flatMap(({ endpoints }) => endpoints?.map(({ targetRef }) => targetRef?.name) ?? [])
        assert.deepEqual([...names].sort(), pods.map(({ metadata }) => metadata.name).sort())
        assert.equal(slices.length >= 1 && slices.every(({ endpoints }) => (endpoints?.length ?? 0) <= max), true)
        const endpoints = { wanted: pods.length, added: 0, updated: 0, removed: 0 }
        assert.deepEqual(plan(service, pods, slices), { create: [], update: [], remove: [], endpoints })
      }
    }),
    { numRuns: 60 },
  )
})

const labelsOf = () => ({ 'kubernetes.io/service-name': 's', 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' })
