/** Turns the addons of a local cluster on and off (L5): stores the setting in the cluster's description; the server applies it. */
import type { Addon } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import type { AddonPlan } from './addonPlan.ts'
import { createApiProbe } from './apiProbe.ts'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import { csiHostPath } from './csiHostPathAddon.ts'
import type { LocalClusterDeps } from './deps.ts'
import { ingress } from './ingressAddon.ts'
import { runsServer, tellServers } from './runningServers.ts'
import { loadPki } from './sharedPki.ts'

const waitMs = 30_000
const plans: Readonly<Record<Addon, AddonPlan>> = { ingress, 'csi-hostpath': csiHostPath }

/** The cluster as it is wanted from now on; a server that runs carries it out. */
export async function withAddon(paths: ClusterPaths, state: ClusterState, { key, check }: AddonPlan, wanted: boolean | undefined): Promise<ClusterState> {
  if (wanted === undefined || wanted === (state[key] ?? false)) return state
  if (wanted) check?.(state.nodes.length)
  const changed = { ...state, [key]: wanted }
  await writeState(paths, changed)
  await tellServers(paths, state)
  return changed
}

/** @returns false when nothing changed */
export async function setAddon(
  deps: LocalClusterDeps,
  paths: ClusterPaths,
  state: ClusterState,
  { addon, wanted }: { readonly addon: Addon; readonly wanted: boolean },
  progress: Progress,
): Promise<boolean> {
  const plan = plans[addon]
  if (!(await runsServer(paths, state))) {
    if (!wanted && state[plan.key] && plan.checkRemoval)
      throw new CommandError('unmetPrerequisite', `the API server does not run, so skiff cannot check whether ${addon} is in use`, {
        hint: `skiff start ${state.name}`,
      })
    return (await withAddon(paths, state, plan, wanted)) !== state
  }
  const pki = await loadPki(deps, paths, state)
  const probe = createApiProbe(state.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    if (!wanted && state[plan.key]) await plan.checkRemoval?.(probe, paths, state)
    const changed = await withAddon(paths, state, plan, wanted)
    if (changed === state) return false
    const { title } = plan
    if (wanted) await progress.step(title, () => probe.until(`the start of ${title}`, waitMs, () => plan.isThere(changed, probe)))
    else await progress.step(`Removing: ${title}`, () => probe.until(`the end of ${title}`, waitMs, () => plan.isGone(changed, probe)))
  } finally {
    probe.close()
  }
  return true
}

export function addonsOf(state: ClusterState): readonly { readonly addon: Addon; readonly enabled: boolean }[] {
  return Object.values(plans).map(({ name, key }) => ({ addon: name, enabled: state[key] ?? false }))
}
