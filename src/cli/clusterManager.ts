/** What the commands ask of local clusters (L4). main/localCluster implements it: commands know flags and output, it knows processes and files. */
import type { BackupOptions } from './backupOptions.ts'
import type { KubeconfigEntry } from './kubeconfigFile.ts'
import type { NodeLike } from './nodeLike.ts'
import type { Progress } from './progress.ts'
import type { PublishedPort } from './publishedPorts.ts'

/** How packets get from pod to pod. */
export const podNetworks = ['host-gw', 'vxlan', 'none'] as const
export type PodNetwork = (typeof podNetworks)[number]

/** The families of the addresses of pods, nodes and Services. */
export const ipFamilies = ['ipv4', 'ipv4,ipv6', 'ipv6'] as const
export type IpFamilies = (typeof ipFamilies)[number]

/** Where a server's parts run: all in one process, or controllers and simulated nodes in processes of their own. */
export const layoutNames = ['single', 'split'] as const
export type LayoutName = (typeof layoutNames)[number]

/** What the user asked for. Undefined: nothing, so that a new cluster gets the default and one that is there stays as it is. */
export interface UpOptions {
  /** Default 1. */
  readonly nodes: number | undefined
  /** Default 0. */
  readonly simulatedNodes: number | undefined
  /** auto, the default: containerd where the host can, else simulated. */
  readonly runtime: 'auto' | 'containerd' | 'simulated' | undefined
  /** 0, the default: the cluster's own, chosen once and kept. */
  readonly port: number | undefined
  /** The range of pods' addresses, a /24 of which each node gets (of IPv6 a /64), or one of each family with a comma between. Default: one that nothing on this host uses. */
  readonly podCidr: string | undefined
  /** The range of Services' addresses, likewise. */
  readonly serviceCidr: string | undefined
  /** Default: as the ranges have them, else IPv4 alone. */
  readonly ipFamilies: IpFamilies | undefined
  /** An address of this host on which other machines reach the API. Default: none, it is for this host. */
  readonly advertiseAddress: string | undefined
  /** HOST or HOST:PORT that machines use to join. Default: the address. */
  readonly controlPlaneEndpoint: string | undefined
  /** More names and addresses for the serving certificate. */
  readonly certNames: readonly string[] | undefined
  /** Default 2; for a cluster that is there, from the next start of its server on. */
  readonly verbosity: number | undefined
  /** MiB beyond which a log is moved aside, default 20; for a cluster that is there, from the next start of its server on. */
  readonly logMaxSize: number | undefined
  /** How many files moved aside are kept of each log, default 3, likewise. */
  readonly logMaxFiles: number | undefined
  /** How long replaced versions can be read, such as 24h; for a cluster that is there, from the next start of its server on. */
  readonly history: string | undefined
  /** The most that they may take, such as 400Mi, likewise. */
  readonly historySize: string | undefined
  /** Scheduled backups. Undefined: as they were; a new cluster has none. */
  readonly backup: BackupOptions | undefined
  /** Start the cluster when the host boots. Undefined: as it was. */
  readonly autostart: boolean | undefined
  /** Serve Ingresses on the real nodes. Undefined: as it was. */
  readonly ingress: boolean | undefined
  /** How real nodes serve Services: auto, the default, or the name of a mode. For a cluster that is there: from its next start on. */
  readonly proxyMode: string | undefined
  /** How packets get from pod to pod: host-gw, vxlan, or none. Default: host-gw. */
  readonly podNetwork: PodNetwork | undefined
  /** Ports of localhost that lead to the real nodes. Undefined: none. */
  readonly publish: readonly PublishedPort[] | undefined
  /**
   * Members of an etcd of the cluster's own; `embedded`: one process with the embedded store behind etcd's API. Undefined: none, its objects are in a file, or
   * where kube-apiserver's flags say.
   */
  readonly etcd: number | 'embedded' | undefined
  /** Servers behind one endpoint, over one etcd. Default 1. */
  readonly controlPlanes: number | undefined
  /** auto, the default: split where it pays. For a cluster that is there: from the next start of its server on. */
  readonly layout: 'auto' | LayoutName | undefined
  /** kube-apiserver's flags, `--name=value` each. For a cluster that is there: from the next start of its server on. */
  readonly apiServerArgs: readonly string[] | undefined
  /** kube-controller-manager's, likewise. */
  readonly controllerManagerArgs: readonly string[] | undefined
  /** kube-scheduler's, likewise. */
  readonly schedulerArgs: readonly string[] | undefined
}

