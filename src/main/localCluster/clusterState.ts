/** What a local cluster is made of, on disk (L5): one folder per cluster, one JSON file that says what it consists of. */
import { createHash } from 'node:crypto'
import path from 'node:path'
import { makePrivateDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import { type ClusterNetwork, gatewayOf } from '../vnode/clusterNetwork.ts'
import type { ClusterRanges } from '../vnode/ranges.ts'
import { addressPlanOf } from './addressPlan.ts'

export interface RealNode {
  readonly name: string
  readonly index: number
}

export interface AskedFor {
  readonly nodes: number
  readonly simulatedNodes: number
  /** As it was decided then. */
  readonly runtime: 'containerd' | 'simulated'
}

export interface KubeconfigPlace {
  readonly file: string
  /** The context that was current there before the cluster's; empty: none. */
  readonly previousContext: string
}

export interface ClusterState {
  readonly name: string
  /** Four hexadecimal digits that mark everything the cluster makes on the host. */
  readonly id: string
  readonly port: number
  readonly nodes: readonly RealNode[]
  readonly simulatedNodes: readonly string[]
  /** Only with real nodes. */
  readonly network?: ClusterNetwork | undefined
  /** Where pods and services get addresses from; absent in a cluster that was made before clusters had ranges of their own. */
  readonly ranges?: ClusterRanges | undefined
  readonly verbosity: number
  /** kube-apiserver's flags. */
  readonly apiServerArgs?: readonly string[] | undefined
  /** kube-controller-manager's. */
  readonly controllerManagerArgs?: readonly string[] | undefined
  /** kube-scheduler's. */
  readonly schedulerArgs?: readonly string[] | undefined
  /** What the cluster was made with; what it became may differ, as simulated nodes do from the real ones that the host could not run. */
  readonly asked?: AskedFor | undefined
  /** Where its entry stands, so that it can be renewed there and taken out again. */
  readonly kubeconfigs?: readonly KubeconfigPlace[] | undefined
}

export interface ClusterPaths {
  readonly dir: string
  /** Held by the command that changes the cluster. Not in the folder, which delete removes. */
  readonly lock: string
  readonly state: string
  readonly pki: string
  readonly store: string
  readonly serverLog: string
  readonly serverPid: string
  /** Pids of what the server started. */
  readonly processes: string
  node(name: string): string
}

/** Where a cluster keeps its files. */
export function clusterPaths(home: string, name: string): ClusterPaths {
  const dir = path.join(home, 'clusters', name)
  return {
    dir,
    lock: `${dir}.lock`,
    state: path.join(dir, 'cluster.json'),
    pki: path.join(dir, 'pki'),
    store: path.join(dir, 'store'),
    serverLog: path.join(dir, 'server.log'),
    serverPid: path.join(dir, 'server.pid'),
    processes: path.join(dir, 'processes.json'),
    node: (node) => path.join(dir, 'nodes', node),
  }
}

/** The logs of Skiff's own processes, by what writes them. */
export function logsOf(paths: ClusterPaths, { nodes }: Pick<ClusterState, 'nodes'>): readonly { readonly source: string; readonly file: string }[] {
  return [
    { source: 'server', file: paths.serverLog },
    ...nodes.flatMap((node) => [
      { source: node.name, file: path.join(paths.node(node.name), 'agent.log') },
      { source: `${node.name}/containerd`, file: path.join(paths.node(node.name), 'containerd.log') },
    ]),
  ]
}

/** SKIFF_HOME, else /var/lib/skiff for root, else the user's data folder. */
export function skiffHome(env: Readonly<Record<string, string | undefined>>, isRoot: boolean, home: string): string {
  if (env.SKIFF_HOME) return path.resolve(env.SKIFF_HOME)
  return isRoot ? '/var/lib/skiff' : path.join(env.XDG_DATA_HOME ?? path.join(home, '.local', 'share'), 'skiff')
}

/** From the name and the place, so that two homes on one host do not collide. */
export function clusterId(home: string, name: string): string {
  return createHash('sha256').update(`${home}\0${name}`).digest('hex').slice(0, 4)
}

export async function readState(paths: ClusterPaths): Promise<ClusterState | undefined> {
  const text = await readTextIfExists(paths.state)
  return text ? (JSON.parse(text) as ClusterState) : undefined
}

export async function writeState(paths: ClusterPaths, state: ClusterState): Promise<void> {
  await makePrivateDirectory(paths.dir)
  await writeFileAtomic(paths.state, `${JSON.stringify(state, null, 2)}\n`, 0o600)
}

/** By what names and addresses clients may reach the API server. */
export function servingHosts(state: ClusterState): readonly string[] {
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']
  return [
    ...names,
    'host.docker.internal',
    'host.skiff.internal',
    '127.0.0.1',
    '::1',
    addressPlanOf(state).apiClusterIp,
    ...(state.network ? [gatewayOf(state.network)] : []),
  ]
}

/** cgroup of a node, relative to each hierarchy's root. */
export function nodeCgroup(state: ClusterState, node: RealNode): string {
  return `skiff-${state.id}-${node.index}`
}
