import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service, ServicePort, ServiceSpec } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { encodeProtobufMessage, protobufMediaType } from '#api/protobuf/envelope'
import { type Logger, noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { Transport } from '#client/transport'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { realClock } from '#testing/realClock'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { ResourceTransformers } from '../../encryption/encryption.ts'
import { identityTransformer, prefixTransformers } from '../../encryption/transformer.ts'
import { type StorageMediaType, storageMediaTypes } from '../../registry/storedForm.ts'
import { NodePortAllocator } from './nodePortAllocator.ts'
import { nodePortRepair } from './nodePortRepair.ts'
import { PortBitmap, type PortRange, parsePortRange } from './portBitmap.ts'
import { rebuildPorts } from './rebuildPorts.ts'
import { nodePortsKey, StoredPorts } from './storedPorts.ts'

const range: PortRange = { first: 30_000, size: 64 }
const service = (spec: Partial<ServiceSpec>, name = 's') => ({ metadata: { namespace: 'default', name }, spec }) as unknown as Frozen<Service>
const nodePort = (ports: readonly Partial<ServicePort>[]) => service({ type: 'NodePort', ports: ports as ServicePort[] })

test('SVC-02 a bitmap gives every port once, those of the static band last, and takes back what is released', () => {
  const ports = PortBitmap.empty(range)
  const given = Array.from({ length: 64 }, () => ports.allocateNext(seededRandom(5)) ?? 0)
  assert.equal(new Set(given).size, 64)
  assert.ok(given.slice(0, 48).every((port) => port >= 30_016))
  assert.equal(ports.allocateNext(seededRandom(5)), undefined)
  ports.release(30_040)
  ports.release(29_999)
  assert.deepEqual(
    [ports.allocate(29_999), ports.allocate(30_064), ports.allocate(30_000), ports.allocate(30_040)],
    ['outside', 'outside', 'taken', 'allocated'],
  )
})

test('SVC-02 the default range keeps 86 ports for static choices, as upstream', () => {
  const ports = PortBitmap.empty({ first: 30_000, size: 2768 })
  const given = Array.from({ length: 2768 - 86 }, () => ports.allocateNext(seededRandom(1)) ?? 0)
  assert.equal(Math.min(...given), 30_086)
})

test('SVC-02 the bytes of a bitmap are those of a big-endian number, without leading zeros', () => {
  const ports = PortBitmap.empty(range)
  assert.deepEqual([...ports.toBytes()], [])
  for (const port of [30_000, 30_009, 30_017]) ports.allocate(port)
  assert.deepEqual([...ports.toBytes()], [0x02, 0x02, 0x01])
  assert.deepEqual([...PortBitmap.of(range, ports.toBytes()).ports()], [30_000, 30_009, 30_017])
  assert.deepEqual([...PortBitmap.of({ first: 1, size: 3 }, Uint8Array.of(0xff, 0xff)).ports()], [1, 2, 3])
})

test('SVC-02 a stored range is read in each media type, and written in the configured one', async () => {
  const message = Uint8Array.of(0x0a, 0x02, 0x0a, 0x00, 0x12, 11, ...Buffer.from('30000-30063'), 0x1a, 1, 6)
  const forms: Record<StorageMediaType, Uint8Array> = {
    'application/json': Buffer.from('{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-30063","data":"Bg=="}'),
    'application/yaml': Buffer.from('apiVersion: v1\ndata: Bg==\nkind: RangeAllocation\nmetadata: {}\nrange: 30000-30063\n'),
    [protobufMediaType]: encodeProtobufMessage({ apiVersion: 'v1', kind: 'RangeAllocation' }, message),
  }
  const beginnings = { 'application/json': '{', 'application/yaml': 'apiV', [protobufMediaType]: 'k8s\0' }
  for (const mediaType of storageMediaTypes) {
    for (const value of Object.values(forms)) {
      const store = await storeWith(value)
      const ports = new StoredPorts(store, range, { mediaType })
      assert.deepEqual(await taken(ports), [30_001, 30_002])
      assert.equal((await ports.readStored()).isStale, value !== forms[mediaType])
      await ports.update((changed) => changed.allocate(30_009) === 'allocated')
      const written = (await store.range(nodePortsKey)).kvs[0]?.value ?? Buffer.of()
      assert.ok(Buffer.from(written).toString('latin1').startsWith(beginnings[mediaType]))
      assert.deepEqual([await taken(ports), (await ports.readStored()).isStale], [[30_001, 30_002, 30_009], false])
    }
  }
  for (const text of ['', '30000', '0-10', '20-10', '1-70000', '1-2-3']) assert.throws(() => parsePortRange(text), /invalid port range/, text)
})

/** As under `*.*` of an encryption configuration; asks for the name of each resource. */
function flippingBits(names: string[] = []): ResourceTransformers {
  const flip = (data: Uint8Array) => data.map((byte) => byte ^ 0xff)
  const prefix = 'k8s:enc:flip:'
  const transformer = { fromStorage: (data: Uint8Array) => ({ data: flip(data), stale: false }), toStorage: flip }
  return {
    transformerFor: (resource) => {
      names.push(`${resource.group}/${resource.resource}`)
      return prefixTransformers(
        'none',
        [
          { prefix, transformer },
          { prefix: '', transformer: identityTransformer },
        ],
        () => () => {},
      )
    },
    onChange: () => {},
  }
}

test('SVC-02 the stored ports are encrypted as servicenodeportallocations, and plain ones are encrypted by the next repair', async () => {
  const store = await storeWith(Buffer.from('{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-30063","data":""}'))
  const names: string[] = []
  const ports = new StoredPorts(store, range, { transformers: flippingBits(names), mediaType: protobufMediaType })
  assert.deepEqual(names, ['/servicenodeportallocations'])
  await repairOf(ports).repair.start?.(new AbortController().signal)
  const { kvs } = await store.range(nodePortsKey)
  assert.ok(
    Buffer.from(kvs[0]?.value ?? [])
      .toString('latin1')
      .startsWith('k8s:enc:flip:'),
  )
  await ports.update((changed) => changed.allocate(30_001) === 'allocated')
  assert.deepEqual(await taken(new StoredPorts(store, range, { transformers: flippingBits(), mediaType: protobufMediaType })), [30_001])
})

/** The store answers in later turns of the event loop. */
async function turns(): Promise<void> {
  for (let left = 10; left > 0; left--) await realClock.turn()
}

function repairOf(ports: StoredPorts) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z', turns)
  const logged: string[] = []
  const log: Logger = { ...noLog, error: (error, message) => void logged.push(`${message}: ${(error as Error).message}`) }
  const transport = { request: async () => ({ status: 200, body: { items: [] } }) } as unknown as Transport
  const repair = nodePortRepair(ports, { clock, log, transport, random: seededRandom(1), hostName: 'h', reader: {} as ObjectReader })
  return { clock, logged, repair }
}

