/** The ingress of a local cluster as an addon (L5). */
import { type Addon, type AddonOptions, createAddon } from '../clusterAddon.ts'

export function createIngressAddon(options: AddonOptions) {
  const { client, tools } = options
  const objects = () => import('./ingressObjects.ts')
  const processes = () => import('./ingressProcesses.ts')
  const addon: Addon = {
    name: 'ingress',
    isWanted: (state) => state.ingress,
    ensure: async (signal) => (await objects()).ensureIngressObjects(client, tools.clock, signal),
    run: async (signal) => (await processes()).runIngressProcesses(options, signal),
    remove: async (signal) => (await objects()).removeIngressObjects(client, signal),
    renew: async () => (await processes()).writeIngressConfigs(options),
  }
  return createAddon(options, addon)
}
