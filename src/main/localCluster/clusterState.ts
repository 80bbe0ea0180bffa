/** What a local cluster is made of, on disk (L5): one folder per cluster, one JSON file that says what it consists of. */
import { createHash } from 'node:crypto'
import path from 'node:path'
import { messageOf } from '#base/messageOf'
import type { UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import { joinEndpoint, splitEndpoint } from '#cli/kubeadm/endpoint'
import type { PublishedPort } from '#cli/publishedPorts'
import { makePrivateDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import type { BackupPlan } from '../backup/backupPlan.ts'
import { type EtcdPlan, etcdMemberPaths } from '../etcd/members.ts'
import { type ClusterNetwork, gatewayOf } from '../vnode/clusterNetwork.ts'
import type { ClusterRanges } from '../vnode/ranges.ts'
import { addressPlanOf } from './addressPlan.ts'
import { advertisedAddressOf, isReplicated, type ServerPlan, serversOf } from './controlPlanes.ts'
import type { AddedNodes, NodeGroup } from './simulatedPlan.ts'

export interface RealNode {
  readonly name: string
  readonly index: number
}

export interface AskedFor {
  readonly nodes: number
  readonly simulatedNodes: number
  /** As it was decided then. */
  readonly runtime: 'containerd' | 'simulated'
  /** Members of an etcd of its own, or the embedded store behind etcd's API; absent: none. */
  readonly etcd?: number | 'embedded' | undefined
  /** Servers; absent: one. */
  readonly controlPlanes?: number | undefined
}

/** How other machines reach the API. */
export interface ReachPlan {
  /** An address of this host, where the API is served on the cluster's port, in addition to 127.0.0.1. */
  readonly advertiseAddress?: string | undefined
  /** HOST or HOST:PORT that machines use to join, such as that of a load balancer. Absent: the address. */
  readonly controlPlaneEndpoint?: string | undefined
  /** More names and addresses that the serving certificate is for. */
  readonly certNames?: readonly string[] | undefined
}

export interface LogLimits {
  /** A log that has become larger is moved aside. */
  readonly maxMebibytes: number
  /** How many files that were moved aside are kept. */
  readonly maxFiles: number
}

export interface KubeconfigPlace {
  readonly file: string
  /** The context that was current there before the cluster's; empty: none. */
  readonly previousContext: string
}

/** The format of a cluster's directory that this version writes. It reads all formats up to this one. 2: lease ids with 64 bits in the store. */
export const newestFormat = 2

export interface ClusterState {
  /** Absent in a cluster of the first format. A version that changes what lies in the directory raises it. */
  readonly format?: number | undefined
  readonly name: string
  /** Four hexadecimal digits that mark everything the cluster makes on the host. */
  readonly id: string
  readonly port: number
  /** Part of what other machines need to reach the cluster; absent: it is for this host. */
  readonly reach?: ReachPlan | undefined
  /** Several servers, with a balancer on `port`. Absent: one server, on `port` itself. */
  readonly servers?: readonly ServerPlan[] | undefined
  readonly nodes: readonly RealNode[]
  readonly simulatedNodes: readonly string[]
  /** Simulated nodes that were added since. */
  readonly addedNodes?: readonly AddedNodes[] | undefined
  /** Groups of simulated nodes, which an autoscaler may change. */
  readonly nodeGroups?: readonly NodeGroup[] | undefined
  /** The number that a node of a group got last. */
  readonly lastGroupNumber?: number | undefined
  /** Simulated nodes that were removed since, and whose Node objects may still be there. */
  readonly removedNodes?: readonly string[] | undefined
  /** Only with real nodes. */
  readonly network?: ClusterNetwork | undefined
  /** Where pods and services get addresses from; absent in a cluster that was made before clusters had ranges of their own. */
  readonly ranges?: ClusterRanges | undefined
  readonly verbosity: number
  /** The processes of its server; absent: auto. */
  readonly layout?: UpOptions['layout']
  readonly logLimits?: LogLimits | undefined
  /** The values of --history and --history-size; absent: history is kept for the compaction interval. */
  readonly history?: { readonly age?: string | undefined; readonly size?: string | undefined } | undefined
  /** When backups are made; absent: never. */
  readonly backup?: BackupPlan | undefined
  /** kube-apiserver's flags. */
  readonly apiServerArgs?: readonly string[] | undefined
  /** kube-controller-manager's. */
  readonly controllerManagerArgs?: readonly string[] | undefined
  /** kube-scheduler's. */
  readonly schedulerArgs?: readonly string[] | undefined
  /** Ingresses are served. False: they were once, and what was made for that is removed. */
  readonly ingress?: boolean | undefined
  /** The host path CSI driver runs on the nodes. False: it did once, and what was made for that is removed. */
  readonly csiHostPath?: boolean | undefined
  /** The mode of the real nodes' service proxy. Absent: auto. */
  readonly proxyMode?: string | undefined
  /** The pod network of the real nodes: the name of a route mode, or none. Absent: the first mode. */
  readonly podNetwork?: string | undefined
  /** Ports of localhost that lead to the nodes, whatever Services there are. */
  readonly publish?: readonly PublishedPort[] | undefined
  /** Its own etcd, which stores the objects. Absent: a file in its folder does, or an etcd that the API server's flags name. */
  readonly etcd?: EtcdPlan | undefined
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
  /** Where the server gives snapshots of the store, to the owner of the folder. */
  readonly storeSocket: string
  readonly supervisorLog: string
  readonly supervisorPid: string
  /** When and how the server and the nodes ended unasked, for people. */
  readonly crashes: string
  /** How often, for `status`. */
  readonly restarts: string
  /** Which scheduled backups there are. */
  readonly backups: string
  readonly balancerLog: string
  readonly balancerPid: string
  /** The ports of simulated nodes' kubelets. */
  readonly kubelets: string
  /** Held by the server that makes or renews certificates. */
  readonly pkiLock: string
  server(name: string): ServerPaths
  node(name: string): string
}

export interface ServerPaths {
  readonly log: string
  readonly pid: string
  /** Pids of what the server started. */
  readonly processes: string
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
    storeSocket: path.join(dir, 'store.sock'),
    supervisorLog: path.join(dir, 'supervisor.log'),
    supervisorPid: path.join(dir, 'supervisor.pid'),
    crashes: path.join(dir, 'crashes.log'),
    restarts: path.join(dir, 'restarts.json'),
    backups: path.join(dir, 'backups.json'),
    balancerLog: path.join(dir, 'balancer.log'),
    balancerPid: path.join(dir, 'balancer.pid'),
    kubelets: path.join(dir, 'kubelets.json'),
    pkiLock: path.join(dir, 'pki.lock'),
    server: (server) => ({
      log: path.join(dir, `${server}.log`),
      pid: path.join(dir, `${server}.pid`),
      processes: path.join(dir, server === 'server' ? 'processes.json' : `${server}.processes.json`),
    }),
    node: (node) => path.join(dir, 'nodes', node),
  }
}

/** The logs of Skiff's own processes, by what writes them. */
export function logsOf(
  paths: ClusterPaths,
  state: Pick<ClusterState, 'nodes' | 'etcd' | 'servers' | 'port'>,
): readonly { readonly source: string; readonly file: string }[] {
  const { nodes, etcd } = state
  return [
    ...serversOf(state).map(({ name }) => ({ source: name, file: paths.server(name).log })),
    ...(isReplicated(state) ? [{ source: 'balancer', file: paths.balancerLog }] : []),
    { source: 'supervisor', file: paths.supervisorLog },
    ...(etcd?.members ?? []).map(({ name }) => ({ source: name, file: etcdMemberPaths(paths, name).log })),
    ...nodes.flatMap((node) => [
      { source: node.name, file: path.join(paths.node(node.name), 'agent.log') },
      { source: `${node.name}/ingress`, file: path.join(paths.node(node.name), 'ingress.log') },
      { source: `${node.name}/csi`, file: path.join(paths.node(node.name), 'csi.log') },
      { source: `${node.name}/containerd`, file: path.join(paths.node(node.name), 'containerd.log') },
      { source: `${node.name}/init`, file: path.join(paths.node(node.name), 'init.log') },
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

/** Undefined when there is no cluster. @throws CommandError when the file is damaged, or a newer version wrote it */
export async function readState(paths: ClusterPaths): Promise<ClusterState | undefined> {
  const text = await readTextIfExists(paths.state)
  if (text === undefined) return undefined
  const name = path.basename(paths.dir)
  let state: Partial<ClusterState>
  try {
    state = JSON.parse(text)
    if (typeof state !== 'object' || state === null || state.name !== name || !Array.isArray(state.nodes)) throw new Error('it does not describe this cluster')
  } catch (error) {
    throw new CommandError('internal', `${paths.state} is damaged: ${messageOf(error)}`, {
      hint: `put the file back as it was, or remove the cluster with its data: skiff delete ${name}`,
      cause: error,
    })
  }
  const { format = 1 } = state
  if (format > newestFormat) {
    throw new CommandError(
      'unmetPrerequisite',
      `cluster "${name}" has the data format ${format}, and this version of Skiff reads formats up to ${newestFormat}`,
      {
        hint: `run it with the version that made it or a newer one: npx skiff@latest start ${name}`,
      },
    )
  }
  return state as ClusterState
}

export async function writeState(paths: ClusterPaths, state: ClusterState): Promise<void> {
  await makePrivateDirectory(paths.dir)
  await writeFileAtomic(paths.state, `${JSON.stringify(state, null, 2)}\n`, 0o600)
}

/** By what names and addresses clients may reach the API server. */
export function servingHosts(state: ClusterState): readonly string[] {
  const { advertiseAddress, controlPlaneEndpoint, certNames = [] } = state.reach ?? {}
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']
  return [
    ...names,
    'host.docker.internal',
    'host.skiff.internal',
    '127.0.0.1',
    '::1',
    addressPlanOf(state).apiClusterIp,
    ...(state.network ? [gatewayOf(state.network)] : []),
    ...(advertiseAddress === undefined ? [] : [advertiseAddress]),
    ...(controlPlaneEndpoint === undefined ? [] : [splitEndpoint(controlPlaneEndpoint).host]),
    ...certNames,
    ...(isReplicated(state) ? serversOf(state).flatMap(({ name }) => advertisedAddressOf(state, name) ?? []) : []),
  ]
}

/** Where machines that join find the API, as HOST:PORT. */
export function joinEndpointOf({ port, network, reach = {} }: Pick<ClusterState, 'port' | 'network' | 'reach'>): string {
  const { advertiseAddress, controlPlaneEndpoint } = reach
  if (controlPlaneEndpoint !== undefined) return joinEndpoint({ port, ...splitEndpoint(controlPlaneEndpoint) })
  // Without real nodes the servers listen on loopback alone.
  return joinEndpoint({ host: advertiseAddress ?? (network ? gatewayOf(network) : '127.0.0.1'), port })
}

/** The variable that marks the processes of a cluster: they inherit the path of its directory from the supervisor. Containers do not. */
export const markVariable = 'SKIFF_CLUSTER_DIR'

/** cgroup of a node, relative to each hierarchy's root. */
export function nodeCgroup(state: ClusterState, node: RealNode): string {
  return `skiff-${state.id}-${node.index}`
}
