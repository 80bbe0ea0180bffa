import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { noCheckpoint } from '../core/checkpointFile.ts'
import { cpuLayout, type MachineTopology } from '../core/machineTopology.ts'
import { createCpuManager } from './cpu/cpuManager.ts'
import { exclusiveCpus } from './cpu/exclusiveCpus.ts'
import { cgroupMetrics, deviceMetrics, draMetrics, meterCpus, meterMemory, podResourcesMetrics, topologyMetrics } from './managerMetrics.ts'
import { maskOf } from './topology/hints.ts'
import { createTopologyManager, type HintProvider } from './topology/topologyManager.ts'

const numaNode = (id: number) => ({ id, memoryBytes: 2 ** 30, hugepages: new Map(), distances: [10, 20] })
/** Two NUMA nodes with two single-threaded cores each. */
const topology: MachineTopology = {
  cpus: [0, 1, 2, 3].map((id) => ({ id, core: id, socket: 0, numaNode: id >> 1, uncoreCache: id >> 1 })),
  numaNodes: [numaNode(0), numaNode(1)],
}
const layout = cpuLayout(topology)
const anywhere = { affinity: undefined, preferred: false }

function pinned(uid: string, cpu: string): Pod {
  const resources = { requests: { cpu, memory: '1Mi' }, limits: { cpu, memory: '1Mi' } }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, uid }, spec: { containers: [{ name: 'c', resources }] }, status: { qosClass: 'Guaranteed' } }
}

const [container] = pinned('a', '1').spec.containers

function recorded() {
  const metrics = createRecordedMetrics()
  const read = (name: string) => metrics.values.get(`kubelet_${name}`)
  return { deps: { metrics, clock: new VirtualClock() }, read, values: metrics.values }
}

test('KUB-15 the CPU manager counts exclusive allocations and reports the size of the shared pool', async () => {
  const { deps, read } = recorded()
  const settings = { policy: 'static', options: {}, featureGates: {}, reservedMilliCpu: 1000, reservedCpus: [] }
  const cpus = await createCpuManager(layout, settings, noCheckpoint())
  const { provider, poolChanged } = meterCpus(deps, cpus, layout, true, (pod, one) => exclusiveCpus(pod, one) > 0)
  const pool = () => ['shared_pool_size_millicores', 'exclusive_cpu_allocation_count'].map((name) => read(`cpu_manager_${name}`))
  const counts = () => ['requests', 'errors'].map((name) => read(`cpu_manager_pinning_${name}_total`))
  assert.deepEqual(pool(), [3000, 0])
  const [shared] = pinned('s', '1500m').spec.containers
  const [own] = pinned('a', '2').spec.containers
  assert.ok(shared && own)
  await provider.allocate(pinned('s', '1500m'), shared, anywhere)
  assert.deepEqual(counts(), [undefined, undefined], 'parts of a CPU are shared')
  await provider.allocate(pinned('a', '2'), own, { affinity: maskOf([1]), preferred: true })
  await assert.rejects(async () => provider.allocate(pinned('b', '2'), own, anywhere))
  poolChanged()
  assert.deepEqual(
    [counts(), pool()],
    [
      [2, 1],
      [1000, 2],
    ],
  )
  assert.deepEqual([read('cpu_manager_allocation_per_numa{numa_node="0"}'), read('cpu_manager_allocation_per_numa{numa_node="1"}')], [0, 2])
  assert.equal(read('container_aligned_compute_resources_failure_count{boundary="physical_cpu",scope="container"}'), 1)
  cpus.release('a')
  poolChanged()
  assert.deepEqual(pool(), [3000, 0])
})

test('KUB-15 memory that is not pinned counts nowhere', async () => {
  const { deps, read } = recorded()
  const provider: HintProvider = { hints: () => ({}), podHints: () => ({}), allocate: () => {} }
  assert.ok(container)
  for (const isPinned of [true, false]) await meterMemory(deps, provider, () => isPinned).allocate(pinned('a', '1'), container, anywhere)
  assert.deepEqual([read('memory_manager_pinning_requests_total'), read('memory_manager_pinning_errors_total')], [1, undefined])
})

