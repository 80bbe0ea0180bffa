/**
 * The floor under real pods: the same pod, asked of containerd by the three calls that no kubelet gets around. What it is asked for is what the kubelet
 * would ask for, made by the same functions: cgroup, seccomp profile, hidden paths, mounts.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Pod } from '#api/gen/types/core.v1'
import { type CriClient, encodeContainerConfig } from '#grpc/criClient'
import type { ContainerConfig, Mount, PodSandboxConfig } from '#grpc/criTypes'
import { kubeletConfig } from '#kubelet/core/config'
import { noOptions } from '#kubelet/core/containerOptions'
import { nodeUsers } from '#kubelet/core/idRanges'
import { containerConfig, podSandboxConfig } from '#kubelet/pods/runtimeConfig'

export interface BareNode {
  readonly cri: CriClient
  configs(name: string): { readonly sandbox: PodSandboxConfig; readonly container: ContainerConfig }
}

export interface BarePod {
  readonly podSandboxId: string
  /** How long the calls took. */
  readonly tookMs: number
}

const directory = '/var/lib/kubelet/bare'
/** What every container gets: the kubelet's files, and the folder of the service account's token. */
const mounts: readonly (Mount & { readonly isFolder?: boolean })[] = [
  { containerPath: '/etc/hosts', hostPath: `${directory}/hosts`, readonly: false },
  { containerPath: '/dev/termination-log', hostPath: `${directory}/termination-log`, readonly: false },
  { containerPath: '/var/run/secrets/kubernetes.io/serviceaccount', hostPath: `${directory}/token`, readonly: true, isFolder: true },
]

/**
 * @param root the node's root folder, as this process sees it
 * @param manifest the pod of a name, as the API is given it
 */
export function bareNode(cri: CriClient, root: string, cgroupRoot: string, manifest: (name: string) => Pod): BareNode {
  mkdirSync(`${root}${directory}`, { recursive: true })
  for (const { hostPath, isFolder } of mounts) {
    if (isFolder) mkdirSync(`${root}${hostPath}`, { recursive: true })
    else writeFileSync(`${root}${hostPath}`, '')
  }
  const config = kubeletConfig({ nodeName: 'bare', nodeIPs: ['127.0.0.1'], cgroupRoot, clusterDNS: ['10.96.0.10'] })
  return {
    cri,
    configs: (name) => {
      const given = manifest(name)
      const pod: Pod = { ...given, metadata: { ...given.metadata, uid: name } }
      const container = pod.spec.containers[0]!
      return {
        sandbox: podSandboxConfig(pod, 0, nodeUsers, config),
        container: containerConfig(
          pod,
          container,
          {
            restartCount: 0,
            users: nodeUsers,
            environment: new Map(),
            mounts: mounts.map(({ isFolder, ...mount }) => mount),
            options: noOptions,
            image: undefined,
            imageRef: container.image ?? '',
            limits: { cpuCFSQuota: config.cpuCFSQuota, cpuCFSQuotaPeriodMs: config.cpuCFSQuotaPeriodMs, memoryCapacityBytes: 0 },
          },
          config,
        ),
      }
    },
  }
}

export async function podByHand({ cri, configs }: BareNode, name: string): Promise<BarePod> {
  const { sandbox, container } = configs(name)
  const started = performance.now()
  const { podSandboxId } = await cri.call<{ podSandboxId: string }>('RuntimeService', 'RunPodSandbox', { config: sandbox })
  const request = { podSandboxId, config: encodeContainerConfig(container), sandboxConfig: sandbox }
  const { containerId } = await cri.call<{ containerId: string }>('RuntimeService', 'CreateContainer', request)
  await cri.call('RuntimeService', 'StartContainer', { containerId })
  return { podSandboxId, tookMs: performance.now() - started }
}

export async function removeByHand({ cri }: BareNode, { podSandboxId }: BarePod): Promise<void> {
  await cri.call('RuntimeService', 'StopPodSandbox', { podSandboxId })
  await cri.call('RuntimeService', 'RemovePodSandbox', { podSandboxId })
}
