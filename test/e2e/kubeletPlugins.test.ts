import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import type { ApiRequest } from '#client/transport'
import { devicePluginProto } from '#grpc/proto/devicePlugin'
import { connectUnixService } from '#grpc/unixService'
import { noCheckpoint } from '#kubelet/core/checkpointFile'
import { kubeletConfig } from '#kubelet/core/config'
import { createDeviceManager } from '#kubelet/resources/devices/deviceManager'
import { createPluginRegistry } from '#kubelet/resources/devices/pluginRegistry'
import { createDraDrivers } from '#kubelet/resources/dra/draDrivers'
import { maskOf, nodesIn } from '#kubelet/resources/topology/hints'
import { createRealClock } from '#main/realClock'
import { startNodePlugin } from '../support/nodePlugin.ts'
import { until } from '../support/until.ts'
import { KubeletApi } from './kubeletApi.ts'

const options = { timeout: 60_000 }
const widget = 'skiff.test/widget'

/** A registry for device plugins in a directory of its own, whose clock can be put forward. */
async function withRegistry(
  run: (tools: { directory: string; registry: ReturnType<typeof createPluginRegistry>; later(ms: number): void }) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-plugins-'))
  const real = createRealClock()
  let aheadMs = 0
  const registry = createPluginRegistry({ clock: { ...real, now: () => real.now() + aheadMs }, log: noLog, directory, onChange: () => {} })
  const stop = new AbortController()
  const running = registry.run(stop.signal)
  try {
    await registry.listening
    await run({
      directory,
      registry,
      later: (ms) => {
        aheadMs += ms
      },
    })
  } finally {
    stop.abort()
    await running
    await rm(directory, { recursive: true, force: true })
  }
}

const plugin = (directory: string, devices: readonly { readonly id: string; readonly node?: number }[]) =>
  startNodePlugin({ kind: 'device', name: widget, socket: join(directory, 'widget.sock'), registry: join(directory, 'kubelet.sock'), devices })

test('KUB-15 devices of a plugin that is gone stay known for five minutes, then there are none', options, () =>
  withRegistry(async ({ directory, registry, later }) => {
    const devices = await createDeviceManager(registry, [0], noCheckpoint(), assert.fail)
    const own = await plugin(directory, [{ id: 'a' }, { id: 'b' }])
    await until('they are known', () => devices.capacity()[widget]?.allocatable === 2)
    await own.close()
    await until('they are ill', () => devices.capacity()[widget]?.allocatable === 0)
    assert.deepEqual(devices.capacity(), { [widget]: { capacity: 2, allocatable: 0 } })
    later(5 * 60_000 + 1)
    assert.deepEqual(devices.capacity(), { [widget]: { capacity: 0, allocatable: 0 } })
  }),
)

test("KUB-15 devices are allocated from the topology manager's NUMA node, and a missing device is refused with a reason", options, () =>
  withRegistry(async ({ directory, registry }) => {
    const devices = await createDeviceManager(registry, [0, 1], noCheckpoint(), assert.fail)
    const pod = (uid: string, count: string): Pod =>
      ({ metadata: { uid, name: uid }, spec: { containers: [{ name: 'c', resources: { limits: { [widget]: count } } }] } }) as unknown as Pod
    const first = pod('first', '2')
    const [container] = first.spec.containers
    assert.ok(container)
    const own = await plugin(directory, [
      { id: 'a', node: 0 },
      { id: 'b', node: 1 },
      { id: 'c', node: 1 },
    ])
    try {
      await until('they are known', () => devices.capacity()[widget]?.allocatable === 3)
      assert.deepEqual(
        devices.hints(first, container)[widget]?.map(({ affinity = 0, preferred }) => [nodesIn(affinity), preferred]),
        [
          [[1], true],
          [[0, 1], false],
        ],
      )
      await devices.allocate(first, container, { affinity: maskOf([1]), preferred: true })
      assert.deepEqual(devices.allocations('first', 'c')[0]?.byNode, { 1: ['b', 'c'] })
      const second = pod('second', '2')
      assert.deepEqual(devices.hints(second, container)[widget], [])
      await assert.rejects(async () => devices.allocate(second, container, { affinity: undefined, preferred: true }), {
        message: `requested number of devices unavailable for ${widget}. Requested: 2, Available: 1`,
      })
      own.tell({ unhealthy: ['a', 'b', 'c'] })
      await until('all are ill', () => devices.capacity()[widget]?.allocatable === 0)
      await assert.rejects(async () => devices.allocate(second, container, { affinity: undefined, preferred: true }), {
        message: `no healthy devices present; cannot allocate unhealthy devices ${widget}`,
      })
      devices.release('first')
      assert.deepEqual([...devices.pods()], [])
    } finally {
      await own.close()
    }
  }),
)

