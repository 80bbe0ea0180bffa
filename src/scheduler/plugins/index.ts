/**
 * The plugins that Skiff has (L3), and the default profile: their order, and the weight of their scores.
 * Upstream: pkg/scheduler/framework/plugins/registry.go, pkg/scheduler/apis/config/v1/default_plugins.go (v1.36).
 */
import type { PluginDefinition } from '../framework/plugin.ts'
import { defaultBinder } from './defaultBinder.ts'
import { defaultPreemption } from './defaultPreemption/defaultPreemption.ts'
import { dynamicResources } from './dynamicResources/dynamicResources.ts'
import { imageLocality } from './imageLocality.ts'
import { interPodAffinity } from './interPodAffinity/interPodAffinity.ts'
import { nodeAffinity } from './nodeAffinity.ts'
import { nodeDeclaredFeatures } from './nodeDeclaredFeatures.ts'
import { nodeName } from './nodeName.ts'
import { nodePorts } from './nodePorts.ts'
import { nodeResourcesBalancedAllocation } from './nodeResourcesBalancedAllocation.ts'
import { nodeResourcesFit } from './nodeResourcesFit.ts'
import { nodeUnschedulable } from './nodeUnschedulable.ts'
import { nodeVolumeLimits } from './nodeVolumeLimits.ts'
import { podTopologySpread } from './podTopologySpread/podTopologySpread.ts'
import { prioritySort } from './prioritySort.ts'
import { schedulingGates } from './schedulingGates.ts'
import { taintToleration } from './taintToleration.ts'
import { volumeBinding } from './volumeBinding/volumeBinding.ts'
import { volumeRestrictions } from './volumeRestrictions.ts'
import { volumeZone } from './volumeZone.ts'

export interface DefaultPlugin {
  readonly definition: PluginDefinition
  /** Weight of its scores; 0: it does not score. */
  readonly weight: number
}

/** The default profile, in order. */
export const defaultPlugins: readonly DefaultPlugin[] = [
  { definition: schedulingGates, weight: 0 },
  { definition: prioritySort, weight: 0 },
  { definition: nodeUnschedulable, weight: 0 },
  { definition: nodeName, weight: 0 },
  { definition: taintToleration, weight: 3 },
  { definition: nodeAffinity, weight: 2 },
  { definition: nodePorts, weight: 0 },
  { definition: nodeResourcesFit, weight: 1 },
  { definition: volumeRestrictions, weight: 0 },
  { definition: nodeVolumeLimits, weight: 0 },
  { definition: volumeBinding, weight: 0 },
  { definition: volumeZone, weight: 0 },
  { definition: podTopologySpread, weight: 2 },
  { definition: interPodAffinity, weight: 2 },
  // An idle claim is rather freed than a pod taken away that does something.
  { definition: dynamicResources, weight: 1 },
  { definition: defaultPreemption, weight: 0 },
  { definition: nodeResourcesBalancedAllocation, weight: 1 },
  { definition: imageLocality, weight: 1 },
  { definition: defaultBinder, weight: 0 },
  { definition: nodeDeclaredFeatures, weight: 0 },
]
