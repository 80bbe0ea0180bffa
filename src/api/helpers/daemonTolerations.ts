/** What the pods of every DaemonSet tolerate (L1, pure). Upstream: pkg/controller/daemon/util/daemonset_util.go AddOrUpdateDaemonPodTolerations (v1.36). */
import type { Toleration } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'

const exists = (key: string, effect: string): Toleration => ({ key, operator: 'Exists', effect })
const ownTolerations: readonly Toleration[] = [
  exists('node.kubernetes.io/not-ready', 'NoExecute'),
  exists('node.kubernetes.io/unreachable', 'NoExecute'),
  exists('node.kubernetes.io/disk-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/memory-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/pid-pressure', 'NoSchedule'),
  exists('node.kubernetes.io/unschedulable', 'NoSchedule'),
]

export function daemonTolerations(given: readonly Frozen<Toleration>[] | undefined, hostNetwork: boolean): Toleration[] {
  const added = hostNetwork ? [...ownTolerations, exists('node.kubernetes.io/network-unavailable', 'NoSchedule')] : ownTolerations
  const same = (a: Frozen<Toleration>, b: Frozen<Toleration>) => a.key === b.key && a.effect === b.effect && a.operator === b.operator && a.value === b.value
  const own = (given ?? []).map((toleration) => deepCopy<Toleration>(toleration))
  return [...own, ...added.filter((one) => !own.some((other) => same(one, other))).map((one) => ({ ...one }))]
}
