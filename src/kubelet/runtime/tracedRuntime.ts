/** Notes the calls of the runtime that belong to followed pods (L3). The create call names the pod; later calls name only the id, so ids are remembered. */
import { bareMap } from '#base/bareMap'
import { LruCache } from '#base/lruCache'
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'
import type { ObjectTrace } from '#trace/objectTrace'
import { type NamedPod, noted } from '../core/podTrace.ts'
import type { CallContext, RuntimeService } from '../core/runtimeService.ts'

/** Ids that are remembered; the oldest are forgotten. */
const mostIds = 1000

interface Owner extends NamedPod {
  /** The container; undefined: the sandbox. */
  readonly container?: string | undefined
}

/** Returns the runtime unchanged without a trace. */
export function traceRuntime(runtime: RuntimeService, trace: ObjectTrace | undefined, node: string): RuntimeService {
  if (!trace) return runtime
  const owners = new LruCache<string, Owner>(mostIds)
  const remember = (id: string, owner: Owner) => {
    if (!trace.follows('pods', owner.namespace, owner.name)) return
    owners.set(id, owner)
  }
  const about = (what: string) => ({ component: 'runtime', what, node })
  const podOf = ({ metadata }: PodSandboxConfig): NamedPod => ({ namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' })
  /** A call that names an id and answers nothing that matters. */
  const ofId = (method: 'startContainer' | 'stopContainer' | 'removeContainer' | 'stopPodSandbox' | 'removePodSandbox', what: string) => {
    const call = runtime[method] as (id: string, ...rest: unknown[]) => Promise<void>
    return (id: string, ...rest: unknown[]): Promise<void> => {
      const owner = owners.get(id)
      if (!owner) return call.call(runtime, id, ...rest)
      return noted(
        trace,
        owner,
        about(what),
        () => call.call(runtime, id, ...rest),
        () => (owner.container === undefined ? 'done' : `container ${owner.container}`),
      )
    }
  }
  const calls: Partial<RuntimeService> = {
    runPodSandbox: async (config: PodSandboxConfig, handler: string, context?: CallContext) => {
      const pod = podOf(config)
      const id = await noted(trace, pod, about('RunPodSandbox'), () => runtime.runPodSandbox(config, handler, context))
      remember(id, pod)
      return id
    },
    createContainer: async (sandboxId: string, config: ContainerConfig, sandbox: PodSandboxConfig, context?: CallContext) => {
      const owner = { ...podOf(sandbox), container: config.metadata?.name ?? '' }
      const work = () => runtime.createContainer(sandboxId, config, sandbox, context)
      const id = await noted(trace, owner, about('CreateContainer'), work, () => `container ${owner.container}`)
      remember(id, owner)
      return id
    },
    pullImage: (image, auth, sandbox, context) =>
      noted(
        trace,
        podOf(sandbox),
        about('PullImage'),
        () => runtime.pullImage(image, auth, sandbox, context),
        () => image,
      ),
    startContainer: ofId('startContainer', 'StartContainer'),
    stopContainer: ofId('stopContainer', 'StopContainer'),
    removeContainer: ofId('removeContainer', 'RemoveContainer'),
    stopPodSandbox: ofId('stopPodSandbox', 'StopPodSandbox'),
    removePodSandbox: ofId('removePodSandbox', 'RemovePodSandbox'),
  }
  return bareMap({ ...runtime, ...calls }) as unknown as RuntimeService
}