const unreadableValues = [
  { name: 'encrypted with a missing key', value: 'k8s:enc:aescbc:v1:one:abc', why: /identity transformer tried to read encrypted data/ },
  { name: 'damaged', value: '{"range":', why: /the value is no JSON/ },
  { name: 'without a range', value: '{"apiVersion":"v1","kind":"RangeAllocation"}', why: /names no range/ },
  { name: 'with a bad range', value: '{"apiVersion":"v1","kind":"RangeAllocation","range":"0-10"}', why: /invalid port range: 0-10/ },
  { name: 'empty', value: '', why: /the value is no object/ },
]
for (const { name, value, why } of unreadableValues) {
  test(`SVC-02 the server becomes ready although the stored ports cannot be decoded, and rebuilds them once they are deleted: ${name}`, async () => {
    const store = await storeWith(Buffer.from(value))
    const ports = new StoredPorts(store, range)
    const { clock, logged, repair } = repairOf(ports)
    const stop = new AbortController()
    await repair.start?.(stop.signal)
    assert.match(logged.join(), /^Services get no node ports, .* delete their key in the store/)
    assert.match(logged.join(), why)
    const allocator = new NodePortAllocator(ports, seededRandom(1))
    const ask = () => allocator.allocate(nodePort([{ port: 80, nodePort: 30_001 }]), undefined, false)
    await assert.rejects(ask(), (error) => {
      assert.ok(isStatus(error, 'InternalError'))
      assert.match(error.message, /cannot read the allocated node ports under \/registry\/ranges\/servicenodeports: /)
      assert.match(error.message, why)
      return true
    })
    const running = repair.run(stop.signal)
    await store.transact({ compare: [], success: [{ type: 'delete', from: nodePortsKey }] })
    await clock.advance(180_000)
    await ask()
    assert.deepEqual([await taken(ports), logged.length], [[30_001], 1])
    stop.abort()
    await running
  })
}

