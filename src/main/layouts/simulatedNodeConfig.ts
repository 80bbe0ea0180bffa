/** What a planned simulated node claims to be, and what of its kubelet's configuration its Node shows (L5, pure). */
import type { KubeletConfig } from '#kubelet/core/config'
import type { MachineInfo } from '#kubelet/core/host'
import { simulatedMachine } from '#kubelet/runtime/simulated/machine'
import type { PlannedNode } from '../localCluster/simulatedPlan.ts'

export interface SimulatedNodeConfig {
  readonly machine: MachineInfo
  readonly config: Pick<KubeletConfig, 'nodeName' | 'nodeLabels' | 'registerWithTaints' | 'providerID'> & Partial<Pick<KubeletConfig, 'maxPods'>>
}

/** @param isTainted the cluster has real nodes too: only pods that tolerate the taint are scheduled here */
export function simulatedNodeConfig(node: PlannedNode, isTainted: boolean): SimulatedNodeConfig {
  const { name: nodeName, labels = {}, taints = [], capacity = {}, providerID = '' } = node
  const { cpu, memoryBytes, storageBytes, pods } = capacity
  const machine = simulatedMachine(nodeName, {
    ...(cpu === undefined ? {} : { cpus: cpu }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(storageBytes === undefined ? {} : { ephemeralStorageBytes: storageBytes }),
  })
  return {
    machine,
    config: {
      nodeName,
      nodeLabels: { 'skiff.dev/runtime': 'simulated', ...labels },
      registerWithTaints: [...(isTainted ? [{ key: 'skiff.dev/runtime', value: 'simulated', effect: 'NoSchedule' }] : []), ...taints],
      providerID,
      ...(pods === undefined ? {} : { maxPods: pods }),
    },
  }
}
