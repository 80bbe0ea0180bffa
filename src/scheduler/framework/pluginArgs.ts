/**
 * The arguments of the plugins that have some, after defaulting (L3). config/pluginArgs.ts decodes and checks them.
 * Upstream: kube-scheduler/config/v1/types_pluginargs.go, types.go DynamicResourcesArgs (v1.36).
 */
import type { NodeAffinity, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'

export interface ResourceSpec {
  readonly name: string
  readonly weight: number
}

export interface UtilizationShapePoint {
  /** 0 … 100. */
  readonly utilization: number
  /** 0 … 10. */
  readonly score: number
}

export interface ScoringStrategy {
  readonly type: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio'
  readonly resources: readonly ResourceSpec[]
  readonly requestedToCapacityRatio?: { readonly shape: readonly UtilizationShapePoint[] } | undefined
}

export interface PluginArgs {
  DefaultPreemption: { readonly minCandidateNodesPercentage: number; readonly minCandidateNodesAbsolute: number }
  DynamicResources: { readonly filterTimeoutMs: number; readonly bindingTimeoutMs: number }
  InterPodAffinity: { readonly hardPodAffinityWeight: number; readonly ignorePreferredTermsOfExistingPods: boolean }
  NodeAffinity: { readonly addedAffinity?: Frozen<NodeAffinity> | undefined }
  NodeResourcesBalancedAllocation: { readonly resources: readonly ResourceSpec[] }
  NodeResourcesFit: {
    readonly ignoredResources: readonly string[]
    readonly ignoredResourceGroups: readonly string[]
    readonly scoringStrategy: ScoringStrategy
  }
  PodTopologySpread: { readonly defaultConstraints: readonly Frozen<TopologySpreadConstraint>[]; readonly defaultingType: 'System' | 'List' }
  VolumeBinding: { readonly bindTimeoutSeconds: number; readonly shape: readonly UtilizationShapePoint[] }
}

/** Other plugins get what stands in the file, undecoded. */
export type ArgsOf<Name extends string> = Name extends keyof PluginArgs ? PluginArgs[Name] : unknown

const cpuAndMemory: readonly ResourceSpec[] = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

/** Upstream: pkg/scheduler/apis/config/v1/defaults.go. */
export const defaultPluginArgs: Readonly<PluginArgs> = bareMap({
  DefaultPreemption: { minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100 },
  DynamicResources: { filterTimeoutMs: 10_000, bindingTimeoutMs: 600_000 },
  InterPodAffinity: { hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false },
  NodeAffinity: {},
  NodeResourcesBalancedAllocation: { resources: cpuAndMemory },
  NodeResourcesFit: { ignoredResources: [], ignoredResourceGroups: [], scoringStrategy: { type: 'LeastAllocated', resources: cpuAndMemory } },
  PodTopologySpread: { defaultConstraints: [], defaultingType: 'System' },
  VolumeBinding: { bindTimeoutSeconds: 600, shape: [] },
})