async function storeWith(value: Uint8Array): Promise<Store> {
  const store = createMemoryStore({ clock: realClock })
  await store.transact({ compare: [], success: [{ type: 'put', key: nodePortsKey, value }] })
  return store
}

async function twoAllocators(store: Store = createMemoryStore({ clock: realClock })) {
  const stored = [new StoredPorts(store, range), new StoredPorts(store, range)] as const
  await stored[0].replace(0, PortBitmap.empty(range))
  const [a, b] = stored.map((one, seed) => new NodePortAllocator(one, seededRandom(seed))) as [NodePortAllocator, NodePortAllocator]
  return { a, b, stored }
}

const taken = async (stored: StoredPorts) => [...((await stored.readStored()).ports?.ports() ?? [])]

test('HA-01 two allocators over one store never give one port twice, in many rounds at once', async () => {
  const { a, b, stored } = await twoAllocators()
  for (let round = 0; round < 50; round++) {
    const given = (await Promise.all(Array.from({ length: 64 }, (_, i) => (i % 2 ? a : b).allocate(nodePort([{ port: 80 }]), undefined, false)))).flatMap(
      (plan) => plan.taken,
    )
    assert.equal(new Set(given).size, 64)
    await assert.rejects((round % 2 ? a : b).allocate(nodePort([{ port: 80 }]), undefined, false), /failed to allocate a nodePort: range is full/)
    await Promise.all(given.map((port, i) => (i % 2 ? a : b).release([port])))
    assert.deepEqual(await taken(stored[0]), [])
  }
})

test('HA-01 one of two allocators gets a port that both ask for, and the other one gets it after its release', async () => {
  const { a, b } = await twoAllocators()
  const ask = (allocator: NodePortAllocator) => allocator.allocate(nodePort([{ port: 80, nodePort: 30_001 }]), undefined, false)
  for (let round = 0; round < 50; round++) {
    const outcomes = await Promise.allSettled([ask(a), ask(b)])
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    await a.release([30_001])
    await ask(b)
    await b.release([30_001])
  }
})

test('SVC-02 a refused service takes no port, and a full range is refused with upstream’s text', async () => {
  const { a, stored } = await twoAllocators()
  await a.allocate(nodePort([{ port: 80, nodePort: 30_001 }]), undefined, false)
  const two = nodePort([{ port: 80 }, { port: 81, nodePort: 30_001 }])
  await assert.rejects(a.allocate(two, undefined, false), /spec.ports\[1\].nodePort: Invalid value: 30001: provided port is already allocated/)
  assert.deepEqual(await taken(stored[0]), [30_001])
})

test('SVC-02 an update keeps ports, takes new ones and names those that are given up', async () => {
  const { a } = await twoAllocators()
  const old = nodePort([
    { port: 80, nodePort: 30_001, protocol: 'TCP' },
    { port: 81, nodePort: 30_002, protocol: 'TCP' },
  ])
  await a.allocate(old, undefined, false)
  const changed = nodePort([
    { port: 80, nodePort: 30_001, protocol: 'TCP' },
    { port: 82, nodePort: 30_003, protocol: 'TCP' },
    { port: 82, nodePort: 30_003, protocol: 'UDP' },
  ])
  const plan = await a.allocate(changed, old, false)
  assert.deepEqual([plan.nodePorts, plan.taken, plan.released], [[30_001, 30_003, 30_003], [30_003], [30_002]])
  assert.deepEqual((await a.allocate(service({ type: 'ClusterIP', ports: [] }), changed, false)).released, [30_001, 30_003])
})

