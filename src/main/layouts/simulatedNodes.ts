/** Simulated nodes (L5): the same kubelet over a runtime that only pretends, many in one process. */
import type { Component } from '#base/component'
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import { createKubelet } from '#kubelet/kubelet'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import type { ProcessTools } from './processTools.ts'

export interface SimulatedNodesOptions {
  readonly names: readonly string[]
  readonly tools: ProcessTools
  /** A way into the API as that node. */
  transportOf(nodeName: string): Transport
  readonly clusterDns: string
  readonly clusterDomain: string
}

export function createSimulatedNodes(options: SimulatedNodesOptions): Component[] {
  const { tools } = options
  return options.names.map((nodeName, index) =>
    createKubelet(
      {
        client: createClient(options.transportOf(nodeName)),
        ...tools,
        log: tools.log.with('kubelet', { node: nodeName }),
        runtime: createSimulatedRuntime({ clock: tools.clock, random: tools.random }),
        machine: {
          cpus: 16,
          memoryBytes: 64 * 2 ** 30,
          ephemeralStorageBytes: 200 * 2 ** 30,
          architecture: 'amd64',
          kernelVersion: 'simulated',
          osImage: 'Skiff simulated node',
          machineID: nodeName,
          systemUUID: nodeName,
          bootID: nodeName,
        },
      },
      {
        nodeName,
        nodeIPs: [simulatedAddress(index)],
        clusterDNS: [options.clusterDns],
        clusterDomain: options.clusterDomain,
        nodeLabels: { 'skiff.dev/runtime': 'simulated' },
        // Nothing escapes a simulated runtime, so nobody has to look again.
        relistPeriodMs: 0,
        syncFrequencyMs: 0,
      },
    ),
  )
}

/** From the range that is reserved for benchmarks: nobody answers there. */
function simulatedAddress(index: number): string {
  return `198.18.${Math.floor(index / 250)}.${(index % 250) + 1}`
}
