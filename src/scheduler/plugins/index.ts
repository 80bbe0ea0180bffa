/** The default profile (L3): plugins in order, with the weight of their scores. Upstream: pkg/scheduler/apis/config/v1/default_plugins.go. */
import type { SchedulerPlugin } from '../framework/plugin.ts'
import { imageLocality } from './imageLocality.ts'
import { nodeAffinity } from './nodeAffinity.ts'
import { nodeName } from './nodeName.ts'
import { nodePorts } from './nodePorts.ts'
import { nodeResourcesBalancedAllocation } from './nodeResourcesBalancedAllocation.ts'
import { nodeResourcesFit } from './nodeResourcesFit.ts'
import { nodeUnschedulable } from './nodeUnschedulable.ts'
import { prioritySort } from './prioritySort.ts'
import { schedulingGates } from './schedulingGates.ts'
import { taintToleration } from './taintToleration.ts'

export interface ProfilePlugin {
  readonly plugin: SchedulerPlugin
  readonly weight: number
}

export const defaultPlugins: readonly ProfilePlugin[] = [
  { plugin: schedulingGates, weight: 0 },
  { plugin: prioritySort, weight: 0 },
  { plugin: nodeUnschedulable, weight: 0 },
  { plugin: nodeName, weight: 0 },
  { plugin: taintToleration, weight: 3 },
  { plugin: nodeAffinity, weight: 2 },
  { plugin: nodePorts, weight: 0 },
  { plugin: nodeResourcesFit, weight: 1 },
  { plugin: nodeResourcesBalancedAllocation, weight: 1 },
  { plugin: imageLocality, weight: 1 },
]