export interface ProcessStatus {
  /**
   * `supervisor` starts the others again; `balancer` spreads connections over several servers; `server` holds the API; `dialer` makes its connections to
   * pods; `controllers` and `simulated-nodes` are parts of a server that run alone; `forwarder` serves ports on localhost; `node` is a node's agent, `ingress` its ingress and `csi` its host path driver; `containerd` and `init` belong to a real node; `etcd`
   * is a member of the cluster's own etcd.
   */
  readonly role:
    | 'supervisor'
    | 'balancer'
    | 'server'
    | 'controllers'
    | 'simulated-nodes'
    | 'dialer'
    | 'forwarder'
    | 'node'
    | 'ingress'
    | 'csi'
    | 'containerd'
    | 'init'
    | 'etcd'
  readonly pid: number
  /** Or the name of the member of etcd, or of one of several servers. */
  readonly node?: string
}

export interface NodeStatus {
  readonly name: string
  readonly ready: boolean
  readonly runtime: 'containerd' | 'simulated'
  readonly address: string
}

export interface NewNodeGroup {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly size: number
  /** What its nodes are made like. */
  readonly like: NodeLike
}

export interface NodeGroupStatus {
  readonly name: string
  readonly min: number
  readonly max: number
  /** The nodes that it is to have. */
  readonly size: number
  readonly ready: number
  /** Their names, the oldest node first. */
  readonly nodes: readonly string[]
}

/** One of several servers. */
export interface ServerStatus {
  readonly name: string
  /** Where it listens on this host. */
  readonly url: string
  readonly running: boolean
  readonly ready: boolean
  /** What it does for the whole cluster at present: `controllers`, `scheduler`, `nodes`. */
  readonly leads: readonly string[]
}

export interface EtcdMemberHealth {
  readonly name: string
  readonly healthy: boolean
  /** Where it takes clients. */
  readonly url: string
}

export interface RestartStatus {
  /** `server`, or the name of one of several servers, of a node or of a member of etcd; `balancer`. */
  readonly what: string
  /** How often it ended unasked. */
  readonly count: number
  /** When the last time, in milliseconds since the epoch. */
  readonly lastMs: number
  /** How it ended the last time. */
  readonly ending: string
}

/** Scheduled backups. Times are milliseconds since the epoch. */
export interface BackupStatus {
  readonly schedule: string
  readonly place: string
  /** The newest one. */
  readonly last?: { readonly name: string; readonly bytes: number; readonly atMs: number } | undefined
  /** The last attempt, if it failed. */
  readonly failure?: { readonly atMs: number; readonly reason: string } | undefined
  readonly nextMs?: number | undefined
}

export interface ClusterStatus {
  readonly name: string
  readonly server: string
  readonly running: boolean
  /** Whether the process runs that starts the server and the nodes again. */
  readonly supervised: boolean
  readonly ready: boolean
  readonly nodes: readonly NodeStatus[]
  /** The servers of a cluster with several; else empty. */
  readonly servers: readonly ServerStatus[]
  /** Members of the cluster's own etcd; empty where it has none. */
  readonly etcd: readonly EtcdMemberHealth[]
  readonly pids: readonly ProcessStatus[]
  readonly restarts: readonly RestartStatus[]
  /** Since when its history can be read (milliseconds since the epoch), and what that takes; absent while the server does not answer. */
  readonly history?: { readonly sinceMs: number; readonly bytes: number } | undefined
  readonly backups?: BackupStatus | undefined
  readonly directory: string
  /** A snapshot was restored into it, and it was not started since: nothing else of it is there. */
  readonly restored?: boolean
  /** Free on the disk of the directory. */
  readonly freeBytes: number
}

export interface EtcdMemberDetails {
  /** Hexadecimal, as etcdctl prints it. */
  readonly id: string
  readonly name: string
  readonly role: 'leader' | 'follower' | 'learner' | 'unknown'
  readonly url: string
  readonly version: string
  /** Size of its database file, and what of it holds data; undefined for one that does not answer. */
  readonly dbBytes: number | undefined
  readonly dbBytesInUse: number | undefined
}

/** Parts of a local cluster that are off unless asked for. */
export const addonNames = ['ingress', 'csi-hostpath'] as const
export type Addon = (typeof addonNames)[number]

export interface LoadedImage {
  readonly node: string
  readonly names: readonly string[]
}

export interface ClusterCertificate {
  readonly name: string
  readonly expiresMs: number
  readonly isAuthority: boolean
  /** Common name of who signed it. */
  readonly authority: string
}

/** One line each. */
export interface Removal {
  /** With dryRun: what would be removed. */
  readonly removed: readonly string[]
  /** What is left, or may be left because it could not be read. */
  readonly left: readonly string[]
}