const refused = [
  {
    name: 'an unknown version',
    request: { version: 'v9', endpoint: 'x.sock', resourceName: widget },
    error: /requested API version "v9" is not supported by kubelet/,
  },
  {
    name: 'a name without a domain',
    request: { version: 'v1beta1', endpoint: 'x.sock', resourceName: 'widget' },
    error: /the ResourceName "widget" is invalid/,
  },
  {
    name: 'a name of Kubernetes',
    request: { version: 'v1beta1', endpoint: 'x.sock', resourceName: 'kubernetes.io/x' },
    error: /the ResourceName "kubernetes.io\/x" is invalid/,
  },
  { name: 'a socket elsewhere', request: { version: 'v1beta1', endpoint: '../x.sock', resourceName: widget }, error: /the endpoint "..\/x.sock" is invalid/ },
]
test('KUB-15 registrations that cannot be are refused', options, () =>
  withRegistry(async ({ directory, registry }) => {
    const service = connectUnixService(devicePluginProto, 'v1beta1.Registration', `unix:${join(directory, 'kubelet.sock')}`)
    try {
      for (const { name, request, error } of refused) await assert.rejects(service.call('Register', request, 5_000), error, name)
      assert.deepEqual(registry.names(), [])
    } finally {
      service.close()
    }
  }),
)

test('DRA-01 the ResourceSlices of a driver that is gone for 30 seconds are deleted, and kept if it reconnects before', async () => {
  const clock = new VirtualClock()
  const api = new KubeletApi(() => clock.now())
  const deleted: ApiRequest[] = []
  const selectors = () => deleted.map(({ query }) => query?.fieldSelector)
  api.intercept = (request) => void (request.method === 'DELETE' && deleted.push(request))
  const context = { client: createClient(api), clock, log: noLog, config: kubeletConfig({ nodeName: 'node-1', featureGates: { ResourceHealthStatus: false } }) }
  const drivers = createDraDrivers(context, () => {})
  const stop = new AbortController()
  const running = drivers.run(stop.signal)
  const info = (endpoint: string) => ({ type: 'DRAPlugin', name: 'a.test', endpoint, supportedVersions: ['v1.DRAPlugin'] })
  assert.throws(() => drivers.get('a.test'), /DRA driver a.test is not registered/)
  assert.throws(() => drivers.handler.register({ ...info('/x'), supportedVersions: ['v9.DRAPlugin'] }), /none of the DRA gRPC interfaces advertised/)
  await drivers.handler.register(info('/old'))
  drivers.handler.deregister(info('/old'))
  await clock.advance(20_000)
  await drivers.handler.register(info('/new'))
  await clock.advance(60_000)
  assert.deepEqual(selectors(), [])
  drivers.handler.deregister(info('/new'))
  await clock.advance(29_000)
  assert.deepEqual(selectors(), [])
  await clock.advance(2_000)
  assert.equal(selectors()[0], 'spec.nodeName=node-1,spec.driver=a.test')
  stop.abort()
  await clock.advance(0)
  await running
})
