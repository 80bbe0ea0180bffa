/**
 * The Container Runtime Interface's messages (L1) as they look in JavaScript: camelCase, enums as their names, int64 as numbers.
 * Times are nanoseconds since the epoch, rounded to what a number holds. In what the runtime sends, absent messages are null; in what it gets, leave them out.
 */

export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE' | 'TARGET'

export interface NamespaceOption {
  network: NamespaceMode
  pid: NamespaceMode
  ipc: NamespaceMode
  targetId?: string
  usernsOptions?: UserNamespace
}

/** Ids as processes of a pod see them, and as the node does. */
export interface IdMapping {
  hostId: number
  containerId: number
  length: number
}

export interface UserNamespace {
  /** NODE: no mapping. */
  mode: NamespaceMode
  uids: IdMapping[]
  gids: IdMapping[]
}

export interface SecurityProfile {
  profileType: 'RuntimeDefault' | 'Unconfined' | 'Localhost'
  localhostRef?: string
}

export interface Int64Value {
  value: number
}

export interface LinuxContainerResources {
  cpuPeriod?: number
  cpuQuota?: number
  cpuShares?: number
  memoryLimitInBytes?: number
  oomScoreAdj?: number
  cpusetCpus?: string
  cpusetMems?: string
  hugepageLimits?: { pageSize: string; limit: number }[]
  unified?: Record<string, string>
  memorySwapLimitInBytes?: number
}

export interface PodSandboxMetadata {
  name: string
  uid: string
  namespace: string
  attempt: number
}

export interface PortMapping {
  protocol: 'TCP' | 'UDP' | 'SCTP'
  containerPort: number
  hostPort: number
  hostIp: string
}

export interface DnsConfig {
  servers: string[]
  searches: string[]
  options: string[]
}

export interface LinuxSandboxSecurityContext {
  namespaceOptions: NamespaceOption
  runAsUser?: Int64Value
  runAsGroup?: Int64Value
  readonlyRootfs?: boolean
  supplementalGroups?: number[]
  privileged?: boolean
  seccomp?: SecurityProfile
  selinuxOptions?: SELinuxOption
  /** 0: Merge, 1: Strict. */
  supplementalGroupsPolicy?: number
}

export interface PodSandboxConfig {
  metadata: PodSandboxMetadata
  hostname: string
  logDirectory: string
  dnsConfig?: DnsConfig
  portMappings: PortMapping[]
  labels: Record<string, string>
  annotations: Record<string, string>
  linux: {
    cgroupParent: string
    securityContext: LinuxSandboxSecurityContext
    sysctls: Record<string, string>
    overhead?: LinuxContainerResources
    resources?: LinuxContainerResources
  }
}

export type PodSandboxState = 'SANDBOX_READY' | 'SANDBOX_NOTREADY'

export interface PodSandbox {
  id: string
  metadata: PodSandboxMetadata
  state: PodSandboxState
  createdAt: number
  labels: Record<string, string>
  annotations: Record<string, string>
  runtimeHandler: string
}

export interface PodSandboxStatus extends PodSandbox {
  network: { ip: string; additionalIps: { ip: string }[] } | null
}

export interface Mount {
  containerPath: string
  hostPath: string
  readonly?: boolean
  propagation?: 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER' | 'PROPAGATION_BIDIRECTIONAL'
  recursiveReadOnly?: boolean
  image?: ImageSpec
  imageSubPath?: string
}

export interface Device {
  containerPath: string
  hostPath: string
  permissions: string
}

export interface ImageSpec {
  image: string
  annotations?: Record<string, string>
  imageRef?: string
}

