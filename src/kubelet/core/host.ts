/**
 * The node's machine as the kubelet needs it (L3): programs, mounts, cgroups, paths and facts.
 */
import { readFile, statfs } from 'node:fs/promises'
import { connect } from 'node:net'
import { arch, cpus, release } from 'node:os'
import type { Duplex } from 'node:stream'
import { bareMap } from '#base/bareMap'
import type { Cgroups } from '#host/cgroups'
import { detectCgroups } from '#host/detectCgroups'
import { createExec, type Exec } from '#host/exec'
import { readTextIfExists } from '#host/files'
import { createMounter, type Mounter } from '#host/mounts'
import type { MachineTopology } from './machineTopology.ts'
import { readTopology } from './readTopology.ts'

/** Facts about the machine for the Node object. */
export interface MachineInfo {
  readonly cpus: number
  readonly memoryBytes: number
  /** Absent: no swap. */
  readonly swapBytes?: number | undefined
  readonly ephemeralStorageBytes: number
  readonly architecture: string
  readonly kernelVersion: string
  readonly osImage: string
  readonly machineID: string
  readonly systemUUID: string
  readonly bootID: string
  /** Absent: one socket, one NUMA node. */
  readonly topology?: MachineTopology | undefined
  /** Whether the kernel can confine containers by AppArmor profiles; undefined: unknown, on simulated nodes. */
  readonly appArmor?: boolean | undefined
}

export interface FilesystemStats {
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly inodes: number
  readonly inodesFree: number
}

export interface KubeletHost {
  readonly exec: Exec
  readonly mounter: Mounter
  readonly cgroups: Cgroups
  /** From a path of the node to a path of this process. */
  path(nodePath: string): string
  /** @param rootDirectory the kubelet's, whose filesystem holds the ephemeral storage; it must exist */
  machine(rootDirectory: string): Promise<MachineInfo>
  /** Opens a connection from the node's network. */
  dial(host: string, port: number, signal?: AbortSignal): Promise<Duplex>
  filesystem(nodePath: string): Promise<FilesystemStats>
}

const goArchitectures: Readonly<Record<string, string>> = bareMap({ x64: 'amd64', arm64: 'arm64', arm: 'arm', ia32: '386' })

/** What GOARCH would be. */
export function goArchitecture(nodeArchitecture: string = arch()): string {
  return goArchitectures[nodeArchitecture] ?? nodeArchitecture
}

/** The machine as this process sees it: the kubelet of a node with separate namespaces runs inside them. */
export async function createKubeletHost(): Promise<KubeletHost> {
  const exec = createExec()
  const path = (nodePath: string) => nodePath
  const filesystem = async (nodePath: string) => {
    const stats = await statfs(path(nodePath))
    return { capacityBytes: stats.blocks * stats.bsize, availableBytes: stats.bavail * stats.bsize, inodes: stats.files, inodesFree: stats.ffree }
  }
  return {
    exec,
    mounter: createMounter(exec),
    cgroups: await detectCgroups(),
    path,
    filesystem,
    machine: async (rootDirectory) => {
      const storage = await filesystem(rootDirectory)
      return { ...(await machineFacts(path)), ephemeralStorageBytes: storage.capacityBytes }
    },
    dial,
  }
}

async function machineFacts(path: (nodePath: string) => string): Promise<Omit<MachineInfo, 'ephemeralStorageBytes'>> {
  const read = async (file: string) => ((await readTextIfExists(file)) ?? '').trim()
  const meminfo = await readFile('/proc/meminfo', 'utf8')
  const memory = /^MemTotal:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? '0'
  const swapBytes = Number(/^SwapTotal:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? '0') * 1024
  const machineID = await read(path('/etc/machine-id'))
  return {
    cpus: cpus().length,
    memoryBytes: Number(memory) * 1024,
    ...(swapBytes > 0 ? { swapBytes } : {}),
    architecture: goArchitecture(),
    kernelVersion: release(),
    osImage: /^PRETTY_NAME="?([^"\n]*)"?/m.exec(await read(path('/etc/os-release')))?.[1] ?? 'Linux',
    machineID,
    systemUUID: (await read('/sys/class/dmi/id/product_uuid').catch(() => '')) || machineID,
    bootID: await read('/proc/sys/kernel/random/boot_id'),
    topology: await readTopology(Number(memory) * 1024),
    appArmor: (await read('/sys/module/apparmor/parameters/enabled').catch(() => '')).startsWith('Y'),
  }
}

function dial(host: string, port: number, signal?: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, ...(signal ? { signal } : {}) })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
