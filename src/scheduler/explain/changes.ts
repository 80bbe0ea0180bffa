/**
 * What would make a node's filters let a pod through (L3): for each plugin that refuses, the smallest change of the pod or the node, in words and as a
 * trial. Pure. Plugins that refuse for more than one node's sake (topology, devices, volumes) have no such change.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm, Taint } from '#api/gen/types/core.v1'
import { hostPortsOverlap } from '#api/helpers/hostPorts'
import { amountText } from '#api/helpers/podResources'
import { tolerationsTolerateTaint } from '#api/helpers/taints'
import type { Frozen } from '#api/machinery/meta'
import { bareMap, ownValue } from '#base/bareMap'
import type { NodeInfo } from '../framework/nodeInfo.ts'
import type { PodInfo } from '../framework/podInfo.ts'

/** A pod and a node to try changes on. */
export interface Draft {
  pod: PodInfo
  readonly node: NodeInfo
}

export interface Change {
  readonly plugin: string
  /** The object that has to change. */
  readonly of: 'pod' | 'node'
  readonly text: string
  apply(draft: Draft): void
}

/** None: another plugin's change sees to it. */
type Proposer = (pod: PodInfo, node: NodeInfo) => readonly Change[] | undefined

const proposers: Readonly<Record<string, Proposer>> = bareMap({
  NodeUnschedulable: uncordon,
  TaintToleration: tolerate,
  NodeAffinity: label,
  NodePorts: freePorts,
  NodeResourcesFit: makeRoom,
})

/** Undefined: no change of one pod or one node is known to help with that plugin. */
export function changesFor(plugin: string, pod: PodInfo, node: NodeInfo): readonly Change[] | undefined {
  return proposers[plugin]?.(pod, node)
}

const unschedulableTaint = 'node.kubernetes.io/unschedulable'

function uncordon(_pod: PodInfo, { name }: NodeInfo): readonly Change[] {
  return [
    {
      plugin: 'NodeUnschedulable',
      of: 'node',
      text: `let the node take pods again: kubectl uncordon ${name}`,
      apply: ({ node }) =>
        setNode(node, { spec: { ...node.node.spec, unschedulable: false, taints: node.taints.filter(({ key }) => key !== unschedulableTaint) } }),
    },
  ]
}

function tolerate({ pod }: PodInfo, node: NodeInfo): readonly Change[] {
  const hinders = (taint: Frozen<Taint>) =>
    taint.effect !== 'PreferNoSchedule' && !tolerationsTolerateTaint(pod.spec.tolerations, taint) && !(node.unschedulable && taint.key === unschedulableTaint)
  return node.taints.filter(hinders).map(({ key, value = '', effect }) => ({
    plugin: 'TaintToleration',
    of: 'pod',
    text: `tolerate the taint ${key}${value === '' ? '' : `=${value}`}:${effect}`,
    apply: (draft) => {
      const toleration = { key, operator: 'Equal', value, effect }
      const { pod: now } = draft.pod
      draft.pod = { ...draft.pod, pod: { ...now, spec: { ...now.spec, tolerations: [...(now.spec.tolerations ?? []), toleration] } } }
    },
  }))
}

/** Key → value; undefined: without the label. */
type Labels = ReadonlyMap<string, string | undefined>

function label({ pod }: PodInfo, { node }: NodeInfo): readonly Change[] | undefined {
  const labels = node.metadata.labels ?? {}
  const wanted = new Map<string, string | undefined>()
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) wanted.set(key, value)
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const ways = terms.map((term) => labelsForTerm(term, labels)).filter((way) => way !== undefined)
  if (terms.length > 0 && ways.length === 0) return undefined
  const [least] = ways.sort((a, b) => a.size - b.size)
  for (const [key, value] of least ?? []) wanted.set(key, value)
  return [...wanted].map(([key, value]) => ({
    plugin: 'NodeAffinity',
    of: 'node',
    text: value === undefined ? `take the label ${key} from the node` : `label the node ${key}=${value}`,
    apply: (draft) => {
      const { [key]: _, ...others } = draft.node.node.metadata.labels ?? {}
      setNode(draft.node, { metadata: { ...draft.node.node.metadata, labels: value === undefined ? others : { ...others, [key]: value } } })
    },
  }))
}

