/**
 * Simulated nodes (L5): the same kubelet over a runtime that starts no processes, many in one process. Each serves logs and exec on its own loopback port.
 */
import type { Component } from '#base/component'
import type { Client } from '#client/client'
import { createKubelet } from '#kubelet/kubelet'
import { simulatedMachine, simulatedNodeAddress } from '#kubelet/runtime/simulated/machine'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { apiAuth } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createResourceSampler } from '#kubelet/server/stats/resourceSample'
import { freePort } from '../localCluster/freePort.ts'
import type { OwnKubelets } from './ownKubelets.ts'
import type { ProcessTools } from './processTools.ts'

export interface SimulatedNodesOptions {
  readonly names: readonly string[]
  readonly tools: ProcessTools
  /** Records the loopback port of each kubelet for the API server. */
  readonly ownKubelets: OwnKubelets
  /** A client with the identity of that node. */
  clientOf(nodeName: string): Client
  readonly clusterDns: string
  readonly clusterDomain: string
  /** The cluster has real nodes too: only pods that tolerate the taint are scheduled here. */
  readonly tainted: boolean
  /** A serving certificate for the loopback address, and who may show client certificates. */
  readonly serving: { readonly cert: string; readonly key: string; readonly clientCa: string }
  /** Registers a function to call when the certificate may have been renewed. */
  readonly onServingRenewed: (apply: () => void) => void
}

export async function createSimulatedNodes(options: SimulatedNodesOptions): Promise<Component[]> {
  return (await Promise.all(options.names.map((name, index) => simulatedNode(options, name, simulatedNodeAddress(index + 1))))).flat()
}

const listensOn = '127.0.0.1'

async function simulatedNode(options: SimulatedNodesOptions, nodeName: string, address: string): Promise<Component[]> {
  const { tools } = options
  const client = options.clientOf(nodeName)
  const log = tools.log.with('kubelet', { node: nodeName })
  const port = await freePort()
  options.ownKubelets.add(nodeName, { address, port, listensOn })
  const kubelet = createKubelet(
    {
      client,
      ...tools,
      log,
      runtime: createSimulatedRuntime({ clock: tools.clock, random: tools.random }),
      machine: simulatedMachine(nodeName),
    },
    {
      nodeName,
      nodeIPs: [address],
      port,
      clusterDNS: [options.clusterDns],
      clusterDomain: options.clusterDomain,
      nodeLabels: { 'skiff.dev/runtime': 'simulated' },
      registerWithTaints: options.tainted ? [{ key: 'skiff.dev/runtime', value: 'simulated', effect: 'NoSchedule' }] : [],
      // A simulated runtime reports every change: relisting finds nothing more.
      relistPeriodMs: 0,
      syncFrequencyMs: 0,
    },
  )
  options.ownKubelets.addMeter(nodeName, createResourceSampler(kubelet.view, tools.clock))
  const server = createKubeletServer(
    { view: kubelet.view, auth: apiAuth(client, tools.clock, nodeName), clock: tools.clock, log },
    { address: listensOn, port, ...options.serving },
  )
  options.onServingRenewed(() => server.setTls(options.serving))
  return [kubelet, server]
}
