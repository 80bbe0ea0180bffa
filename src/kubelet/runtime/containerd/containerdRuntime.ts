/**
 * The RuntimeService over containerd's CRI (L3), for real pods. Each method is one call; "not found" is undefined; paths are those that the runtime sees.
 * It works with containerd 1.6.20 and later, and uses containerd's own event stream, because 1.6 has no GetContainerEvents.
 */
import type { Clock } from '#base/clock'
import { type CriClient, encodeContainerConfig } from '#grpc/criClient'
import type * as cri from '#grpc/criTypes'
import { GrpcError } from '#grpc/grpcError'
import { labelKeys } from '../../core/runtimeLabels.ts'
import type { CallContext, Containers, Images, PodSandboxes, RuntimeService, Streams } from '../../core/runtimeService.ts'
import { readLog } from '../../logs/criLog.ts'
import { type ContainerdTool, createImageMounts, mountsImagesItself } from './imageMounts.ts'

export interface ContainerdRuntimeOptions {
  readonly client: CriClient
  /** Client of a separate image service; default: `client`. */
  readonly imageClient?: CriClient | undefined
  readonly clock: Clock
  /** From a path of the node to a path of this process; the same unless the node has a separate mount namespace. */
  readonly hostPath?: ((path: string) => string) | undefined
  /** How to mount images where containerd's CRI cannot. */
  readonly tool?: ContainerdTool | undefined
}

interface StatusResponse {
  readonly status: { readonly conditions: cri.RuntimeCondition[] } | null
  readonly runtimeHandlers: cri.RuntimeHandler[]
  readonly features: NonNullable<cri.RuntimeStatus['features']> | null
}

/** Runs containers through containerd. */
export function createContainerdRuntime(options: ContainerdRuntimeOptions): RuntimeService {
  const { client, imageClient = client, tool } = options
  const imageMounts = tool && createImageMounts(tool)
  const version = () => client.call<cri.RuntimeVersion>('RuntimeService', 'Version', { version: 'v1' })
  return {
    name: 'containerd',
    usesHost: true,
    eventsAreComplete: false,
    version,
    imageMounts: async () => (mountsImagesItself((await version()).runtimeVersion) ? undefined : imageMounts),
    status: async () => {
      const { status, runtimeHandlers, features } = await client.call<StatusResponse>('RuntimeService', 'Status', {})
      return { conditions: status?.conditions ?? [], handlers: runtimeHandlers, features: features ?? undefined }
    },
    events: (signal) => client.events(signal),
    updatePodCidr: () => {},
    ...sandboxes(client),
    ...containers(client),
    ...streams(options),
    ...images(imageClient),
  }
}

