/** Turns the ingress of a local cluster on and off (L5): the wish is kept with the cluster, and its server carries it out. */
import type { Addon } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { type ApiProbe, createApiProbe } from './apiProbe.ts'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { runningServers, runsServer } from './runningServers.ts'
import { loadPki } from './sharedPki.ts'

const servesMs = 30_000

/** @throws CommandError unmetPrerequisite without real nodes */
export function checkIngress(realNodes: number): void {
  if (realNodes > 0) return
  throw new CommandError('unmetPrerequisite', 'an ingress needs a node with containerd: simulated pods answer no request', {
    hint: 'skiff doctor says what real nodes need',
  })
}

/** The cluster as it is wanted from now on; a server that runs carries it out. */
export async function withIngress(paths: ClusterPaths, state: ClusterState, wanted: boolean | undefined): Promise<ClusterState> {
  if (wanted === undefined || wanted === (state.ingress ?? false)) return state
  if (wanted) checkIngress(state.nodes.length)
  const changed = { ...state, ingress: wanted }
  await writeState(paths, changed)
  for (const { pid } of (await runningServers(paths, state)).values()) process.kill(pid, 'SIGHUP')
  return changed
}

/** @returns false when it was so already */
export async function setIngress(deps: LocalClusterDeps, paths: ClusterPaths, state: ClusterState, wanted: boolean, progress: Progress): Promise<boolean> {
  const changed = await withIngress(paths, state, wanted)
  if (changed === state) return false
  if (!(await runsServer(paths, state))) return true
  const pki = await loadPki(deps, paths, changed)
  const probe = createApiProbe(changed.port, pki.ca.cert, pki.admin, deps.clock)
  try {
    if (wanted) await progress.step('Ingress', () => probe.until('an ingress on every node', servesMs, () => ingressIsThere(changed, probe)))
    else await progress.step('Removing the ingress', () => probe.until('the end of the ingress', servesMs, () => ingressIsGone(probe)))
  } finally {
    probe.close()
  }
  return true
}

export function addonsOf({ ingress = false }: ClusterState): readonly { readonly addon: Addon; readonly enabled: boolean }[] {
  return [{ addon: 'ingress', enabled: ingress }]
}

/** Every real node is an endpoint of the Service, which has an address. */
export async function ingressIsThere({ nodes }: ClusterState, probe: ApiProbe): Promise<true | undefined> {
  const [slices, service] = await Promise.all([
    probe.get('/apis/discovery.k8s.io/v1/namespaces/skiff-ingress/endpointslices'),
    probe.get('/api/v1/namespaces/skiff-ingress/services/skiff-ingress'),
  ])
  if (slices?.status !== 200 || service?.status !== 200) return undefined
  const { items } = JSON.parse(slices.body) as { items: unknown[] }
  const { status } = JSON.parse(service.body) as { status?: { loadBalancer?: { ingress?: unknown[] } } }
  return items.length >= nodes.length && (status?.loadBalancer?.ingress?.length ?? 0) > 0 ? true : undefined
}

async function ingressIsGone(probe: ApiProbe): Promise<true | undefined> {
  const [ingressClass, namespace] = await Promise.all([
    probe.get('/apis/networking.k8s.io/v1/ingressclasses/skiff'),
    probe.get('/api/v1/namespaces/skiff-ingress'),
  ])
  return ingressClass?.status === 404 && namespace?.status === 404 ? true : undefined
}
