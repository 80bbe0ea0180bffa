/** Notes for a reader what the scheduler does about a pod (L3). */
import { objectKey } from '#api/debug/traces'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { ObjectTrace } from '#trace/objectTrace'

export interface NotedAttempt {
  readonly what: 'attempt' | 'bind'
  /** By the monotonic clock. */
  readonly startedMs: number
  readonly waitedMs?: number | undefined
  readonly node?: string | undefined
  readonly result: string
}

export function noteAttempt(
  { trace, clock }: { readonly trace?: ObjectTrace | undefined; readonly clock: Clock },
  { metadata: { namespace = '', name = '' } }: Frozen<Pod>,
  { what, startedMs, waitedMs, node, result }: NotedAttempt,
): void {
  if (!trace?.follows('pods', namespace, name)) return
  const durationMs = clock.monotonicMs() - startedMs
  trace.note({
    component: 'kube-scheduler',
    what,
    object: objectKey('pods', namespace, name),
    atMs: trace.now() - durationMs,
    durationMs,
    result,
    ...(node === undefined ? {} : { node }),
    ...(waitedMs === undefined ? {} : { waitedMs }),
  })
}
