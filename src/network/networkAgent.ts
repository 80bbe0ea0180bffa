/**
 * The pod network of one node (L3): writes the CNI configuration once the node has its pod CIDRs, and keeps routes to the pods of the other nodes.
 * containerd reports the network ready as soon as the file is there. Upstream's counterpart: a CNI daemon such as kindnet.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Component } from '#base/component'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import { writeFileAtomic } from '#host/files'
import { createNodeRoutes, type NodeRoutesDeps } from './nodeRoutes.ts'
import { cniConfig, podCidrsOf, podRoutes } from './podNetwork.ts'

export type NetworkAgentDeps = NodeRoutesDeps

export interface NetworkAgentConfig {
  readonly nodeName: string
  readonly cniConfigDir: string
  /** The name of a route mode; absent: the first. */
  readonly routeMode?: string | undefined
}

const configFile = '10-skiff.conflist'
const retryMs = 1000

export function createNetworkAgent(deps: NetworkAgentDeps, config: NetworkAgentConfig): Component {
  const { nodeName, routeMode: mode } = config
  const routes = createNodeRoutes(deps, { mode, routesTo: (list) => podRoutes(list, nodeName) })
  return {
    name: 'network-agent',
    run: async (signal) => {
      await Promise.all([keepCniConfig(deps, config, signal), routes.run(signal)])
    },
  }
}

async function keepCniConfig(deps: NetworkAgentDeps, config: NetworkAgentConfig, signal: AbortSignal): Promise<void> {
  const informer = deps.informers.of(nodes)
  const changes = createWakeUp()
  const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  let written = ''
  try {
    await informer.synced(signal)
    while (!signal.aborted) {
      await changes.wait(signal)
      if (signal.aborted) break
      const own = informer.lister.get({ name: config.nodeName })
      const podCidrs = own ? podCidrsOf(own) : []
      if (podCidrs.length === 0 || podCidrs.join() === written) continue
      try {
        await writeCniConfig(podCidrs, config)
        written = podCidrs.join()
      } catch (error) {
        deps.log.error(error, 'Failed to write the CNI configuration')
        await deps.clock.sleep(retryMs, signal)
        changes.ring()
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
  }
}

async function writeCniConfig(podCidrs: readonly string[], { cniConfigDir }: NetworkAgentConfig): Promise<void> {
  await fs.mkdir(cniConfigDir, { recursive: true })
  await writeFileAtomic(path.join(cniConfigDir, configFile), `${JSON.stringify(cniConfig(podCidrs), null, 2)}\n`)
}