export interface ClusterManager {
  names(): Promise<string[]>
  exists(name: string): Promise<boolean>
  /** Whether the directory, of any home, holds no cluster any more. */
  isGone(directory: string): Promise<boolean>
  /**
   * Creates or starts the cluster and waits until it really serves. Idempotent. `created` is false when it was there.
   * @throws CommandError alreadyExists when it is there and made otherwise than asked for.
   */
  up(name: string, options: UpOptions, progress: Progress): Promise<{ created: boolean; status: ClusterStatus }>
  /** Ends Skiff's processes; containers run on. */
  stop(name: string, progress: Progress): Promise<void>
  /** Removes every trace. */
  delete(name: string, progress: Progress, dryRun: boolean): Promise<Removal>
  /** Removes what clusters left on the host whose directory is gone. */
  prune(progress: Progress, dryRun: boolean): Promise<Removal>
  status(name: string): Promise<ClusterStatus>
  /** Adds simulated nodes to a running cluster and waits until they are ready. @throws CommandError before anything is changed */
  addNodes(name: string, count: number, like: NodeLike, progress: Progress): Promise<void>
  /** Removes the newest of those. */
  removeNodes(name: string, count: number, progress: Progress): Promise<void>
  /** Creates a group of simulated nodes and waits until they are ready. @throws CommandError before anything is changed */
  createNodeGroup(name: string, group: NewNodeGroup, progress: Progress): Promise<void>
  /** Gives it so many nodes, within its limits; the newest ones are removed. @throws CommandError notFound when there is none */
  scaleNodeGroup(name: string, group: string, size: number, progress: Progress): Promise<void>
  /** With its nodes. @throws CommandError notFound when there is none */
  deleteNodeGroup(name: string, group: string, progress: Progress): Promise<void>
  nodeGroups(name: string): Promise<readonly NodeGroupStatus[]>
  /** The text of the unit of systemd that would run the cluster. */
  unit(name: string): Promise<string>
  /** Runs the cluster by a unit of systemd from now on. @returns its name. @throws CommandError unmetPrerequisite where this host cannot have one */
  installUnit(name: string): Promise<string>
  /** Stops the cluster if its unit runs it. @returns false when it has no unit. @throws CommandError likewise */
  removeUnit(name: string): Promise<boolean>
  /** Asks its API server as its administrator: a GET, or a POST with a body; undefined when nothing answers. */
  ask(name: string, path: string, body?: unknown, method?: 'DELETE'): Promise<{ readonly status: number; readonly body: string } | undefined>
  /** Log files, by what writes them: the one that is written, then those moved aside, the newest first. */
  logFiles(name: string): Promise<readonly { readonly source: string; readonly files: readonly string[] }[]>
  kubeconfig(name: string): Promise<KubeconfigEntry>
  /** Keeps where the cluster's entry stands and what context was current there before: the entry is renewed there, and taken out on delete. */
  rememberKubeconfig(name: string, file: string, previousContext: string): Promise<void>
  kubeconfigs(name: string): Promise<readonly { readonly file: string; readonly previousContext: string }[]>
  certificates(name: string): Promise<readonly ClusterCertificate[]>
  /**
   * Puts the authorities and keys that a further control plane needs into a Secret, encrypted with the key, for two hours.
   * @throws CommandError unmetPrerequisite when another machine cannot reach the cluster's store
   */
  uploadCertificates(name: string, certificateKey: string): Promise<void>
  /** All but the authorities', at once; a running cluster takes them up without a restart. */
  renewCertificates(name: string, progress: Progress): Promise<void>
  /** Members of the cluster's own etcd, as etcd sees them. @throws CommandError when it has none of its own */
  etcdMembers(name: string): Promise<readonly EtcdMemberDetails[]>
  /** Adds a member and, unless it is to stay a learner, promotes it as soon as it has the data. @returns its name */
  addEtcdMember(name: string, options: { readonly learner: boolean }, progress: Progress): Promise<string>
  promoteEtcdMember(name: string, member: string, progress: Progress): Promise<void>
  /** Lets a member lead. */
  moveEtcdLeader(name: string, member: string, progress: Progress): Promise<void>
  /** Rewrites the databases of one member, or of all one after the other, without free pages. */
  defragmentEtcd(name: string, member: string | undefined, progress: Progress): Promise<void>
  /** Takes the member out of the cluster, ends it and removes its data. */
  removeEtcdMember(name: string, member: string, progress: Progress): Promise<void>
  /** Turns an add-on on or off and waits until it serves, or is gone. @returns false when it was so already */
  setAddon(name: string, addon: Addon, enabled: boolean, progress: Progress): Promise<boolean>
  addons(name: string): Promise<readonly { readonly addon: Addon; readonly enabled: boolean }[]>
  loadImages(name: string, files: readonly string[], progress: Progress): Promise<readonly LoadedImage[]>
  images(name: string): Promise<readonly { node: string; name: string; bytes: number }[]>
}
