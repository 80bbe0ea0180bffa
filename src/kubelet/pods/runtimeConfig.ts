/**
 * Sandbox and container configurations for the runtime (L3, pure): values that were read or mounted before are arguments.
 * Upstream: kuberuntime_sandbox.go generatePodSandboxConfig, kuberuntime_container.go generateContainerConfig (v1.36).
 */
import type { ContainerConfig, Mount, PodSandboxConfig, PortMapping, RuntimeImage, UserNamespace } from '#grpc/criTypes'
import { dottedSysctl } from '../allocation/sysctls.ts'
import { type ContainerResourceOptions, containerResources, podCgroupPath, sandboxResources } from '../core/cgroupResources.ts'
import type { KubeletConfig } from '../core/config.ts'
import type { ContainerOptions } from '../core/containerOptions.ts'
import { configMirrorAnnotation, type FrozenContainer, type FrozenPod } from '../core/containers.ts'
import { expandWords } from '../core/expansion.ts'
import { podLogDirectory } from '../core/podDirectory.ts'
import { containerAnnotations, containerLabels, podLabels } from '../core/runtimeLabels.ts'
import { environmentLength } from './environment.ts'
import { sandboxHostname } from './hostnames.ts'
import { podResolver } from './resolver.ts'
import { containerSecurityContext, sandboxSecurityContext } from './securityContext.ts'

function portMappings(pod: FrozenPod): PortMapping[] {
  if (pod.spec.hostNetwork) return []
  const containers = [...(pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always'), ...pod.spec.containers]
  return containers.flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({
        protocol: (port.protocol ?? 'TCP') as PortMapping['protocol'],
        containerPort: port.containerPort,
        hostPort: port.hostPort ?? 0,
        hostIp: port.hostIP ?? '',
      })),
  )
}

/** The configuration of a pod's sandbox. @throws Error for an invalid hostname */
export function podSandboxConfig(pod: FrozenPod, attempt: number, users: UserNamespace, config: KubeletConfig): PodSandboxConfig {
  const annotations = { ...pod.metadata.annotations }
  delete annotations[configMirrorAnnotation]
  return {
    metadata: { name: pod.metadata.name ?? '', namespace: pod.metadata.namespace ?? '', uid: pod.metadata.uid ?? '', attempt },
    hostname: sandboxHostname(pod, config.clusterDomain),
    logDirectory: podLogDirectory(config, pod),
    dnsConfig: podResolver(pod, config).config,
    portMappings: portMappings(pod),
    labels: podLabels(pod),
    annotations,
    linux: {
      cgroupParent: podCgroupPath(config.cgroupRoot, pod),
      ...sandboxResources(pod, config),
      securityContext: sandboxSecurityContext(pod, users),
      sysctls: Object.fromEntries((pod.spec.securityContext?.sysctls ?? []).map(({ name, value }) => [dottedSysctl(name), value])),
    },
  }
}

export interface ContainerInputs {
  readonly restartCount: number
  readonly users: UserNamespace
  readonly environment: ReadonlyMap<string, string>
  readonly mounts: readonly Mount[]
  /** CPUs, devices, and the mounts and variables of devices. */
  readonly options: ContainerOptions
  readonly image: RuntimeImage | undefined
  readonly imageRef: string
  /** What its limits depend on besides the pod. */
  readonly limits: ContainerResourceOptions
  /** Groups that own volumes of the pod. */
  readonly extraGroups?: readonly number[] | undefined
  /** The container whose process namespace an ephemeral container joins. */
  readonly targetId?: string | undefined
}

/** The configuration of one container for the runtime. @throws Error when references make command and arguments too long */
export function containerConfig(pod: FrozenPod, container: FrozenContainer, inputs: ContainerInputs, config: KubeletConfig): ContainerConfig {
  const { options } = inputs
  const lookup = (name: string) => inputs.environment.get(name)
  const command = container.command ?? []
  const words = expandWords([...command, ...(container.args ?? [])], lookup, environmentLength(inputs.environment))
  // Variables of the spec override those of plugins.
  const added = options.envs.filter(({ key }) => !inputs.environment.has(key))
  return {
    metadata: { name: container.name, attempt: inputs.restartCount },
    image: { image: inputs.imageRef },
    command: words.slice(0, command.length),
    args: words.slice(command.length),
    workingDir: container.workingDir ?? '',
    envs: [...[...inputs.environment].map(([key, value]) => ({ key, value })), ...added],
    mounts: [...inputs.mounts, ...options.mounts],
    devices: [...options.devices],
    ...(options.cdiDevices.length > 0 ? { CDIDevices: options.cdiDevices.map((name) => ({ name })) } : {}),
    labels: containerLabels(pod, container),
    annotations: { ...options.annotations, ...containerAnnotations(pod, container, inputs.restartCount) },
    logPath: `${container.name}/${inputs.restartCount}.log`,
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    linux: {
      resources: {
        ...containerResources(pod, container, inputs.limits),
        ...(options.cpusetCpus === undefined ? {} : { cpusetCpus: options.cpusetCpus }),
        ...(options.cpusetMems === undefined ? {} : { cpusetMems: options.cpusetMems }),
      },
      securityContext: containerSecurityContext(pod, container, {
        rootDirectory: config.rootDirectory,
        users: inputs.users,
        seccompDefault: config.seccompDefault,
        image: inputs.image,
        targetId: inputs.targetId,
        extraGroups: inputs.extraGroups,
      }),
    },
  }
}
