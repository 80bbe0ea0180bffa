/**
 * What the kubelet needs of a container runtime (L3): the sync loop decides, a RuntimeService acts.
 * Two implementations: containerd/ (real containers over CRI) and simulated/ (none at all, for scale and virtual time).
 * The words are CRI's. Upstream: k8s.io/cri-api RuntimeService and ImageManagerService (v1.36).
 */
import type { Duplex } from 'node:stream'
import type {
  AuthConfig,
  ContainerConfig,
  ExecSyncResult,
  FilesystemUsage,
  LinuxContainerResources,
  PodSandbox,
  PodSandboxConfig,
  PodSandboxStatus,
  RuntimeContainer,
  RuntimeContainerStats,
  RuntimeContainerStatus,
  RuntimeImage,
  RuntimeStatus,
  RuntimeVersion,
} from '#grpc/criTypes'
import type { RemoteCommandOptions, RemoteCommandSession } from '#streaming/streams'

export interface CallContext {
  readonly signal?: AbortSignal | undefined
}

/** A container or sandbox changed: read it again. */
export interface RuntimeEvent {
  readonly containerId: string
}

export interface PodSandboxes {
  /** Returns the sandbox's id. */
  runPodSandbox(config: PodSandboxConfig, runtimeHandler: string, context?: CallContext): Promise<string>
  stopPodSandbox(id: string): Promise<void>
  removePodSandbox(id: string): Promise<void>
  /** Undefined when there is no such sandbox (any more). */
  podSandboxStatus(id: string): Promise<PodSandboxStatus | undefined>
  listPodSandbox(podUid?: string): Promise<readonly PodSandbox[]>
  /** The file of the sandbox's network namespace; undefined: it is on the node's network. Absent: the runtime has no namespaces. @throws Error when there is no such sandbox */
  sandboxNetworkNamespace?(id: string): Promise<string | undefined>
}

export interface Containers {
  /** Returns the container's id. */
  createContainer(podSandboxId: string, config: ContainerConfig, sandbox: PodSandboxConfig, context?: CallContext): Promise<string>
  startContainer(id: string, context?: CallContext): Promise<void>
  /** TERM, then KILL after the timeout. Resolves when the container has stopped. */
  stopContainer(id: string, timeoutSeconds: number): Promise<void>
  removeContainer(id: string): Promise<void>
  /** Undefined when there is no such container (any more). */
  containerStatus(id: string): Promise<RuntimeContainerStatus | undefined>
  listContainers(podUid?: string): Promise<readonly RuntimeContainer[]>
  updateContainerResources(id: string, resources: LinuxContainerResources): Promise<void>
  /** Called after the log file was renamed. */
  reopenContainerLog(id: string): Promise<void>
  listContainerStats(): Promise<readonly RuntimeContainerStats[]>
  /** Writes the container's state to a file of the node. Absent: the runtime cannot. 0 seconds: the runtime decides how long it may take. */
  checkpointContainer?(id: string, location: string, timeoutSeconds: number): Promise<void>
}

export interface LogOptions {
  readonly follow: boolean
  readonly timestamps: boolean
  readonly tailLines?: number | undefined
  readonly limitBytes?: number | undefined
  /** Lines at or after this time, in milliseconds since the epoch. */
  readonly sinceMs?: number | undefined
  readonly stream?: 'All' | 'Stdout' | 'Stderr' | undefined
}

/** Either a URL whose upgraded connection is passed through byte by byte, or a session carried out here. */
export type StreamTarget<Session> = { readonly url: string } | { readonly serve: (session: Session) => Promise<void> }

/** One connection of a port-forward, carried out by the runtime when it has no URL. */
export interface PortForwardSession {
  connect(port: number): Promise<Duplex>
}

export interface Streams {
  /** Answers a probe itself, because nothing listens that could be asked. Absent: probes go to the container. */
  probe?(id: string, kind: 'startup' | 'liveness' | 'readiness'): Promise<{ readonly passes: boolean; readonly output: string }>
  execSync(id: string, command: readonly string[], timeoutSeconds: number, context?: CallContext): Promise<ExecSyncResult>
  exec(id: string, command: readonly string[], options: RemoteCommandOptions): Promise<StreamTarget<RemoteCommandSession>>
  attach(id: string, options: RemoteCommandOptions): Promise<StreamTarget<RemoteCommandSession>>
  portForward(podSandboxId: string, ports: readonly number[]): Promise<{ readonly url: string } | PortForwardSession>
  /** The container's log lines as `kubectl logs` prints them. */
  logs(status: RuntimeContainerStatus, options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>
}

export interface Images {
  listImages(): Promise<readonly RuntimeImage[]>
  /** Undefined when the image is not present. */
  imageStatus(image: string): Promise<RuntimeImage | undefined>
  /** Returns the image's reference. */
  pullImage(image: string, auth: AuthConfig | undefined, sandbox: PodSandboxConfig, context?: CallContext): Promise<string>
  removeImage(image: string): Promise<void>
  imageFilesystem(): Promise<FilesystemUsage | undefined>
}

/** Images mounted on the node, read-only. */
export interface ImageMounts {
  /** @param imageRef as pullImage answered it. @param target an empty directory of the node. */
  mount(imageRef: string, target: string): Promise<void>
  /** Gives up what was mounted at the target, which is unmounted by now. Nothing there is fine. */
  release(target: string): Promise<void>
}

export interface RuntimeService extends PodSandboxes, Containers, Streams, Images {
  /** How container ids are prefixed in the API: 'containerd'. */
  readonly name: string
  /**
   * True when containers see this machine's files, mounts and cgroups, which the kubelet must then prepare.
   * A simulated runtime needs none of it.
   */
  readonly usesHost: boolean
  /** True when events() never misses anything, so that no relist is needed. */
  readonly eventsAreComplete: boolean
  version(): Promise<RuntimeVersion>
  /** Mounts image volumes on the node. Undefined: the runtime mounts them into containers itself, by CRI's Mount.image. */
  imageMounts?(): Promise<ImageMounts | undefined>
  /** Where this node's pods get their addresses, once the cluster has decided; only runtimes that hand out addresses themselves care. */
  updatePodCidr(podCidr: string): void
  status(): Promise<RuntimeStatus>
  /** Calls back when the result of status() may have changed; returns the function that unsubscribes. Absent: status() must be polled. */
  onStatusChange?(listener: () => void): () => void
  /** Until aborted. Throws when the stream breaks: the caller relists and subscribes again. */
  events(signal: AbortSignal): AsyncIterable<RuntimeEvent>
}
