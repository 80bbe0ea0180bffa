/**
 * The topology manager's policies (L3, pure): choose a NUMA affinity from the hints of all providers, and decide whether the pod is admitted.
 * Upstream: kubelet/cm/topologymanager/policy_none.go, policy_best_effort.go, policy_restricted.go, policy_single_numa_node.go (v1.36).
 */
import { flattenHints, maskOf, mergeHints, type NumaInfo, nodeCount, type ProviderHints, type TopologyHint } from './hints.ts'

export interface TopologyPolicy {
  readonly name: string
  /** Absent: hints are not asked for. */
  decide?(info: NumaInfo, hints: readonly ProviderHints[], preferClosest: boolean): { readonly hint: TopologyHint; readonly admit: boolean }
}

const none: TopologyPolicy = { name: 'none' }

const bestEffort: TopologyPolicy = {
  name: 'best-effort',
  decide: (info, hints, preferClosest) => ({ hint: mergeHints(info, flattenHints(hints), preferClosest), admit: true }),
}

const restricted: TopologyPolicy = {
  name: 'restricted',
  decide: (info, hints, preferClosest) => {
    const hint = mergeHints(info, flattenHints(hints), preferClosest)
    return { hint, admit: hint.preferred }
  },
}

const singleNumaNode: TopologyPolicy = {
  name: 'single-numa-node',
  decide: (info, hints, preferClosest) => {
    const single = flattenHints(hints).map((list) =>
      list.filter(({ affinity, preferred }) => preferred && (affinity === undefined || nodeCount(affinity) === 1)),
    )
    const merged = mergeHints(info, single, preferClosest)
    // All nodes are no affinity at all.
    const hint = merged.affinity === maskOf(info.nodes) ? { affinity: undefined, preferred: merged.preferred } : merged
    return { hint, admit: merged.preferred }
  },
}

export const topologyPolicies: readonly TopologyPolicy[] = [none, bestEffort, restricted, singleNumaNode]

export interface TopologyOptions {
  readonly preferClosest: boolean
  readonly maxNumaNodes: number
}

const defaultMaxNumaNodes = 8

/** @throws Error in upstream's words for an option that is unknown or has a value it cannot have. */
export function topologyOptions(options: Readonly<Record<string, string>>): TopologyOptions {
  let result: TopologyOptions = { preferClosest: false, maxNumaNodes: defaultMaxNumaNodes }
  for (const [name, value] of Object.entries(options)) {
    if (name === 'prefer-closest-numa-nodes') {
      if (value !== 'true' && value !== 'false') throw new Error(`bad value for option "${name}": strconv.ParseBool: parsing "${value}": invalid syntax`)
      result = { ...result, preferClosest: value === 'true' }
    } else if (name === 'max-allowable-numa-nodes') {
      const count = Number(value)
      if (!Number.isInteger(count)) throw new Error(`unable to convert policy option to integer "${name}": strconv.Atoi: parsing "${value}": invalid syntax`)
      if (count < defaultMaxNumaNodes) throw new Error(`the minimum value of "${name}" should not be less than ${defaultMaxNumaNodes}`)
      result = { ...result, maxNumaNodes: count }
    } else throw new Error(`unknown Topology Manager Policy option: "${name}"`)
  }
  return result
}
