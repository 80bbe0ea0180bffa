/** Lets this host reach the pods of its real nodes (L5): the API server's proxies and webhooks need it. Routes go with the cluster's bridge. */
import { nodeAddress } from '#api/helpers/nodes'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Exec } from '#host/exec'
import { type ClusterNetwork, routePods } from '../vnode/clusterNetwork.ts'

export function createHostRoutes(informers: SharedInformerFactory, exec: Exec, network: ClusterNetwork, log: Logger): Component {
  return {
    name: 'host-routes',
    run: async (signal) => {
      const informer = informers.of(nodes)
      const changes = createWakeUp()
      const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring })
      const routed = new Map<string, string>()
      while (!signal.aborted) {
        await changes.wait(signal)
        for (const node of informer.store.list()) {
          const address = nodeAddress(node, 'InternalIP')
          const { podCIDR } = node.spec
          if (!podCIDR || !address?.startsWith(`${network.prefix}.`) || routed.get(podCIDR) === address) continue
          try {
            await routePods(exec, network, podCIDR, address)
            routed.set(podCIDR, address)
          } catch (error) {
            log.error(error, 'Failed to route to the pods of a node', { node: { kind: 'Node', name: node.metadata.name } })
          }
        }
      }
      registration.remove()
    },
  }
}
