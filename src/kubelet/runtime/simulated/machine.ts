/** What a simulated node claims to be (L3). */
import type { MachineInfo } from '../../core/host.ts'

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
