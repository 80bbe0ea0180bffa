import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { cpuSet, formatCpuSet, parseCpuSet } from './cpuSet.ts'
import { hugepageBytes, hugepageResource } from './machineTopology.ts'
import { readTopology } from './readTopology.ts'

/** Two sockets, each a NUMA node with one core of two threads. */
const files: Record<string, string> = {
  'devices/system/cpu/online': '0-3\n',
  'devices/system/node/node0/cpulist': '0,2\n',
  'devices/system/node/node1/cpulist': '1,3\n',
  'devices/system/node/node0/distance': '10 21\n',
  'devices/system/node/node1/distance': '21 10\n',
  'devices/system/node/node0/meminfo': 'Node 0 MemTotal:       1024 kB\n',
  'devices/system/node/node1/meminfo': 'Node 1 MemTotal:       2048 kB\n',
  'devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages': '3\n',
  'devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages': '1\n',
}
for (const [cpu, socket, siblings] of [
  [0, 0, '0,2'],
  [1, 1, '1,3'],
  [2, 0, '0,2'],
  [3, 1, '1,3'],
] as const) {
  files[`devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`] = siblings
  files[`devices/system/cpu/cpu${cpu}/topology/physical_package_id`] = String(socket)
  files[`devices/system/cpu/cpu${cpu}/cache/index3/level`] = '3'
  files[`devices/system/cpu/cpu${cpu}/cache/index3/shared_cpu_list`] = siblings
}

test('KUB-15 the layout of a machine is read from sysfs', async () => {
  const sys = await mkdtemp(join(tmpdir(), 'skiff-sys-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(sys, name)), { recursive: true })
      await writeFile(join(sys, name), text)
    }
    const topology = await readTopology(0, sys)
    assert.deepEqual(topology.cpus[3], { id: 3, core: 1, socket: 1, numaNode: 1, uncoreCache: 1 })
    assert.deepEqual(
      topology.numaNodes.map(({ id, memoryBytes, distances }) => ({ id, memoryBytes, distances })),
      [
        { id: 0, memoryBytes: 2 ** 20, distances: [10, 21] },
        { id: 1, memoryBytes: 2 ** 21, distances: [21, 10] },
      ],
    )
    assert.deepEqual([...hugepageBytes(topology)], [[2 ** 21, 4 * 2 ** 21]])
  } finally {
    await rm(sys, { recursive: true, force: true })
  }
})

test('KUB-15 a machine without files in /sys has one socket, one NUMA node and one CPU', async () => {
  const topology = await readTopology(4096, '/nonexistent')
  assert.deepEqual(topology, {
    cpus: [{ id: 0, core: 0, socket: 0, numaNode: 0, uncoreCache: 0 }],
    numaNodes: [{ id: 0, memoryBytes: 4096, hugepages: new Map(), distances: [10] }],
  })
})

test('KUB-15 lists of CPUs as the kernel writes them', () => {
  assert.deepEqual(parseCpuSet('0-2,8,10-11\n'), [0, 1, 2, 8, 10, 11])
  assert.equal(formatCpuSet(cpuSet([11, 0, 1, 2, 8, 10, 8])), '0-2,8,10-11')
  for (const wrong of ['3-1', 'x', '1-', '0-99999999']) assert.throws(() => parseCpuSet(wrong), /is no list of CPUs/)
  assert.deepEqual([2 ** 21, 2 ** 30, 65_536].map(hugepageResource), ['hugepages-2Mi', 'hugepages-1Gi', 'hugepages-64Ki'])
})