test('KUB-15 the topology manager counts admissions, and containers that lie on one NUMA node', async () => {
  const { deps, read } = recorded()
  const metrics = topologyMetrics(deps)
  let preferred = true
  const provider: HintProvider = { hints: () => ({ cpu: [{ affinity: maskOf([0]), preferred }] }), podHints: () => ({}), allocate: () => {} }
  const options = { preferClosest: false, maxNumaNodes: 8 }
  const settings = { policy: 'single-numa-node', scope: 'container', options, onAligned: metrics.aligned }
  const manager = createTopologyManager(settings, { nodes: [0, 1], distance: () => 10 }, [provider])
  const admit = () => metrics.timed(() => manager.admit(pinned('a', '1')), Boolean)
  await admit()
  preferred = false
  await admit()
  const names = ['admission_requests_total', 'admission_errors_total', 'admission_duration_ms'].map((name) => read(`topology_manager_${name}`))
  assert.deepEqual(names, [2, 1, 2])
  const aligned = (kind: string) => read(`container_aligned_compute_resources_${kind}{boundary="numa_node",scope="container"}`)
  assert.deepEqual([aligned('count'), aligned('failure_count')], [1, 1])
})

test('KUB-15 devices, claims, control groups and requests of agents are counted under upstream’s names', async () => {
  const { deps, read, values } = recorded()
  const devices = deviceMetrics(deps)
  devices.registered('example.com/gpu')
  assert.equal(await devices.timedAllocation('example.com/gpu', async () => 'x'), 'x')
  assert.equal(read('device_plugin_registration_total{resource_name="example.com/gpu"}'), 1)
  assert.equal(read('device_plugin_alloc_duration_seconds{resource_name="example.com/gpu"}'), 1)

  const dra = draMetrics(deps)
  await dra.operation('PrepareResources', () => dra.call('d', 'NodePrepareResources', async () => {}))
  const refused = Object.assign(new Error('no'), { grpcStatus: 'Unavailable' })
  const unprepared = dra.operation('UnprepareResources', () => dra.call('d', 'NodeUnprepareResources', () => Promise.reject(refused)))
  await assert.rejects(unprepared, refused)
  const method = (name: string) => `method_name="/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/${name}"`
  assert.equal(values.get(`dra_grpc_operations_duration_seconds{driver_name="d",grpc_status_code="OK",${method('NodePrepareResources')}}`), 1)
  assert.equal(values.get(`dra_grpc_operations_duration_seconds{driver_name="d",grpc_status_code="Unavailable",${method('NodeUnprepareResources')}}`), 1)
  assert.equal(values.get('dra_operations_duration_seconds{is_error="true",operation_name="UnprepareResources"}'), 1)
  dra.claims([{ drivers: new Map([['d', 1]]) }, { drivers: new Map([['d', 1]]) }])
  assert.deepEqual([values.get('dra_resource_claims_in_use{driver_name="<any>"}'), values.get('dra_resource_claims_in_use{driver_name="d"}')], [2, 2])
  dra.claims([])
  assert.deepEqual([values.get('dra_resource_claims_in_use{driver_name="<any>"}'), values.has('dra_resource_claims_in_use{driver_name="d"}')], [0, false])

  await cgroupMetrics(deps, 2)('create', async () => {})
  assert.deepEqual([read('cgroup_version'), read('cgroup_manager_duration_seconds{operation_type="create"}')], [2, 1])

  const get = podResourcesMetrics(deps)('get', () => assert.fail('no such pod'))
  assert.throws(() => get({}), /no such pod/)
  const endpoint = (name: string) => read(`pod_resources_endpoint_${name}{server_api_version="v1"}`)
  assert.deepEqual([endpoint('requests_total'), endpoint('requests_get'), endpoint('errors_get')], [1, 1, 1])
})
