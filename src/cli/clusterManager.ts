/** What the commands ask of local clusters (L4). main/localCluster implements it: commands know flags and output, it knows processes and files. */
import type { KubeconfigEntry } from './kubeconfigFile.ts'
import type { Progress } from './progress.ts'

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
  /** The range of pods' addresses, a /24 of which each node gets. Default: one that nothing on this host uses. */
  readonly podCidr: string | undefined
  /** The range of Services' addresses, likewise. */
  readonly serviceCidr: string | undefined
  /** Default 2; for a cluster that is there, from the next start of its server on. */
  readonly verbosity: number | undefined
  /** kube-apiserver's flags, `--name=value` each. For a cluster that is there: from the next start of its server on. */
  readonly apiServerArgs: readonly string[] | undefined
  /** kube-controller-manager's, likewise. */
  readonly controllerManagerArgs: readonly string[] | undefined
  /** kube-scheduler's, likewise. */
  readonly schedulerArgs: readonly string[] | undefined
}

export interface ProcessStatus {
  /** `server` holds the API; `dialer` makes its connections to pods; `node` is a node's agent; `containerd` and `init` belong to a real node. */
  readonly role: 'server' | 'dialer' | 'node' | 'containerd' | 'init'
  readonly pid: number
  readonly node?: string
}

export interface NodeStatus {
  readonly name: string
  readonly ready: boolean
  readonly runtime: 'containerd' | 'simulated'
  readonly address: string
}

export interface ClusterStatus {
  readonly name: string
  readonly server: string
  readonly running: boolean
  readonly ready: boolean
  readonly nodes: readonly NodeStatus[]
  readonly pids: readonly ProcessStatus[]
  readonly directory: string
}

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

export interface ClusterManager {
  names(): Promise<string[]>
  exists(name: string): Promise<boolean>
  /**
   * Creates or starts the cluster and waits until it really serves. Idempotent. `created` is false when it was there.
   * @throws CommandError alreadyExists when it is there and made otherwise than asked for.
   */
  up(name: string, options: UpOptions, progress: Progress): Promise<{ created: boolean; status: ClusterStatus }>
  /** Ends Skiff's processes; containers run on. */
  stop(name: string, progress: Progress): Promise<void>
  /** Removes every trace. Returns what was removed, one line each; with dryRun, what would be. */
  delete(name: string, progress: Progress, dryRun: boolean): Promise<readonly string[]>
  status(name: string): Promise<ClusterStatus>
  /** Asks its API server as its administrator; undefined when nothing answers. */
  ask(name: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: string } | undefined>
  /** Log files, by what writes them: the one that is written, then those moved aside, the newest first. */
  logFiles(name: string): Promise<readonly { readonly source: string; readonly files: readonly string[] }[]>
  kubeconfig(name: string): Promise<KubeconfigEntry>
  /** Keeps where the cluster's entry stands and what context was current there before: the entry is renewed there, and taken out on delete. */
  rememberKubeconfig(name: string, file: string, previousContext: string): Promise<void>
  kubeconfigs(name: string): Promise<readonly { readonly file: string; readonly previousContext: string }[]>
  certificates(name: string): Promise<readonly ClusterCertificate[]>
  /** All but the authorities', at once; a running cluster takes them up without a restart. */
  renewCertificates(name: string, progress: Progress): Promise<void>
  loadImages(name: string, files: readonly string[], progress: Progress): Promise<readonly LoadedImage[]>
  images(name: string): Promise<readonly { node: string; name: string; bytes: number }[]>
}
