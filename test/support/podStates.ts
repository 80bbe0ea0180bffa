/** A short text of a pod's status, for tests. */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

/** Why the first container waits; undefined when it does not. */
export function waitingReason(pod: Frozen<Pod>): string | undefined {
  return pod.status?.containerStatuses?.[0]?.state?.waiting?.reason
}