test('SVC-02 a LoadBalancer without node ports still takes those that it asks for, and a port for health checks', async () => {
  const { a } = await twoAllocators()
  const spec = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, externalTrafficPolicy: 'Local' }
  const plan = await a.allocate(service({ ...spec, ports: [{ port: 80 }, { port: 81, nodePort: 30_005 }] as ServicePort[] }), undefined, false)
  assert.deepEqual(plan.nodePorts, [undefined, 30_005])
  assert.equal(plan.taken.length, 2)
  assert.ok(plan.healthCheckNodePort)
  const again = service({ ...spec, healthCheckNodePort: 30_005, ports: [] })
  await assert.rejects(a.allocate(again, undefined, false), /failed to allocate requested HealthCheck NodePort 30005: provided port is already allocated/)
})

test('SVC-02 a dry run writes nothing and shows ports above the range, as upstream', async () => {
  const { a, stored } = await twoAllocators()
  const plan = await a.allocate(nodePort([{ port: 80 }, { port: 81 }, { port: 82, nodePort: 30_001 }]), undefined, true)
  assert.deepEqual(plan.nodePorts, [32_769, 32_770, 30_001])
  assert.deepEqual(await taken(stored[0]), [])
})

test('SVC-02 nothing is allocated before the range is stored, nor from a range that differs', async () => {
  const store = createMemoryStore({ clock: realClock })
  const allocator = new NodePortAllocator(new StoredPorts(store, range), seededRandom(1))
  const ask = () => allocator.allocate(nodePort([{ port: 80 }]), undefined, false)
  await assert.rejects(ask(), /cannot allocate resources of type servicenodeportallocations at this time/)
  const value = Buffer.from('{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-30001","data":""}')
  await store.transact({ compare: [], success: [{ type: 'put', key: nodePortsKey, value }] })
  await assert.rejects(ask(), /the provided range does not match the current range/)
})

test('SVC-02 the repair marks used ports, reports wrong ones, and releases an unused one in its third round', async () => {
  const stored = PortBitmap.empty(range)
  for (const port of [30_001, 30_050]) stored.allocate(port)
  const services = [
    nodePort([
      { port: 1, nodePort: 30_001, protocol: 'TCP' },
      { port: 1, nodePort: 30_001, protocol: 'UDP' },
    ]),
    nodePort([
      { port: 1, nodePort: 30_002, protocol: 'TCP' },
      { port: 2, nodePort: 30_001, protocol: 'TCP' },
      { port: 3, nodePort: 40_000, protocol: 'TCP' },
    ]),
  ]
  let { ports, leaks, cleaned, findings } = await rebuildPorts(services, stored, range, new Map())
  assert.deepEqual(
    findings.map(({ reason, note }) => [reason, note]),
    [
      ['PortNotAllocated', 'Port 30002 is not allocated; repairing'],
      ['PortAlreadyAllocated', 'Port 30001 was assigned to multiple services; please recreate service'],
      ['PortOutOfRange', 'Port 40000 is not within the port range 30000-30063; please recreate service'],
    ],
  )
  assert.deepEqual([[...ports.ports()], cleaned], [[30_001, 30_002, 30_050], []])
  ;({ ports, leaks, cleaned } = await rebuildPorts(services, ports, range, leaks))
  assert.deepEqual([[...ports.ports()], cleaned], [[30_001, 30_002, 30_050], []])
  ;({ ports, leaks, cleaned } = await rebuildPorts(services, ports, range, leaks))
  assert.deepEqual([[...ports.ports()], cleaned, leaks.size], [[30_001, 30_002], [30_050], 0])
})