async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (error instanceof GrpcError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

const byPod = (uid: string | undefined) => (uid === undefined ? {} : { filter: { labelSelector: { [labelKeys.podUid]: uid } } })
/** Sandboxes take long where the network plugin is slow: upstream doubles the runtime's timeout for them. */
const sandboxTimeoutMs = 240_000

function sandboxes(client: CriClient): PodSandboxes {
  const runtime = <T>(method: string, request: object, context?: CallContext & { timeoutMs?: number }) =>
    client.call<T>('RuntimeService', method, request, context)
  return {
    runPodSandbox: async (config, runtimeHandler, context) => {
      const request = { config, runtimeHandler }
      return (await runtime<{ podSandboxId: string }>('RunPodSandbox', request, { ...context, timeoutMs: sandboxTimeoutMs })).podSandboxId
    },
    stopPodSandbox: async (podSandboxId) => {
      await orUndefined(runtime('StopPodSandbox', { podSandboxId }, { timeoutMs: sandboxTimeoutMs }))
    },
    removePodSandbox: async (podSandboxId) => {
      await orUndefined(runtime('RemovePodSandbox', { podSandboxId }))
    },
    podSandboxStatus: async (podSandboxId) => (await orUndefined(runtime<{ status: cri.PodSandboxStatus }>('PodSandboxStatus', { podSandboxId })))?.status,
    sandboxNetworkNamespace: async (podSandboxId) => networkNamespaceIn(await runtime('PodSandboxStatus', { podSandboxId, verbose: true })),
    listPodSandbox: async (uid) => (await runtime<{ items: cri.PodSandbox[] }>('ListPodSandbox', byPod(uid))).items,
  }
}

/** containerd says it in JSON, in a member of `info` that CRI leaves to the runtime. */
function networkNamespaceIn({ info }: { readonly info: Readonly<Record<string, string>> }): string | undefined {
  const { runtimeSpec } = JSON.parse(info.info ?? '{}') as { runtimeSpec?: { linux?: { namespaces?: { type: string; path?: string }[] } } }
  return runtimeSpec?.linux?.namespaces?.find(({ type }) => type === 'network')?.path
}

function containers(client: CriClient): Containers {
  const runtime = <T>(method: string, request: object, context?: CallContext & { timeoutMs?: number }) =>
    client.call<T>('RuntimeService', method, request, context)
  return {
    createContainer: async (podSandboxId, config, sandboxConfig, context) => {
      const request = { podSandboxId, config: encodeContainerConfig(config), sandboxConfig }
      return (await runtime<{ containerId: string }>('CreateContainer', request, context)).containerId
    },
    startContainer: async (containerId, context) => {
      await runtime('StartContainer', { containerId }, context)
    },
    stopContainer: async (containerId, timeout) => {
      await orUndefined(runtime('StopContainer', { containerId, timeout }, { timeoutMs: timeout * 1000 + 120_000 }))
    },
    removeContainer: async (containerId) => {
      await orUndefined(runtime('RemoveContainer', { containerId }))
    },
    containerStatus: async (containerId) => (await orUndefined(runtime<{ status: cri.RuntimeContainerStatus }>('ContainerStatus', { containerId })))?.status,
    listContainers: async (uid) => (await runtime<{ containers: cri.RuntimeContainer[] }>('ListContainers', byPod(uid))).containers,
    updateContainerResources: async (containerId, linux) => {
      await runtime('UpdateContainerResources', { containerId, linux })
    },
    reopenContainerLog: async (containerId) => {
      await runtime('ReopenContainerLog', { containerId })
    },
    checkpointContainer: async (containerId, location, timeout) => {
      await runtime('CheckpointContainer', { containerId, location, timeout }, timeout > 0 ? { timeoutMs: timeout * 1000 } : {})
    },
    listContainerStats: async () => (await runtime<{ stats: cri.RuntimeContainerStats[] }>('ListContainerStats', {})).stats,
  }
}

function streams({ client, clock, hostPath = (path) => path }: ContainerdRuntimeOptions): Streams {
  const url = async (method: string, request: object): Promise<{ url: string }> => client.call<{ url: string }>('RuntimeService', method, request)
  return {
    execSync: async (containerId, cmd, timeout, context) => {
      // A timeout of 0 means none to the runtime; the call itself gets a little longer than the command.
      const timeoutMs = timeout > 0 ? timeout * 1000 + 2_000 : 24 * 3_600_000
      return client.call<cri.ExecSyncResult>('RuntimeService', 'ExecSync', { containerId, cmd, timeout }, { ...context, timeoutMs })
    },
    exec: (containerId, cmd, streamOptions) => url('Exec', { containerId, cmd, ...streamOptions }),
    attach: (containerId, streamOptions) => url('Attach', { containerId, ...streamOptions }),
    portForward: (podSandboxId, port) => url('PortForward', { podSandboxId, port }),
    logs: (status, logOptions, signal) =>
      readLog(
        hostPath(status.logPath),
        logOptions,
        {
          clock,
          isRunning: async () => {
            const now = await orUndefined(client.call<{ status: cri.RuntimeContainerStatus }>('RuntimeService', 'ContainerStatus', { containerId: status.id }))
            return now?.status.state === 'CONTAINER_RUNNING' || now?.status.state === 'CONTAINER_CREATED'
          },
        },
        signal,
      ),
  }
}

function images(client: CriClient): Images {
  const call = <T>(method: string, request: object, context?: CallContext & { timeoutMs?: number }) => client.call<T>('ImageService', method, request, context)
  return {
    listImages: async () => (await call<{ images: cri.RuntimeImage[] }>('ListImages', {})).images,
    imageStatus: async (image) => (await call<{ image: cri.RuntimeImage | null }>('ImageStatus', { image: { image } })).image ?? undefined,
    pullImage: async (image, auth, sandboxConfig, context) => {
      const request = { image: { image }, sandboxConfig, ...(auth ? { auth } : {}) }
      return (await call<{ imageRef: string }>('PullImage', request, { ...context, timeoutMs: 3_600_000 })).imageRef
    },
    removeImage: async (image) => {
      await orUndefined(call('RemoveImage', { image: { image } }))
    },
    imageFilesystem: async () => (await call<{ imageFilesystems: cri.FilesystemUsage[] }>('ImageFsInfo', {})).imageFilesystems[0],
  }
}
