import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { formatCpuSet, parseCpuSet } from '../../core/cpuSet.ts'
import { type CpuInfo, cpuLayout, type MachineTopology } from '../../core/machineTopology.ts'
import { nodesIn } from '../topology/hints.ts'
import { takePacked } from './accumulator.ts'
import { createCpuState, parseCpuState, renderCpuState } from './cpuState.ts'
import { takeDistributed } from './distributed.ts'
import { noStaticOptions, staticOptions } from './options.ts'
import { createStaticCpuPolicy } from './staticPolicy.ts'

/** CPUs numbered as Linux does: first one thread of every core, socket after socket, then the others. */
function machine(
  sockets: number,
  numaPerSocket: number,
  coresPerNuma: number,
  threads: number,
  coresPerCache = coresPerNuma,
  interleaved = false,
): MachineTopology {
  const numas = sockets * numaPerSocket
  const cores = numas * coresPerNuma
  const cpus: CpuInfo[] = []
  for (let thread = 0; thread < threads; thread++) {
    for (let core = 0; core < cores; core++) {
      const numaNode = interleaved ? core % numas : Math.floor(core / coresPerNuma)
      cpus.push({ id: thread * cores + core, core, numaNode, socket: Math.floor(numaNode / numaPerSocket), uncoreCache: Math.floor(core / coresPerCache) })
    }
  }
  const numaNodes = Array.from({ length: numas }, (_, id) => ({ id, memoryBytes: 2 ** 30, hugepages: new Map(), distances: [] }))
  return { cpus, numaNodes }
}

const singleSocketHT = machine(1, 1, 4, 2)
const dualSocketHT = machine(2, 1, 3, 2, 3, true)
const dualSocketNoHT = machine(2, 1, 4, 1)
const dualSocketMultiNuma = machine(2, 2, 20, 2)
const twoCaches = machine(1, 1, 8, 2, 4)

const packed = [
  { name: 'a whole core of one socket', machine: singleSocketHT, free: '0-7', count: 2, want: '0,4' },
  { name: 'one thread on an empty machine', machine: singleSocketHT, free: '0-7', count: 1, want: '0' },
  { name: 'the half-used core first', machine: singleSocketHT, free: '1-7', count: 1, want: '4' },
  { name: 'cores, then a thread', machine: singleSocketHT, free: '0-7', count: 5, want: '0-2,4-5' },
  { name: 'everything', machine: singleSocketHT, free: '0-7', count: 8, want: '0-7' },
  { name: 'from the fuller socket', machine: dualSocketHT, free: '1-11', count: 1, want: '6' },
  { name: 'a core where more is used', machine: dualSocketHT, free: '1-5,7-11', count: 2, want: '2,8' },
  { name: 'a whole socket', machine: dualSocketHT, free: '0-11', count: 6, want: '0,2,4,6,8,10' },
  { name: 'a whole socket and a core', machine: dualSocketHT, free: '0-11', count: 8, want: '0-2,4,6-8,10' },
  { name: 'a whole socket without hyperthreads', machine: dualSocketNoHT, free: '0-7', count: 4, want: '0-3' },
  { name: 'the whole socket that is free', machine: dualSocketNoHT, free: '1-7', count: 4, want: '4-7' },
  { name: 'a NUMA node', machine: dualSocketMultiNuma, free: '1-38,40-79,81-159', count: 40, want: '40-59,120-139' },
  { name: 'one thread per core', machine: singleSocketHT, free: '0-7', count: 4, spread: true, want: '0-3' },
  { name: 'one cache', machine: twoCaches, free: '0-15', count: 8, cache: true, want: '0-3,8-11' },
  { name: 'part of the fuller cache', machine: twoCaches, free: '1-7,9-15', count: 4, cache: true, want: '1-2,9-10' },
  { name: 'caches cannot hold it', machine: twoCaches, free: '0-2,4-6,8-10,12-14', count: 8, cache: true, want: '0-2,4,8-10,12' },
]
for (const c of packed) {
  test(`KUB-15 packed CPUs: ${c.name}`, () => {
    const options = { spread: c.spread ?? false, alignByUncoreCache: c.cache ?? false }
    assert.equal(formatCpuSet(takePacked(cpuLayout(c.machine), parseCpuSet(c.free), c.count, options)), c.want)
  })
}

