/**
 * A simulated node without pods (L3): it registers, renews its Lease and reports its status, and nothing else of a kubelet exists yet. The first pod, a request
 * to its port or the removal of a volume ends that, and kubelet.ts creates the whole kubelet. Most of ten thousand nodes may have no pods.
 */
import { requestedRemovals } from '#api/helpers/localPath'
import { abortScope } from '#base/abortScope'
import type { WakeUp } from '#base/wakeUp'
import type { KubeletConfig } from './core/config.ts'
import type { KubeletDeps } from './core/context.ts'
import { ownSources } from './core/kubeletSources.ts'
import { createNodeManager, type NodeContext, type NodeMemory } from './node/nodeManager.ts'
import { createRuntimeHealth } from './node/runtimeHealth.ts'
import { createRecorder } from './parts.ts'
import { publishCsiNode } from './volumes/csi/csiNode.ts'
import { untracked } from './volumes/volumesInUse.ts'

const noPressure = { memory: false, disk: false, pid: false }

export interface StandByOptions {
  readonly config: KubeletConfig
  readonly memory: NodeMemory
  /** A part that needs the whole kubelet rings it. */
  readonly needed: WakeUp
  /** Called once the Node is registered. */
  onRegistered(): void
}

/** Resolves when the whole kubelet is needed, or the signal aborts. */
export type StandBy = (deps: KubeletDeps, options: StandByOptions, signal: AbortSignal) => Promise<void>

export const standBy: StandBy = async (deps, { config, memory, needed, onRegistered }, signal) => {
  const { machine } = deps
  if (!machine) throw new Error('only a simulated node can stand by')
  using follow = abortScope(signal)
  const until = follow.signal
  const context: NodeContext = {
    ...deps,
    config,
    machineInfo: machine,
    sources: deps.sources ?? ownSources(deps),
    recorder: createRecorder(deps, config, signal),
    resources: { capacity: () => ({}), allocatable: () => ({}), onChange: () => {} },
  }
  const node = createNodeManager(
    context,
    {
      pressure: () => noPressure,
      health: createRuntimeHealth(context, () => undefined),
      shutdownProblem: () => undefined,
      onNode: (own) => {
        if (requestedRemovals(own).length > 0) needed.ring()
      },
      inUse: untracked,
    },
    memory,
  )
  void node.registered.then(onRegistered)
  await Promise.all([
    needed.wait(signal).then(() => follow.abort()),
    node.run(signal, until),
    publishCsiNode(context, node.registered, () => memory.createdUid, signal),
    context.sources.pods(config.nodeName, { replace: (pods) => pods.length > 0 && needed.ring(), changed: needed.ring, deleted: () => {} }, until),
  ])
}
