/**
 * Caches a result that depends only on a pod's container ports (L3): a Service may have ten thousand ports and select thousands of pods of one template.
 * Upstream computes it for each pod.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export function byContainerPorts<T extends object>(work: (pod: Frozen<Pod>) => T): (pod: Frozen<Pod>) => T {
  const known = new Map<string, T>()
  return (pod) => {
    const key = textOfPorts(pod)
    const answer = known.get(key) ?? work(pod)
    known.set(key, answer)
    return answer
  }
}

/** Sidecars offer their ports as containers do. */
function textOfPorts({ spec }: Frozen<Pod>): string {
  return JSON.stringify([
    (spec.containers ?? []).map(({ ports }) => ports),
    (spec.initContainers ?? []).map(({ ports, restartPolicy }) => (restartPolicy === 'Always' ? ports : undefined)),
  ])
}