export interface LinuxContainerSecurityContext {
  capabilities?: { addCapabilities: string[]; dropCapabilities: string[] }
  privileged?: boolean
  namespaceOptions: NamespaceOption
  runAsUser?: Int64Value
  runAsGroup?: Int64Value
  runAsUsername?: string
  readonlyRootfs?: boolean
  supplementalGroups?: number[]
  noNewPrivs?: boolean
  maskedPaths?: string[]
  readonlyPaths?: string[]
  seccomp?: SecurityProfile
  apparmor?: SecurityProfile
  selinuxOptions?: SELinuxOption
  /** 0: Merge, 1: Strict. */
  supplementalGroupsPolicy?: number
}

export interface SELinuxOption {
  user: string
  role: string
  type: string
  level: string
}

export interface ContainerConfig {
  metadata: { name: string; attempt: number }
  image: ImageSpec
  command: string[]
  args: string[]
  workingDir: string
  envs: { key: string; value: string }[]
  mounts: Mount[]
  devices: Device[]
  labels: Record<string, string>
  annotations: Record<string, string>
  logPath: string
  stdin: boolean
  stdinOnce: boolean
  tty: boolean
  /** For runtimes that know CDI: `vendor.example/class=name`. */
  CDIDevices?: { name: string }[]
  linux: { resources: LinuxContainerResources; securityContext: LinuxContainerSecurityContext }
}

export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN'

export interface RuntimeContainer {
  id: string
  podSandboxId: string
  metadata: { name: string; attempt: number }
  image: { image: string }
  imageRef: string
  state: ContainerState
  createdAt: number
  labels: Record<string, string>
  annotations: Record<string, string>
}

export interface RuntimeContainerStatus {
  id: string
  metadata: { name: string; attempt: number }
  state: ContainerState
  createdAt: number
  startedAt: number
  finishedAt: number
  exitCode: number
  image: { image: string }
  imageRef: string
  reason: string
  message: string
  labels: Record<string, string>
  annotations: Record<string, string>
  mounts: Mount[]
  logPath: string
  /** Empty from runtimes older than CRI v1.29. */
  imageId: string
  resources: { linux: LinuxContainerResources | null } | null
  user: { linux: { uid: number; gid: number; supplementalGroups: number[] } | null } | null
}

export interface ExecSyncResult {
  stdout: Uint8Array
  stderr: Uint8Array
  exitCode: number
}

export interface RuntimeCondition {
  type: string
  status: boolean
  reason: string
  message: string
}

/** A way to run containers, as a RuntimeClass names it; the empty name: the usual one. */
export interface RuntimeHandler {
  name: string
  features: { recursiveReadOnlyMounts: boolean; userNamespaces: boolean } | null
}

export interface RuntimeStatus {
  conditions: readonly RuntimeCondition[]
  /** None: a runtime that does not tell. */
  handlers: readonly RuntimeHandler[]
  /** Absent: a runtime that does not tell. */
  features?: { supplementalGroupsPolicy: boolean } | undefined
}

export interface RuntimeVersion {
  runtimeName: string
  runtimeVersion: string
  runtimeApiVersion: string
}

export interface RuntimeImage {
  id: string
  repoTags: string[]
  repoDigests: string[]
  size: number
  /** Absent when the image names a user or none at all. */
  uid: Int64Value | null
  username: string
  pinned: boolean
}

export interface AuthConfig {
  username?: string
  password?: string
  auth?: string
  serverAddress?: string
  identityToken?: string
  registryToken?: string
}

export interface FilesystemUsage {
  timestamp: number
  fsId: { mountpoint: string } | null
  usedBytes: Int64Value | null
  inodesUsed: Int64Value | null
}

export interface RuntimeContainerStats {
  attributes: { id: string; metadata: { name: string; attempt: number }; labels: Record<string, string>; annotations: Record<string, string> }
  cpu: { timestamp: number; usageCoreNanoSeconds: Int64Value | null; usageNanoCores: Int64Value | null } | null
  memory: {
    timestamp: number
    workingSetBytes: Int64Value | null
    usageBytes: Int64Value | null
    rssBytes: Int64Value | null
    pageFaults: Int64Value | null
    majorPageFaults: Int64Value | null
  } | null
  writableLayer: FilesystemUsage | null
}