test('KUB-15 packed CPUs: more than there are', () => {
  const options = { spread: false, alignByUncoreCache: false }
  assert.throws(() => takePacked(cpuLayout(singleSocketHT), [0, 2], 3, options), /not enough cpus available to satisfy request: requested=3, available=2/)
})

const distributed = [
  { name: 'within one NUMA node', free: '0-159', count: 1, group: 1, want: '0' },
  { name: 'a full NUMA node', free: '0-159', count: 40, group: 1, want: '0-19,80-99' },
  { name: 'half and half', free: '0-159', count: 48, group: 1, want: '0-11,20-31,80-91,100-111' },
  { name: 'three thirds', free: '0-159', count: 90, group: 1, want: '0-14,20-34,40-54,80-94,100-114,120-134' },
  { name: 'in whole cores', free: '0-159', count: 82, group: 2, want: '0-13,20-33,40-52,80-93,100-113,120-132' },
]
for (const c of distributed) {
  test(`KUB-15 distributed CPUs: ${c.name}`, () => {
    const options = { spread: false, alignByUncoreCache: false }
    assert.equal(formatCpuSet(takeDistributed(cpuLayout(dualSocketMultiNuma), parseCpuSet(c.free), c.count, c.group, options)), c.want)
  })
}

function pod(uid: string, cpus: Record<string, string>, init: Record<string, string> = {}): Pod {
  const container = ([name, cpu]: [string, string]) => ({ name, resources: { requests: { cpu, memory: '1Gi' }, limits: { cpu, memory: '1Gi' } } })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, uid },
    spec: { containers: Object.entries(cpus).map(container), initContainers: Object.entries(init).map(container) },
    status: { qosClass: 'Guaranteed' },
  } as unknown as Pod
}

const anyNode = { affinity: undefined, preferred: true }

function policy(options = noStaticOptions, topology = singleSocketHT, state = createCpuState()) {
  const layout = cpuLayout(topology)
  return { state, policy: createStaticCpuPolicy(layout, state, options, { count: 1, cpus: [] }) }
}

test('KUB-15 the static policy gives whole CPUs to Guaranteed containers, and takes them back', async () => {
  const { state, policy: fixed } = policy()
  const both = pod('u', { a: '2', b: '1500m' })
  for (const container of both.spec.containers) await fixed.allocate(both, container, anyNode)
  assert.deepEqual(state.assignments(), [{ podUid: 'u', container: 'a', cpus: [1, 5] }])
  assert.equal(formatCpuSet(state.shared()), '0,2-4,6-7')
  fixed.release('u')
  assert.equal(formatCpuSet(state.shared()), '0-7')
})

test('KUB-15 a later container has the CPUs of an init container again', async () => {
  const { state, policy: fixed } = policy()
  const p = pod('u', { main: '2' }, { setup: '4' })
  for (const container of [...(p.spec.initContainers ?? []), ...p.spec.containers]) await fixed.allocate(p, container, anyNode)
  assert.deepEqual(state.exclusive('u', 'setup'), [1, 2, 5, 6])
  assert.deepEqual(state.exclusive('u', 'main'), [1, 5])
  assert.equal(formatCpuSet(state.shared()), '0,3-4,7')
})

test('KUB-15 full-pcpus-only refuses what is no multiple of a core', () => {
  const { policy: fixed } = policy({ ...noStaticOptions, fullPhysicalCpusOnly: true })
  const p = pod('u', { a: '3' })
  assert.throws(() => fixed.allocate(p, p.spec.containers[0]!, anyNode), {
    reason: 'SMTAlignmentError',
    message: 'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2',
  })
  const all = pod('v', { a: '8' })
  assert.throws(() => fixed.allocate(all, all.spec.containers[0]!, anyNode), {
    message: 'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2',
  })
})

