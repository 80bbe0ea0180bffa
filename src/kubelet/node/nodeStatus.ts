/** The Node object that a kubelet reports (L3, pure). Upstream: kubelet_node_status.go, kubelet/nodestatus/setters.go (v1.36). */
import type { ContainerImage, Node, NodeAddress, NodeCondition, NodeStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { canonicalQuantity } from '#api/machinery/quantity'
import { bareMap, ownValue } from '#base/bareMap'
import { formatTime } from '#base/time'
import { kubernetesRelease } from '#base/version'
import type { RuntimeImage, RuntimeStatus, RuntimeVersion } from '#grpc/criTypes'
import type { KubeletConfig } from '../core/config.ts'
import { equal } from '../core/equal.ts'
import type { MachineInfo } from '../core/host.ts'
import { milliUnits, quantity } from '../core/quantities.ts'
import { declaredFeatures } from '../core/resourceConfig.ts'
import { thresholdAmount } from '../eviction/thresholds.ts'

type Resources = Readonly<Record<string, string>>

export interface NodeFacts {
  readonly machine: MachineInfo
  /** Undefined while it is not known. */
  readonly runtime: RuntimeVersion | undefined
  /** What it can do; undefined while that is not known. */
  readonly runtimeStatus?: RuntimeStatus | undefined
  /** Why the node is not ready; none: it is. */
  readonly problems: readonly string[]
  readonly images: readonly RuntimeImage[]
  readonly pressure: { readonly memory: boolean; readonly disk: boolean; readonly pid: boolean }
  readonly nowMs: number
  /** Huge pages and extended resources. */
  readonly capacity?: Resources | undefined
  readonly allocatable?: Resources | undefined
}

const kibi = (bytes: number) => `${Math.floor(bytes / 1024)}Ki`
/** Every kubelet on Linux reports these sizes, even without such pages. */
const withoutHugepages: Resources = { 'hugepages-1Gi': '0', 'hugepages-2Mi': '0' }

type Capacity = Pick<KubeletConfig, 'maxPods' | 'podsPerCore' | 'localStorageCapacityIsolation'>

function nodeCapacity(machine: MachineInfo, { maxPods, podsPerCore, localStorageCapacityIsolation }: Capacity, handedOut: Resources = {}): Resources {
  return {
    cpu: String(machine.cpus),
    ...(localStorageCapacityIsolation ? { 'ephemeral-storage': kibi(machine.ephemeralStorageBytes) } : {}),
    ...withoutHugepages,
    ...handedOut,
    memory: kibi(machine.memoryBytes),
    pods: String(podsPerCore > 0 ? Math.min(maxPods, machine.cpus * podsPerCore) : maxPods),
  }
}

/**
 * Capacity less what is reserved and what eviction keeps free; huge pages are no other memory.
 * @param handedOut huge pages and extended resources of device plugins
 */
export function nodeAllocatable(
  machine: MachineInfo,
  config: Capacity & Pick<KubeletConfig, 'systemReserved' | 'kubeReserved' | 'evictionHard'>,
  handedOut: Resources = {},
): Resources {
  const reserved = (name: string) => quantity(config.systemReserved[name]) + quantity(config.kubeReserved[name])
  const milli = machine.cpus * 1000 - milliUnits(config.systemReserved.cpu) - milliUnits(config.kubeReserved.cpu)
  const pages = Object.entries(handedOut).reduce((sum, [name, bytes]) => (name.startsWith('hugepages-') ? sum + Number(bytes) : sum), 0)
  // What eviction keeps free is no pod's.
  const kept = (signal: string, capacity: number) => {
    const threshold = config.evictionHard[signal]
    return threshold === undefined || threshold === '100%' ? 0 : thresholdAmount(threshold, capacity)
  }
  const memory = machine.memoryBytes - reserved('memory') - kept('memory.available', machine.memoryBytes) - pages
  const storage = machine.ephemeralStorageBytes - kept('nodefs.available', machine.ephemeralStorageBytes) - reserved('ephemeral-storage')
  return {
    ...nodeCapacity(machine, config, handedOut),
    cpu: milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`,
    ...(config.localStorageCapacityIsolation ? { 'ephemeral-storage': String(Math.floor(Math.max(0, storage))) } : {}),
    memory: kibi(Math.max(0, memory)),
  }
}

function addresses(config: KubeletConfig): NodeAddress[] {
  return [...config.nodeIPs.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: config.nodeName }]
}

/** Largest first, `most` at most (negative: all), each with five names at most, as upstream limits the Node's size. */
export function nodeImages(images: readonly RuntimeImage[], most = 50): ContainerImage[] {
  return [...images]
    .sort((a, b) => b.size - a.size)
    .slice(0, most < 0 ? undefined : most)
    .map((image) => ({ names: [...image.repoDigests, ...image.repoTags].slice(0, 5), sizeBytes: image.size }))
    .filter((image) => image.names.length > 0)
}

interface ConditionDraft {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

function readyDraft(problems: readonly string[]): ConditionDraft {
  if (problems.length === 0) return { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
  // As Go prints several errors together.
  return { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]` }
}

/** The node's conditions; a transition time changes only with the status. */
function nodeConditions(previous: readonly Frozen<NodeCondition>[], facts: NodeFacts): NodeCondition[] {
  const pressure = (type: string, has: boolean, yes: readonly [string, string], no: readonly [string, string]): ConditionDraft => ({
    type,
    status: has ? 'True' : 'False',
    reason: (has ? yes : no)[0],
    message: (has ? yes : no)[1],
  })
  const drafts = [
    pressure(
      'MemoryPressure',
      facts.pressure.memory,
      ['KubeletHasInsufficientMemory', 'kubelet has insufficient memory available'],
      ['KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
    ),
    pressure(
      'DiskPressure',
      facts.pressure.disk,
      ['KubeletHasDiskPressure', 'kubelet has disk pressure'],
      ['KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
    ),
    pressure(
      'PIDPressure',
      facts.pressure.pid,
      ['KubeletHasInsufficientPID', 'kubelet has insufficient PID available'],
      ['KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
    ),
    readyDraft(facts.problems),
  ]
  const now = formatTime(facts.nowMs)
  const own = drafts.map((draft) => {
    const old = previous.find((condition) => condition.type === draft.type)
    return { ...draft, lastHeartbeatTime: now, lastTransitionTime: old?.status === draft.status ? (old.lastTransitionTime ?? now) : now }
  })
  return [...previous.filter((condition) => !drafts.some((draft) => draft.type === condition.type)), ...own]
}

export function nodeStatus(previous: Frozen<NodeStatus> | undefined, facts: NodeFacts, config: KubeletConfig): NodeStatus {
  const { machine, runtime } = facts
  // Extended resources that others have put there stay.
  const extended = (resources: Readonly<Record<string, string>> | undefined) =>
    Object.fromEntries(Object.entries(resources ?? {}).filter(([name]) => name.includes('/')))
  return {
    // A cloud controller manager knows more of them.
    addresses: config.externalCloudProvider && previous?.addresses?.length ? [...previous.addresses] : addresses(config),
    capacity: { ...extended(previous?.capacity), ...nodeCapacity(machine, config, facts.capacity) },
    allocatable: { ...extended(previous?.allocatable), ...nodeAllocatable(machine, config, facts.allocatable) },
    conditions: nodeConditions(previous?.conditions ?? [], facts),
    daemonEndpoints: { kubeletEndpoint: { Port: config.port } },
    nodeInfo: {
      architecture: machine.architecture,
      bootID: machine.bootID,
      containerRuntimeVersion: runtime
        ? `${runtime.runtimeName}://${runtime.runtimeVersion.split(' ')[0]}`
        : (previous?.nodeInfo?.containerRuntimeVersion ?? 'containerd://Unknown'),
      kernelVersion: machine.kernelVersion,
      kubeProxyVersion: '',
      kubeletVersion: kubernetesRelease,
      machineID: machine.machineID,
      operatingSystem: 'linux',
      osImage: machine.osImage,
      systemUUID: machine.systemUUID,
      ...(machine.swapBytes ? { swap: { capacity: machine.swapBytes } } : {}),
    },
    images: nodeImages(facts.images, config.nodeStatusMaxImages),
    declaredFeatures: declaredFeatures(config),
    ...runtimeAbilities(facts.runtimeStatus),
  }
}

/** Fields that the runtime does not report are left out. */
function runtimeAbilities({ handlers, features }: RuntimeStatus = { conditions: [], handlers: [] }): Pick<NodeStatus, 'runtimeHandlers' | 'features'> {
  const known = handlers.map(({ name, features: able }) => ({
    name,
    features: { recursiveReadOnlyMounts: able?.recursiveReadOnlyMounts ?? false, userNamespaces: able?.userNamespaces ?? false },
  }))
  return {
    ...(known.length > 0 ? { runtimeHandlers: known } : {}),
    ...(features ? { features: { supplementalGroupsPolicy: features.supplementalGroupsPolicy } } : {}),
  }
}

/** The labels that every kubelet puts on its node. */
export function defaultNodeLabels(config: Pick<KubeletConfig, 'nodeName'>, architecture: string): Record<string, string> {
  return {
    'kubernetes.io/hostname': config.nodeName,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': architecture,
  }
}

/** Marks a Node whose volumes the attach/detach controller attaches. */
const managedAttachAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach'

const reconciledLabels = [
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]

/**
 * The changes by a restarted kubelet to an existing Node, as a merge patch; undefined: nothing. Other labels of its configuration are for a
 * node that is registered: what people did to them since stays.
 */
export function registrationPatch(existing: Frozen<Node>, wanted: Node): object | undefined {
  const labels = Object.fromEntries(
    reconciledLabels.flatMap((name) => {
      const value = ownValue(wanted.metadata.labels, name)
      return value === undefined || ownValue(existing.metadata.labels, name) === value ? [] : [[name, value]]
    }),
  )
  const managed = wanted.metadata.annotations?.[managedAttachAnnotation]
  const isManaged = existing.metadata.annotations?.[managedAttachAnnotation] === managed
  const metadata = {
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(isManaged ? {} : { annotations: { [managedAttachAnnotation]: managed ?? null } }),
  }
  return Object.keys(metadata).length > 0 ? { metadata } : undefined
}

/** The object to register. A node that is not ready yet is tainted, so that nothing lands before its network works. */
export function initialNode(status: NodeStatus, machine: MachineInfo, config: KubeletConfig): Node {
  const ready = status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  const uninitialized = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' }
  const taints = [
    ...config.registerWithTaints,
    ...(config.externalCloudProvider ? [uninitialized] : []),
    ...(ready ? [] : [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }]),
  ]
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: config.nodeName,
      labels: { ...defaultNodeLabels(config, machine.architecture), ...config.nodeLabels },
      ...(config.enableControllerAttachDetach ? { annotations: { [managedAttachAnnotation]: 'true' } } : {}),
    },
    spec: {
      ...(config.providerID ? { providerID: config.providerID } : {}),
      ...(taints.length > 0 ? { taints } : {}),
    },
    status,
  }
}

const transitionReasons: Readonly<Record<string, readonly [yes: string, no: string]>> = bareMap({
  MemoryPressure: ['NodeHasInsufficientMemory', 'NodeHasSufficientMemory'],
  DiskPressure: ['NodeHasDiskPressure', 'NodeHasNoDiskPressure'],
  PIDPressure: ['NodeHasInsufficientPID', 'NodeHasSufficientPID'],
  Ready: ['NodeReady', 'NodeNotReady'],
})

/** What the events about conditions that changed are called. */
export function transitions(before: readonly Frozen<NodeCondition>[] | undefined, after: readonly NodeCondition[] | undefined): string[] {
  return (after ?? []).flatMap(({ type, status }) => {
    const reasons = transitionReasons[type]
    if (!reasons || before?.find((condition) => condition.type === type)?.status === status) return []
    return [status === 'True' ? reasons[0] : reasons[1]]
  })
}

/** Whether a status is worth a request before the report is due: anything but heartbeats and the list of images changed. */
export function statusChanged(before: Frozen<NodeStatus> | undefined, after: NodeStatus): boolean {
  const essence = (status: Frozen<NodeStatus> | NodeStatus | undefined) => ({
    ...status,
    capacity: canonical(status?.capacity),
    allocatable: canonical(status?.allocatable),
    conditions: (status?.conditions ?? []).map(({ type, status: value, reason, message }) => ({ type, value, reason, message })),
    images: status?.images?.length ?? 0,
    // The attach/detach controller's.
    volumesAttached: undefined,
  })
  // The server orders members and writes quantities its own way: texts would differ where nothing does.
  return !equal(essence(before), essence(after))
}

function canonical(resources: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(resources ?? {}).map(([name, text]) => [name, canonicalQuantity(text)]))
}
