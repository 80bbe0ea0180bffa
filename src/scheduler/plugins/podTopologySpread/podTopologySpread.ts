/**
 * Spreads the pods of an application over zones, hosts or whatever labels of nodes name (L3): as its constraints say, or by default, gently, those of
 * each service and controller. Upstream: plugins/podtopologyspread/plugin.go (v1.36).
 */
import type { Node, Pod, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import { everything, type Selector, selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { actions, type ClusterEvent, on } from '../../framework/clusterEvent.ts'
import { stateKey } from '../../framework/cycleState.ts'
import { definePlugin } from '../../framework/plugin.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import type { Snapshot } from '../../framework/snapshot.ts'
import { DomainTables } from '../topology/domainTables.ts'
import { tryPods } from '../topology/tryPods.ts'
import { ConstraintCompiler, hasAllKeys, type SpreadConstraints, type WhenUnsatisfiable } from './constraints.ts'
import { defaultSelectors } from './defaultSelector.ts'
import { SpreadFilter } from './spreadFilter.ts'
import { hostnameLabel, SpreadScore } from './spreadScore.ts'

const filterKey = stateKey<SpreadFilter>('PreFilterPodTopologySpread')
const scoreKey = stateKey<SpreadScore>('PreScorePodTopologySpread')

type Constraints = readonly Frozen<TopologySpreadConstraint>[]

const systemDefaults: Constraints = [
  { topologyKey: hostnameLabel, whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 5 },
]

export const podTopologySpread = definePlugin('PodTopologySpread', ({ defaultConstraints, defaultingType }, handle) => {
  const isSystemDefault = defaultingType === 'System'
  const defaults = isSystemDefault ? systemDefaults : defaultConstraints
  const selectorByDefault = defaults.length > 0 ? defaultSelectors(handle) : () => everything
  const tables = new DomainTables()
  const compiler = new ConstraintCompiler(tables)
  handle.maintain(tables)

  const constraintsOf = (pod: Frozen<Pod>, action: WhenUnsatisfiable, snapshot: Snapshot): SpreadConstraints | undefined => {
    const own = pod.spec.topologySpreadConstraints ?? []
    const wanted = (own.length > 0 ? own : defaults).filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    if (wanted.length === 0) return undefined
    if (own.length > 0) return compiler.compile(pod, wanted, snapshot, { requiresAllKeys: true })
    const selector: Selector = selectorByDefault(pod)
    if (selector.isEmpty) return undefined
    return compiler.compile(pod, wanted, snapshot, { selector, requiresAllKeys: action === 'DoNotSchedule' || !isSystemDefault })
  }

  const kept = new WeakMap<Frozen<Pod>, Counted>()
  // A pod that waits is asked about on each event of any other pod.
  const selectorsOf = (pod: Frozen<Pod>): Counted => {
    let counted = kept.get(pod)
    if (!counted) {
      const constraints = hardConstraints(pod, defaults)
      counted = constraints.length > mostAsked ? [undefined] : constraints.map(({ labelSelector }) => labelSelector && selectorOf(labelSelector))
      kept.set(pod, counted)
    }
    return counted
  }

  return {
    requeueOn: [
      on('AssignedPod', actions.Add | actions.UpdatePodLabel | actions.Delete, (pod, event) => countsDifferently(selectorsOf(pod), pod, event)),
      on('TargetPod', actions.UpdatePodLabel),
      on('Node', actions.Add | actions.Delete | actions.UpdateNodeLabel | actions.UpdateNodeTaint, (pod, { old, object }) =>
        domainsDiffer(hardConstraints(pod, defaults), old, object),
      ),
    ],
    // With constraints by default, every pod of an application changes the scores of the next one.
    ...(defaults.length > 0 ? {} : { batchSign: ({ pod }: PodInfo) => (pod.spec.topologySpreadConstraints?.length ? undefined : '') }),
    preFilter: (state, pod, snapshot) => {
      const constraints = constraintsOf(pod.pod, 'DoNotSchedule', snapshot)
      if (!constraints) return 'skip'
      const countsItself = constraints.all.map(({ selector }) => selector.matches(pod.pod.metadata.labels))
      state.write(filterKey, new SpreadFilter(constraints, countsItself))
      return undefined
    },
    ...tryPods(filterKey),
    filter: (state, _pod, node) => state.read(filterKey)?.filter(node),
    preScore: (state, pod, nodes, snapshot) => {
      const constraints = constraintsOf(pod.pod, 'ScheduleAnyway', snapshot)
      if (!constraints) return 'skip'
      state.write(scoreKey, new SpreadScore(constraints, nodes))
      return undefined
    },
    score: (state, _pod, node) => state.read(scoreKey)?.score(node) ?? 0,
    normalize: (scores, state, _pod, nodes) => state.read(scoreKey)?.normalize(scores, nodes),
  }
})

/** Those that can refuse a pod. */
function hardConstraints(pod: Frozen<Pod>, defaults: Constraints): Constraints {
  const own = pod.spec.topologySpreadConstraints ?? []
  return (own.length > 0 ? own : defaults).filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule')
}

/** The selectors of the constraints that can refuse a pod; undefined where any pod of the namespace may count. */
type Counted = readonly (Selector | undefined)[]

/** With more constraints than this a pod is tried again on each event of its namespace: after its back-off, which costs less than to ask all selectors. */
const mostAsked = 64

/** Whether the change of another pod changes what some constraint counts. */
function countsDifferently(selectors: Counted, pod: Frozen<Pod>, { old, object }: ClusterEvent<'AssignedPod'>): boolean {
  if ((object ?? old)?.metadata.namespace !== pod.metadata.namespace) return false
  return selectors.some((selector) => {
    if (!selector) return true
    const matched = old !== undefined && selector.matches(old.metadata.labels)
    const matches = object !== undefined && selector.matches(object.metadata.labels)
    return matched !== matches
  })
}

/** Whether a node came, went or changed so that the domains are others. */
function domainsDiffer(constraints: Constraints, old: Frozen<Node> | undefined, node: Frozen<Node> | undefined): boolean {
  const keys = constraints.map(({ topologyKey }) => topologyKey)
  const had = old !== undefined && hasAllKeys(old, keys)
  const has = node !== undefined && hasAllKeys(node, keys)
  if (!had || !has) return had || has
  const moved = keys.some((key) => ownValue(old.metadata.labels, key) !== ownValue(node.metadata.labels, key))
  return moved || JSON.stringify(old.spec?.taints) !== JSON.stringify(node.spec?.taints)
}
