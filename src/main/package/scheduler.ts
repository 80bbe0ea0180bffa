/**
 * What the package publishes as skiff-kubernetes/scheduler (L5): the types of a scheduler plugin. docs/scheduler.md shows how the scheduler loads one.
 */
export type { Handle } from '#scheduler/framework/handle'
export type { NodeInfo } from '#scheduler/framework/nodeInfo'
export type { PluginDefinition, SchedulerPlugin } from '#scheduler/framework/plugin'
export type { PodInfo } from '#scheduler/framework/podInfo'
