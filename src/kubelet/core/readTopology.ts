/**
 * Reads how this machine's CPUs and memory are laid out from /sys (L3, edge). Without information there is one socket, one NUMA node,
 * one cache. Upstream: cadvisor utils/sysinfo, kubelet/cm/cpumanager/topology Discover.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readTextIfExists } from '#host/files'
import { parseCpuSet } from './cpuSet.ts'
import type { CpuInfo, MachineTopology, NumaNode } from './machineTopology.ts'

/** @param sys where sysfs is mounted */
export async function readTopology(memoryBytes: number, sys = '/sys'): Promise<MachineTopology> {
  const numaNodes = await readNumaNodes(sys, memoryBytes)
  const online = (await readTextIfExists(join(sys, 'devices/system/cpu/online'))) ?? '0'
  const cpus = await Promise.all(parseCpuSet(online).map((id) => readCpu(sys, id, numaNodes)))
  return { cpus, numaNodes: numaNodes.map(({ cpus: _, ...node }) => node) }
}

type NodeWithCpus = NumaNode & { readonly cpus: readonly number[] }

async function readCpu(sys: string, id: number, nodes: readonly NodeWithCpus[]): Promise<CpuInfo> {
  const directory = join(sys, `devices/system/cpu/cpu${id}`)
  const text = async (name: string) => ((await readTextIfExists(join(directory, name))) ?? '').trim()
  const threads = parseCpuSet((await text('topology/thread_siblings_list')) || String(id))
  const socket = Number((await text('topology/physical_package_id')) || 0)
  return {
    id,
    core: threads[0] ?? id,
    socket: Math.max(0, socket),
    numaNode: nodes.find((node) => node.cpus.includes(id))?.id ?? 0,
    uncoreCache: await lastLevelCache(directory, id),
  }
}

/** The lowest CPU that shares the largest cache: unique without any id of the hardware's. */
async function lastLevelCache(directory: string, id: number): Promise<number> {
  let best: { level: number; id: number } = { level: 0, id }
  for (const name of await readdir(join(directory, 'cache')).catch(() => [])) {
    if (!name.startsWith('index')) continue
    const level = Number((await readTextIfExists(join(directory, 'cache', name, 'level'))) ?? 0)
    const shared = parseCpuSet((await readTextIfExists(join(directory, 'cache', name, 'shared_cpu_list'))) ?? '')
    if (level >= best.level && shared[0] !== undefined) best = { level, id: shared[0] }
  }
  return best.id
}

async function readNumaNodes(sys: string, memoryBytes: number): Promise<NodeWithCpus[]> {
  const root = join(sys, 'devices/system/node')
  const ids = (await readdir(root).catch(() => [])).flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? []).map(Number)
  if (ids.length === 0) return [{ id: 0, memoryBytes, hugepages: await readHugepages(join(sys, 'kernel/mm/hugepages')), distances: [10], cpus: [] }]
  return Promise.all(
    ids
      .sort((a, b) => a - b)
      .map(async (id) => {
        const directory = join(root, `node${id}`)
        const text = async (name: string) => ((await readTextIfExists(join(directory, name))) ?? '').trim()
        const total = /MemTotal:\s+(\d+) kB/.exec(await text('meminfo'))?.[1]
        return {
          id,
          memoryBytes: total === undefined ? memoryBytes : Number(total) * 1024,
          hugepages: await readHugepages(join(directory, 'hugepages')),
          distances: (await text('distance')).split(/\s+/).filter(Boolean).map(Number),
          cpus: parseCpuSet(await text('cpulist')),
        }
      }),
  )
}

async function readHugepages(directory: string): Promise<Map<number, number>> {
  const pages = new Map<number, number>()
  for (const name of (await readdir(directory).catch(() => [])).sort()) {
    const kibi = /^hugepages-(\d+)kB$/.exec(name)?.[1]
    if (kibi !== undefined) pages.set(Number(kibi) * 1024, Number((await readTextIfExists(join(directory, name, 'nr_hugepages'))) ?? 0))
  }
  return pages
}
