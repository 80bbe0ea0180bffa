import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noCheckpoint } from '../../core/checkpointFile.ts'
import type { MachineTopology } from '../../core/machineTopology.ts'
import { maskOf } from '../topology/hints.ts'
import { createMemoryManager, reservedMemory } from './memoryManager.ts'
import { type MemoryState, parseMemoryState, renderMemoryState } from './memoryState.ts'

const gibi = 2 ** 30
const topology: MachineTopology = {
  cpus: [],
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * gibi, hugepages: new Map([[2 ** 20 * 2, 512]]), distances: [10, 20] })),
}

function pod(uid: string, memory: string, more: Record<string, string> = {}): Pod {
  const amounts = { cpu: '1', memory, ...more }
  const spec = { containers: [{ name: 'c', resources: { requests: amounts, limits: amounts } }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, uid }, spec, status: { qosClass: 'Guaranteed' } } as unknown as Pod
}

const settings = { policy: 'Static', reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }], nodeReserved: { memory: gibi } }
const manager = () => createMemoryManager(topology, settings, noCheckpoint())
const anywhere = { affinity: undefined, preferred: true }

test('KUB-15 memory is allocated from one NUMA node if it has enough, and is released', async () => {
  const memory = await manager()
  const p = pod('u', '2Gi', { 'hugepages-2Mi': '512Mi' })
  await memory.allocate(p, p.spec.containers[0]!, anywhere)
  assert.deepEqual(memory.nodesOf('u', 'c'), [0])
  assert.deepEqual(memory.blocks('u', 'c'), [
    { numaAffinity: [0], type: 'memory', size: 2 * gibi },
    { numaAffinity: [0], type: 'hugepages-2Mi', size: gibi / 2 },
  ])
  const second = pod('v', '2Gi')
  await memory.allocate(second, second.spec.containers[0]!, anywhere)
  assert.deepEqual(memory.nodesOf('v', 'c'), [1], 'the first node has none left')
  memory.release('u')
  assert.deepEqual([...memory.pods()], ['v'])
  assert.deepEqual(memory.nodesOf('u', 'c'), [])
})

test('KUB-15 an allocation over two NUMA nodes and one on a single of them exclude each other', async () => {
  const memory = await manager()
  const wide = pod('wide', '4Gi')
  assert.deepEqual(memory.hints(wide, wide.spec.containers[0]!).memory, [{ affinity: maskOf([0, 1]), preferred: true }])
  const small = pod('small', '1Gi')
  await memory.allocate(small, small.spec.containers[0]!, { affinity: maskOf([1]), preferred: true })
  assert.deepEqual(memory.hints(wide, wide.spec.containers[0]!).memory, [])
  assert.throws(() => memory.allocate(wide, wide.spec.containers[0]!, anywhere), /no NUMA nodes with enough memory is available/)
})

test('KUB-15 reservations per NUMA node must add up to what the node reserves', () => {
  assert.throws(
    () => reservedMemory(topology, { ...settings, nodeReserved: { memory: 2 * gibi } }),
    /the total amount "1073741824" of type "memory" is not equal to the value "2147483648" determined by Node Allocatable feature/,
  )
  assert.throws(() => reservedMemory(topology, { ...settings, reservedMemory: [{ numaNode: 7, limits: {} }] }), /NUMA node 7/)
})

test('KUB-15 the memory checkpoint has the checksum that upstream computes', () => {
  const text = JSON.stringify({
    policyName: 'static',
    machineState: {
      0: { numberOfAssignments: 0, memoryMap: { memory: { total: 2048, systemReserved: 512, allocatable: 1536, reserved: 512, free: 1024 } }, cells: [] },
    },
    entries: { pod: { container1: [{ numaAffinity: [0], type: 'memory', size: 512 }] } },
    checksum: 4215593881,
  })
  const state: MemoryState = parseMemoryState(text, 'static')
  assert.equal(renderMemoryState('static', state), text)
  assert.throws(() => parseMemoryState(text.replace('1024', '1025'), 'static'), /checkpoint is corrupted/)
  assert.throws(() => parseMemoryState(text, 'Static'), /configured policy "Static" differs from state checkpoint policy "static"/)
})
