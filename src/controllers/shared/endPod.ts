/** Ends a pod permanently (L3): sets a condition with the reason, marks it Failed if it has not ended, and deletes it at once or gracefully. */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { formatTime } from '#base/time'
import { pods } from '#client/builtIn'
import type { Client } from '#client/client'

export interface EndPodOptions {
  readonly signal: AbortSignal
  readonly nowMs: number
  /** The DisruptionTarget condition to set first; absent: none. */
  readonly reason?: string | undefined
  readonly message?: string | undefined
  /** Default: at once, without grace. */
  readonly graceful?: boolean | undefined
}

export async function endPod(client: Client, pod: Frozen<Pod>, options: EndPodOptions): Promise<void> {
  const { signal, nowMs, reason, message, graceful = false } = options
  const { namespace, name = '', uid } = pod.metadata
  const ref = { namespace, name }
  try {
    const conditions =
      reason === undefined
        ? []
        : [{ type: 'DisruptionTarget', status: 'True', reason, message, lastTransitionTime: formatTime(nowMs), observedGeneration: pod.metadata.generation }]
    // No kubelet reports the end of a pod that is deleted without grace.
    if (!isPodTerminal(pod) && (!graceful || conditions.length > 0)) {
      const status = { ...(graceful ? {} : { phase: 'Failed' }), ...(conditions.length > 0 ? { conditions } : {}) }
      await client.of(pods).patch(ref, 'strategic', { metadata: { uid }, status }, { subresource: 'status', signal })
    }
    await client.of(pods).delete(ref, { signal, ...(graceful ? {} : { gracePeriodSeconds: 0 }), preconditions: { uid } })
  } catch (error) {
    if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
  }
}
