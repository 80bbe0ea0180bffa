/** What a simulated node claims to be (L3). */
import type { MachineInfo } from '../../core/host.ts'

/** The addresses of simulated nodes. RFC 2544 reserves them for measurements: a host's networks hardly ever have them, and nothing connects to them. */
export const simulatedNodeBlock = { network: '198.18.0.0', prefix: 15 } as const

/** The address of the nth simulated node of a cluster, from 1; the same after a restart. */
export function simulatedNodeAddress(index: number): string {
  const offset = index % 2 ** (32 - simulatedNodeBlock.prefix)
  return `198.${18 + Math.floor(offset / 0x1_0000)}.${Math.floor(offset / 0x100) % 0x100}.${offset % 0x100}`
}

export function simulatedMachine(nodeName: string, claims: Partial<MachineInfo> = {}): MachineInfo {
  return {
    cpus: 16,
    memoryBytes: 64 * 2 ** 30,
    ephemeralStorageBytes: 200 * 2 ** 30,
    architecture: 'amd64',
    kernelVersion: 'simulated',
    osImage: 'Skiff simulated node',
    machineID: nodeName,
    systemUUID: nodeName,
    bootID: nodeName,
    ...claims,
  }
}