test('KUB-15 strict-cpu-reservation keeps all pods off the reserved CPUs', () => {
  const { state } = policy({ ...noStaticOptions, strictReservation: true })
  assert.equal(formatCpuSet(state.shared()), '1-7')
})

test('KUB-15 hints name every combination of NUMA nodes that suffices, the small ones preferred', () => {
  const { policy: fixed } = policy(noStaticOptions, dualSocketHT)
  const few = pod('u', { a: '4' })
  const hints = (p: Pod) => fixed.hints(p, p.spec.containers[0]!).cpu?.map(({ affinity = 0, preferred }) => [nodesIn(affinity).join(), preferred])
  assert.deepEqual(hints(few), [
    ['0', true],
    ['1', true],
    ['0,1', false],
  ])
  assert.deepEqual(hints(pod('v', { a: '8' })), [['0,1', true]])
})

test('KUB-15 the CPU checkpoint has the checksums that upstream computes', () => {
  const known = [
    { text: '{"policyName":"none","defaultCPUSet":"4-6","entries":{},"checksum":354655845}', shared: '4-6', assigned: 0 },
    {
      text: '{"policyName":"none","defaultCPUSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"1-3"}},"checksum":3610638499}',
      shared: '1-3',
      assigned: 2,
    },
  ]
  for (const { text, shared, assigned } of known) {
    const state = parseCpuState(text, 'none')
    assert.equal(formatCpuSet(state.shared), shared)
    assert.equal(state.assignments.length, assigned)
    const again = renderCpuState('none', createCpuState(state))
    assert.equal(JSON.parse(again).checksum, JSON.parse(text).checksum)
  }
  assert.throws(() => parseCpuState('{"policyName":"none","defaultCpuSet":"1-3","checksum":7}', 'none'), /checkpoint is corrupted/)
  assert.throws(() => parseCpuState(known[0]!.text, 'static'), /configured policy "static" differs from state checkpoint policy "none"/)
})

test('KUB-15 a remembered state that does not fit the machine is refused', () => {
  const remembered = (shared: number[], cpus: number[]) => createCpuState({ shared, assignments: [{ podUid: 'u', container: 'c', cpus }] })
  const start = (state: ReturnType<typeof createCpuState>) => () => policy(noStaticOptions, singleSocketHT, state)
  assert.throws(start(remembered([1, 2, 3, 4, 5, 6, 7], [0])), /not all reserved cpus: "0" are present in defaultCpuSet: "1-7"/)
  assert.throws(start(remembered([0, 1, 2, 3, 4, 5, 6, 7], [3])), /pod: u, container: c cpuset: "3" overlaps with default cpuset "0-7"/)
  assert.throws(start(remembered([0, 1, 2, 3, 4, 5], [6])), /current set of available CPUs "0-7" doesn't match with CPUs in state "0-6"/)
})

test('KUB-15 options: unknown, immature and contradictory ones are refused', () => {
  assert.equal(staticOptions({ 'full-pcpus-only': 'true' }, {}).fullPhysicalCpusOnly, true)
  assert.throws(() => staticOptions({ nonsense: 'true' }, {}), /unknown CPU Manager Policy option: "nonsense"/)
  assert.throws(() => staticOptions({ 'align-by-socket': 'true' }, {}), /Alpha-level Options not enabled/)
  assert.throws(() => staticOptions({ 'distribute-cpus-across-numa': 'true' }, { CPUManagerPolicyBetaOptions: false }), /Beta-level Options not enabled/)
  assert.throws(
    () => staticOptions({ 'full-pcpus-only': 'true', 'distribute-cpus-across-cores': 'true' }, { CPUManagerPolicyAlphaOptions: true }),
    /can not be used at the same time/,
  )
  assert.throws(
    () => staticOptions({ 'prefer-align-cpus-by-uncorecache': 'true', 'distribute-cpus-across-numa': 'true' }, {}),
    /PreferAlignCpusByUncoreCache and DistributeCPUsAcrossNUMA can not be used at the same time/,
  )
})
