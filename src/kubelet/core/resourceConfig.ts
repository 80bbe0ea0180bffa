/**
 * The part of KubeletConfiguration v1beta1 that is about the node's resources (L3), in upstream's words and with upstream's defaults.
 * Upstream: kubelet/apis/config/v1beta1/defaults.go (v1.36).
 */
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'

export interface MemoryReservation {
  readonly numaNode: number
  readonly limits: Readonly<Record<string, string>>
}

export interface ResourcesConfig {
  readonly featureGates: FeatureGateSettings
  readonly systemReserved: Readonly<Record<string, string>>
  readonly kubeReserved: Readonly<Record<string, string>>
  /** CPUs that are never exclusive, as a list ('0-1'); overrides the reserved amounts. */
  readonly reservedSystemCPUs: string
  /** pods, system-reserved, kube-reserved, …-compressible; or none. */
  readonly enforceNodeAllocatable: readonly string[]
  readonly systemReservedCgroup: string
  readonly kubeReservedCgroup: string
  /** Only cgroupfs: the nodes of this project have no systemd that could own their cgroups. */
  readonly cgroupDriver: string
  /** Upstream's default is true; a node of this project runs on cgroup v1 as well and records an event. */
  readonly failCgroupV1: boolean
  /** True: the kernel ends only the process that exceeds a container's memory; false: all of the container, which needs cgroup v2. Absent: by the version. */
  readonly singleProcessOOMKill: boolean | undefined
  /** LimitedSwap, NoSwap, or empty, which is NoSwap. */
  readonly swapBehavior: string
  readonly podPidsLimit: number
  /** 'memory' → percentage of what higher classes ask for that lower ones cannot have. */
  readonly qosReserved: Readonly<Record<string, string>>
  /** Of cgroup v2, with feature gate MemoryQoS. */
  readonly memoryThrottlingFactor: number
  readonly memoryReservationPolicy: string
  readonly cpuManagerPolicy: string
  readonly cpuManagerPolicyOptions: Readonly<Record<string, string>>
  readonly memoryManagerPolicy: string
  readonly reservedMemory: readonly MemoryReservation[]
  readonly topologyManagerPolicy: string
  readonly topologyManagerScope: string
  readonly topologyManagerPolicyOptions: Readonly<Record<string, string>>
}

export const resourcesDefaults: ResourcesConfig = {
  featureGates: {},
  systemReserved: {},
  kubeReserved: {},
  reservedSystemCPUs: '',
  enforceNodeAllocatable: ['pods'],
  systemReservedCgroup: '',
  kubeReservedCgroup: '',
  cgroupDriver: 'cgroupfs',
  failCgroupV1: false,
  singleProcessOOMKill: undefined,
  swapBehavior: '',
  podPidsLimit: -1,
  qosReserved: {},
  memoryThrottlingFactor: 0.9,
  memoryReservationPolicy: 'None',
  cpuManagerPolicy: 'none',
  cpuManagerPolicyOptions: {},
  memoryManagerPolicy: 'None',
  reservedMemory: [],
  topologyManagerPolicy: 'none',
  topologyManagerScope: 'container',
  topologyManagerPolicyOptions: {},
}

/** The features that this kubelet can turn; ClusterTrustBundle is what its projection depends on. */
export const followedFeatures = [
  'ClusterTrustBundle',
  'ClusterTrustBundleProjection',
  'CPUManagerPolicyAlphaOptions',
  'CPUManagerPolicyBetaOptions',
  'ExtendWebSocketsToKubelet',
  'InPlacePodLevelResourcesVerticalScaling',
  'InPlacePodVerticalScalingInitContainers',
  'MemoryQoS',
  'NodeDeclaredFeatures',
  'NodeLogQuery',
  'PodCertificateRequest',
  'QOSReserved',
  'ResourceHealthStatus',
] as const

export type FollowedFeature = (typeof followedFeatures)[number]

export function gateEnabled({ featureGates }: Pick<ResourcesConfig, 'featureGates'>, gate: FollowedFeature): boolean {
  return featureEnabled(featureGates, gate)
}

const declarable = ['ExtendWebSocketsToKubelet', 'InPlacePodLevelResourcesVerticalScaling', 'InPlacePodVerticalScalingInitContainers'] as const

/** The features that the Node declares, on which the scheduler and admission rely. Upstream: component-helpers/nodedeclaredfeatures (v1.36). */
export function declaredFeatures(config: Pick<ResourcesConfig, 'featureGates'>): string[] {
  if (!gateEnabled(config, 'NodeDeclaredFeatures')) return []
  return declarable.filter((gate) => gateEnabled(config, gate))
}

interface Enforcement {
  readonly enforced: readonly string[]
  readonly systemReservedCgroup: string
  readonly kubeReservedCgroup: string
  readonly cgroupsPerQOS: boolean
}

const enforcements = ['pods', 'system-reserved', 'system-reserved-compressible', 'kube-reserved', 'kube-reserved-compressible', 'none'] as const
const enforceField = 'enforceNodeAllocatable (--enforce-node-allocatable)'

/** Validates enforceNodeAllocatable; returns upstream's messages. */
export function enforcementFaults({ enforced, cgroupsPerQOS, ...cgroups }: Enforcement): string[] {
  const has = (name: string) => enforced.includes(name)
  const parts = ['system-reserved', 'kube-reserved'] as const
  const valid = `${enforcements
    .slice(0, -1)
    .map((name) => `"${name}"`)
    .join(', ')} or "none"`
  return [
    ...parts.flatMap((part) =>
      has(part) && has(`${part}-compressible`) ? [`both "${part}" and "${part}-compressible" cannot be specified together in ${enforceField}`] : [],
    ),
    ...enforced.flatMap((name, index): string[] => {
      if (enforced.indexOf(name) !== index) return [`duplicated enforcements "${name}" in ${enforceField}`]
      if (name === 'none') return enforced.length > 1 ? [`${enforceField} may not contain additional enforcements when "none" is specified`] : []
      if (!enforcements.some((known) => known === name)) return [`option "${name}" specified for ${enforceField}. Valid options are ${valid}`]
      const part = parts.find((candidate) => name.startsWith(candidate))
      const field = part === 'kube-reserved' ? 'kubeReservedCgroup' : 'systemReservedCgroup'
      return [
        ...(part && cgroups[field] === ''
          ? [`${field} (--${part}-cgroup) must be specified when "${part}" or "${part}-compressible" included in ${enforceField}`]
          : []),
        ...(cgroupsPerQOS ? [] : [`cgroupsPerQOS (--cgroups-per-qos) must be set to true when "${name}" contained in ${enforceField}`]),
      ]
    }),
  ]
}

/** @throws Error that names the field, its value and what to do. */
export function checkResourcesConfig(config: ResourcesConfig): void {
  const [fault] = enforcementFaults({ ...config, enforced: config.enforceNodeAllocatable, cgroupsPerQOS: true })
  if (fault !== undefined) throw new Error(`invalid configuration: ${fault}`)
  if (config.cgroupDriver !== 'cgroupfs') {
    throw new Error(
      `invalid configuration: cgroupDriver "${config.cgroupDriver}" is not supported: only "cgroupfs" is, because nothing on these nodes is a systemd that could own the pods' cgroups. Configure the container runtime with SystemdCgroup = false`,
    )
  }
}
