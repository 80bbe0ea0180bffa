/**
 * Takes the readiness from pods of a node that no longer speaks for them (L3). Upstream: MarkPodsNotReady of pkg/controller/util/node (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodReady, isPodTerminal } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { formatTime } from '#base/time'
import { pods } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { EventRecorder } from '#client/eventRecorder'
import type { ControllerContext } from '../framework/controller.ts'
import { nodeNameIndex, podNodeIndexers } from '../shared/indexes.ts'

export interface MarkPods {
  readonly informer: SharedInformer<Pod>
  /** Once for each silence: a kubelet that lives knows better afterwards. */
  notReady(nodeName: string, signal: AbortSignal): Promise<void>
  /** The node is not silent any more, or gone. */
  speaksAgain(nodeName: string): void
}

export function createMarkPods({ client, clock, informers }: ControllerContext, events: EventRecorder): MarkPods {
  const informer = informers.of(pods)
  informer.addIndexers(podNodeIndexers)
  const marked = new Set<string>()
  return {
    informer,
    speaksAgain: (nodeName) => void marked.delete(nodeName),
    async notReady(nodeName, signal) {
      if (marked.has(nodeName)) return
      for (const pod of informer.store.byIndex(nodeNameIndex, nodeName)) if (isPodReady(pod) && !isPodTerminal(pod)) await mark(pod, signal)
      marked.add(nodeName)
    },
  }

  async function mark(pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    events.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready')
    const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: formatTime(clock.now()) }]
    await client
      .of(pods)
      .patch({ namespace, name }, 'strategic', { metadata: { uid }, status: { conditions } }, { subresource: 'status', signal })
      .catch(unlessOvertaken)
  }
}

/** What changed or went meanwhile is looked at again at the next round. */
export function unlessOvertaken(error: unknown): void {
  if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
}
