/** Records the calls of CRI that change something, with the pod that each is for (L3). Questions are asked all the time and would displace the rest. */
import type { CriClient } from '#grpc/criClient'
import type { CallLog } from '../../core/callLog.ts'

const recorded = new Set([
  ...['RunPodSandbox', 'StopPodSandbox', 'RemovePodSandbox', 'CreateContainer', 'StartContainer', 'StopContainer', 'RemoveContainer'],
  ...['UpdateContainerResources', 'PullImage', 'RemoveImage', 'Exec', 'Attach', 'PortForward', 'CheckpointContainer'],
])

interface PodMetadata {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
}

interface Request {
  readonly podSandboxId?: string
  readonly containerId?: string
  readonly config?: { readonly metadata?: PodMetadata }
  readonly sandboxConfig?: { readonly metadata?: PodMetadata }
}

interface Owner {
  readonly pod: string
  readonly podUid: string
}

export function recordedCri(client: CriClient, log: CallLog): CriClient {
  /** By the ids of sandboxes and containers, until they are removed. */
  const owners = new Map<string, Owner>()
  const ownerOf = (method: string, { podSandboxId = '', containerId = '', config, sandboxConfig }: Request): Owner | undefined => {
    const { name, namespace, uid = '' } = (method === 'RunPodSandbox' ? config : sandboxConfig)?.metadata ?? {}
    return name === undefined ? (owners.get(containerId) ?? owners.get(podSandboxId)) : { pod: `${namespace}/${name}`, podUid: uid }
  }
  return {
    ...client,
    call: async <T>(service: Parameters<CriClient['call']>[0], method: string, request: object, options?: Parameters<CriClient['call']>[3]): Promise<T> => {
      if (!recorded.has(method)) return client.call<T>(service, method, request, options)
      const owner = ownerOf(method, request)
      const answer = await log.record({ api: 'CRI', method, request, ...owner }, () => client.call<T>(service, method, request, options))
      const { podSandboxId, containerId } = (method.startsWith('Remove') ? request : answer) as Request
      for (const id of [podSandboxId, containerId]) {
        if (id === undefined) continue
        if (method.startsWith('Remove')) owners.delete(id)
        else if (owner) owners.set(id, owner)
      }
      return answer
    },
  }
}
