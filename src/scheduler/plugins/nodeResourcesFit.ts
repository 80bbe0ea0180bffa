/**
 * Refuses nodes without room for the pod's requests, and scores the others by how full they would be (L3).
 * Upstream: plugins/noderesources/fit.go (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { actions, on } from '../framework/clusterEvent.ts'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import { definePlugin, maxNodeScore } from '../framework/plugin.ts'
import type { PluginArgs } from '../framework/pluginArgs.ts'
import { type PodInfo, podInfo } from '../framework/podInfo.ts'
import { type Refusal, reasons } from '../framework/status.ts'
import { ExtendedResourceClasses, isExtendedResource } from './dynamicResources/extendedResources.ts'
import { requestsText, resourceUses } from './resourceScoring.ts'
import { strategyOf } from './scoringStrategies.ts'

export const nodeResourcesFit = definePlugin('NodeResourcesFit', (args, handle) => {
  const { resources } = args.scoringStrategy
  const score = strategyOf(args.scoringStrategy)
  const ignores = ignoredBy(args)
  const classes = new ExtendedResourceClasses(handle)
  const isDefault = args.scoringStrategy.type === 'LeastAllocated' && isCpuAndMemoryAlike(resources)
  return {
    requeueOn: [
      on('AssignedPod', actions.Delete | actions.UpdatePodScaleDown, (pod, { old, object }) => !object || !old || frees(podRequests(pod), old, object)),
      on('TargetPod', actions.UpdatePodScaleDown),
      on('Node', actions.Add | actions.UpdateNodeAllocatable, (pod, { old, object }) => (object ? nodeMayHelp(podInfo(pod), old, object, classes) : false)),
      on('DeviceClass', actions.Add | actions.Update, (pod) => classes.givenBy(podInfo(pod).otherResources).length > 0),
    ],
    // Whether a class of devices gives an extended resource is no matter of the node.
    sign: (pod) => (pod.otherResources.some(isExtendedResource) ? undefined : requestsText(pod)),
    batchSign: (pod) => (classes.givenBy(pod.otherResources).length > 0 ? undefined : requestsText(pod)),
    filter: (_state, pod, node) => insufficient(pod, node, ignores, classes),
    score: (_state, pod, node) => (isDefault ? leastAllocated(pod, node) : score(resourceUses(resources, pod, node, true))),
  }
})

/** Whether another component, such as an extender, manages an extended resource. */
function ignoredBy({ ignoredResources, ignoredResourceGroups }: PluginArgs['NodeResourcesFit']): ((name: string) => boolean) | undefined {
  if (ignoredResources.length === 0 && ignoredResourceGroups.length === 0) return undefined
  const names = new Set(ignoredResources)
  const groups = new Set(ignoredResourceGroups)
  return (name) => isExtendedResource(name) && (names.has(name) || groups.has(name.slice(0, name.indexOf('/'))))
}

function isCpuAndMemoryAlike([first, second, ...others]: PluginArgs['NodeResourcesFit']['scoringStrategy']['resources']): boolean {
  return others.length === 0 && first?.name === 'cpu' && second?.name === 'memory' && first.weight === second.weight
}

/** What every cycle asks of every node, without detours. */
function leastAllocated(pod: PodInfo, node: NodeInfo): number {
  const cpu = leastRequested(node.nonZeroMilliCpu + pod.nonZeroMilliCpu, node.allocatableMilliCpu)
  const memory = leastRequested(node.nonZeroMemory + pod.nonZeroMemory, node.allocatableMemory)
  if (cpu < 0) return Math.max(0, memory)
  return memory < 0 ? cpu : Math.floor((cpu + memory) / 2)
}

/** Whether nothing is short: the question asked of most nodes. */
function fits(pod: PodInfo, node: NodeInfo): boolean {
  if (node.podCount >= node.allocatablePods) return false
  if (pod.milliCpu > 0 && pod.milliCpu > node.allocatableMilliCpu - node.requestedMilliCpu) return false
  if (pod.memory > 0 && pod.memory > node.allocatableMemory - node.requestedMemory) return false
  for (const name of pod.otherResources) if ((pod.requests[name] ?? 0) > (node.allocatable[name] ?? 0) - (node.requested[name] ?? 0)) return false
  return true
}

/** One reason per resource that is short. A request beyond the whole node is unresolvable: no preemption can help. */
function insufficient(pod: PodInfo, node: NodeInfo, ignores: ((name: string) => boolean) | undefined, classes: ExtendedResourceClasses): Refusal | undefined {
  if (fits(pod, node)) return undefined
  const short: string[] = []
  let beyondNode = false
  const { allocatable, requested } = node
  if (node.podCount >= node.allocatablePods) short.push(reasons.tooManyPods)
  for (const name of resourceOrder(pod.requests)) {
    const wanted = pod.requests[name] ?? 0
    if (wanted === 0 || wanted <= (allocatable[name] ?? 0) - (requested[name] ?? 0) || ignores?.(name)) continue
    // What the node has none of is asked of its drivers, by another plugin.
    if (!allocatable[name] && classes.classOf(name) !== undefined) continue
    short.push(reasons.insufficient(name))
    if (wanted > (allocatable[name] ?? 0)) beyondNode = true
  }
  if (short.length === 0) return undefined
  return { code: beyondNode ? 'UnschedulableAndUnresolvable' : 'Unschedulable', reasons: short }
}

const first = ['cpu', 'memory', 'ephemeral-storage']

function resourceOrder(requests: Readonly<Record<string, number>>): string[] {
  return [...first.filter((name) => Object.hasOwn(requests, name)), ...Object.keys(requests).filter((name) => !first.includes(name))]
}

/** -1: the node has none of it. */
function leastRequested(requested: number, capacity: number): number {
  if (capacity === 0) return -1
  return requested > capacity ? 0 : Math.floor(((capacity - requested) * maxNodeScore) / capacity)
}

/** Whether a placed pod now asks for less of something that the pod asks for. */
function frees(wanted: Readonly<Record<string, number>>, old: Frozen<Pod>, now: Frozen<Pod>): boolean {
  const before = podRequests(old, { useStatusResources: true })
  const after = podRequests(now, { useStatusResources: true })
  return Object.keys(wanted).some((name) => wanted[name] !== 0 && (after[name] ?? 0) < (before[name] ?? 0))
}

/** The pod fits the empty node; when the node is not new, more of something that the pod needs has to be there than before. */
function nodeMayHelp(pod: PodInfo, old: Frozen<Node> | undefined, node: Frozen<Node>, classes: ExtendedResourceClasses): boolean {
  const allocatable = amountsOf(node.status?.allocatable)
  const isAskedHere = ([name]: [string, number]) => Boolean(allocatable[name]) || classes.classOf(name) === undefined
  const wanted = Object.fromEntries(Object.entries({ ...pod.requests, pods: 1 }).filter(isAskedHere))
  const amount = (name: string) => allocatable[name] ?? 0
  if (!Object.entries(wanted).every(([name, least]) => least <= amount(name))) return false
  if (!old) return true
  const before = amountsOf(old.status?.allocatable)
  return Object.entries(wanted).some(([name, least]) => least > 0 && amount(name) > (before[name] ?? 0))
}
