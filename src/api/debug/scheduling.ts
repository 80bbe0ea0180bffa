/** The answer of /debug/scheduling for one pod (L1): the scheduler writes it, `skiff why` reads it. Upstream has no counterpart. */
export interface PluginReasons {
  readonly plugin: string
  readonly reasons: readonly string[]
}

export interface NodeExplanation {
  readonly node: string
  readonly fits: boolean
  /** Of every plugin that refuses the node now. */
  readonly refusals: readonly PluginReasons[]
  /** All together, tried on a copy, would make the pod fit here. Absent: no such changes are known, or they are not needed. */
  readonly changes?: readonly { readonly plugin: string; readonly of: 'pod' | 'node'; readonly text: string }[] | undefined
}

export interface SchedulingExplanation {
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly scheduler: string
  /** Scheduled: the pod has a node. Binding: the node is chosen, and the binding is being written. Absent: there is no such pod. The others are queues. */
  readonly state: 'Scheduled' | 'Binding' | 'Active' | 'BackOff' | 'Unschedulable' | 'Gated' | 'InFlight' | 'Absent'
  readonly node?: string | undefined
  readonly schedulingGates: readonly string[]
  readonly gatedBy?: string | undefined
  /** The plugins whose events bring the pod back to the queue. */
  readonly waitsFor: readonly string[]
  readonly attempts: number
  readonly nominatedNode?: string | undefined
  /** What the last refusal said, preemption included. */
  readonly lastRefusal?: { readonly at: string; readonly message: string } | undefined
  readonly placement?: PlacementExplanation | undefined
  /** Refused without looking at nodes. */
  readonly beforehand: readonly PluginReasons[]
  /** The columns of the matrix. */
  readonly filters: readonly string[]
  readonly nodeCount: number
  /** Those that fit first, then those that need the fewest changes; at most a hundred of them. */
  readonly nodes: readonly NodeExplanation[]
}

export interface PlacementExplanation {
  readonly at: string
  readonly evaluatedNodes: number
  readonly feasibleNodes: number
  /** The chosen node's scores; empty if only one node fitted. `score` includes the weight. */
  readonly scores: readonly { readonly plugin: string; readonly weight: number; readonly score: number }[]
}