/** Undefined: labels do not make the term match. */
function labelsForTerm({ matchExpressions = [], matchFields = [] }: Frozen<NodeSelectorTerm>, labels: Readonly<Record<string, string>>): Labels | undefined {
  if (matchFields.length > 0) return undefined
  const wanted = new Map<string, string | undefined>()
  for (const requirement of matchExpressions) {
    const { key } = requirement
    const way = labelFor(requirement, ownValue(labels, key))
    if (way !== 'right') wanted.set(key, way)
  }
  return wanted
}

function labelFor({ operator, values = [] }: Frozen<NodeSelectorRequirement>, value: string | undefined): string | undefined | 'right' {
  const [first = ''] = values
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value) ? 'right' : first
    case 'NotIn':
      return value === undefined || !values.includes(value) ? 'right' : undefined
    case 'Exists':
      return value !== undefined ? 'right' : ''
    case 'DoesNotExist':
      return value === undefined ? 'right' : undefined
    case 'Gt':
      return Number(value) > Number(first) ? 'right' : String(Number(first) + 1)
    default:
      return Number(value) < Number(first) ? 'right' : String(Number(first) - 1)
  }
}

function freePorts(pod: PodInfo, node: NodeInfo): readonly Change[] {
  const taken = [...node.usedPorts.keys()].filter((used) => pod.hostPorts.some((port) => hostPortsOverlap(port, used)))
  return taken.map((used) => {
    const holder = [...node.pods.values()].find(({ hostPorts }) => hostPorts.includes(used))
    const [protocol, , port] = used.split('/')
    return {
      plugin: 'NodePorts',
      of: 'node',
      text: `free host port ${port}/${protocol}${holder ? `, which ${holder.key} holds` : ''}`,
      apply: (draft) => void draft.node.usedPorts.delete(used),
    }
  })
}

function makeRoom(pod: PodInfo, node: NodeInfo): readonly Change[] {
  const changes: Change[] = []
  const tooMany = node.podCount + 1 - node.allocatablePods
  if (tooMany > 0)
    changes.push({
      plugin: 'NodeResourcesFit',
      of: 'node',
      text: `take ${tooMany} pod${tooMany === 1 ? '' : 's'} away from the node, which may hold ${node.allocatablePods}`,
      apply: (draft) => {
        draft.node.podCount -= tooMany
      },
    })
  for (const [name, wanted] of Object.entries(pod.requests)) {
    const free = (node.allocatable[name] ?? 0) - (node.requested[name] ?? 0)
    if (wanted > 0 && wanted > free) changes.push(free > 0 ? lowerRequest(name, wanted, free) : freeOnNode(name, wanted, free))
  }
  return changes
}

function lowerRequest(name: string, wanted: number, free: number): Change {
  return {
    plugin: 'NodeResourcesFit',
    of: 'pod',
    text: `request ${amountText(name, wanted - free)} less of ${name}: ${amountText(name, free)} instead of ${amountText(name, wanted)}`,
    apply: (draft) => {
      const requests = { ...draft.pod.requests, [name]: free }
      draft.pod = { ...draft.pod, requests, milliCpu: requests.cpu ?? 0, memory: requests.memory ?? 0 }
    },
  }
}

function freeOnNode(name: string, wanted: number, free: number): Change {
  return {
    plugin: 'NodeResourcesFit',
    of: 'node',
    text: `free ${amountText(name, wanted - free)} of ${name} on the node, or add as much`,
    apply: ({ node }) => {
      node.requested[name] = (node.requested[name] ?? 0) - (wanted - free)
      node.requestedMilliCpu = node.requested.cpu ?? 0
      node.requestedMemory = node.requested.memory ?? 0
    },
  }
}

function setNode(node: NodeInfo, changed: Partial<NodeInfo['node']>): void {
  node.setNode({ ...node.node, ...changed })
}
