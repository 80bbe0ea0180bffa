/** The host path CSI driver of a local cluster as an addon (L5): one driver on each node, and the controllers of all in this process. */
import { createWakeUp } from '#base/wakeUp'
import { readState } from '../../localCluster/clusterState.ts'
import { simulatedNodesOf } from '../../localCluster/simulatedPlan.ts'
import { type Addon, createAddon } from '../clusterAddon.ts'
import type { CsiHostPathOptions } from './csiHostPathOptions.ts'

export function createCsiHostPathAddon(options: CsiHostPathOptions) {
  const { client, tools, state, paths } = options
  const objects = () => import('./csiHostPathObjects.ts')
  const changes = createWakeUp()
  const addon: Addon = {
    name: 'csi-hostpath',
    isWanted: ({ csiHostPath }) => csiHostPath,
    ensure: async (signal) => (await objects()).ensureCsiHostPath(client, signal),
    run: async (signal) => (await import('./csiHostPathProcesses.ts')).runCsiHostPathProcesses(options, changes, signal),
    renew: async () => changes.ring(),
    remove: async (signal) => {
      const [{ removeCsiHostPath }, { removeVolumes, unregister }] = await Promise.all([objects(), import('./csiHostPathProcesses.ts')])
      await removeCsiHostPath(client, signal)
      const simulated = simulatedNodesOf((await readState(paths)) ?? state)
      await unregister(
        { ...tools, client },
        simulated.map(({ name }) => name),
        signal,
      )
      await removeVolumes(paths, state)
    },
  }
  return createAddon(options, addon)
}
