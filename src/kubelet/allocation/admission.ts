/**
 * Whether a node takes a pod that was given to it (L3, pure): schedulers race and pods can name their node themselves.
 * Making room for critical pods is preemption.ts's; asking in turn is podAdmission.ts's.
 * Upstream: kubelet/lifecycle/{predicate,handlers}.go, scheduler/eventhandlers.go AdmissionCheck, eviction_manager.go Admit (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import { hostPortsOf, hostPortsOverlap } from '#api/helpers/hostPorts'
import { podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import { findUntoleratedTaint, tolerationsTolerateTaint } from '#api/helpers/taints'
import type { Frozen } from '#api/machinery/meta'
import { podQosClass } from '../core/cgroupResources.ts'
import { allContainers, type FrozenPod, isStaticPod, isTerminalPhase } from '../core/containers.ts'
import { isCriticalPod } from '../core/criticalPods.ts'
import type { Refusal } from '../core/refusal.ts'
import { forbiddenSysctl } from './sysctls.ts'

/** One thing of the node that the pod does not fit. */
export interface Misfit extends Refusal {
  /** For a resource: the missing amount. */
  readonly shortfall?: { readonly resource: string; readonly amount: number } | undefined
}

export interface NodeRoom {
  /** The node's allocatable resources, as quantities. */
  readonly allocatable: Readonly<Record<string, string>>
  readonly pressure: { readonly memory: boolean; readonly disk: boolean; readonly pid: boolean }
  /** The node as the API has it; undefined: not known yet, so that nothing is asked of it. */
  readonly node?: Frozen<Node> | undefined
  readonly allowedUnsafeSysctls?: readonly string[] | undefined
  /** Whether the machine's kernel can confine containers by AppArmor profiles. */
  readonly appArmor?: boolean | undefined
}

const memoryPressure = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' }
/** Returns undefined when the pod fits on the node together with `others`. */
export function admitPod(pod: FrozenPod, others: readonly FrozenPod[], room: NodeRoom): Refusal | undefined {
  const unwelcome = refuseAnywhere(pod, room)
  if (unwelcome) return unwelcome
  const [first] = misfits(pod, others, room)
  if (first) return { reason: first.reason, message: first.message }
  return wantsAppArmor(pod) && room.appArmor === false
    ? { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' }
    : undefined
}

/** What no other pod's leaving would change. */
function refuseAnywhere(pod: FrozenPod, room: NodeRoom): Refusal | undefined {
  const pressed = underPressure(pod, room.pressure)
  if (pressed) return pressed
  const sysctl = forbiddenSysctl(pod, room.allowedUnsafeSysctls ?? [])
  if (sysctl) return { reason: 'SysctlForbidden', message: sysctl }
  const os = 'linux'
  if ((pod.metadata.labels?.['kubernetes.io/os'] ?? os) !== os) {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
    return { reason: 'PodOSSelectorNodeLabelDoesNotMatch', message }
  }
  if ((pod.spec.os?.name ?? os) !== os) return { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS" }
  const strict = pod.spec.securityContext?.supplementalGroupsPolicy === 'Strict'
  if (strict && room.node && !room.node.status.features?.supplementalGroupsPolicy) {
    return { reason: 'SupplementalGroupsPolicyNotSupported', message: 'SupplementalGroupsPolicy=Strict is not supported in this node' }
  }
  return undefined
}

/** Lists everything of the node that the pod does not fit, in the order in which upstream reports it. */
export function misfits(pod: FrozenPod, others: readonly FrozenPod[], room: NodeRoom): Misfit[] {
  const active = others.filter((other) => other !== pod && other.metadata.uid !== pod.metadata.uid && !isTerminalPhase(other.status?.phase))
  const failed = (name: string, what: string) => ({ reason: name, message: `Predicate ${name} failed: ${what}` })
  const found: Misfit[] = insufficient(pod, active, room)
  const { node } = room
  if (node && !podMatchesNodeSelectorAndAffinity(pod, node)) found.push(failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector"))
  if (node && pod.spec.nodeName && pod.spec.nodeName !== node.metadata.name) {
    found.push(failed('NodeName', "node(s) didn't match the requested node name"))
  }
  if (portTaken(pod, active)) found.push(failed('NodePorts', "node(s) didn't have free ports for the requested pod ports"))
  const untolerated = !isStaticPod(pod) && findUntoleratedTaint(node?.spec.taints, pod.spec.tolerations, ({ effect }) => effect === 'NoExecute')
  if (untolerated) found.push(failed('TaintToleration', "node(s) had taints that the pod didn't tolerate"))
  return found
}

function insufficient(pod: FrozenPod, active: readonly FrozenPod[], room: NodeRoom): Misfit[] {
  const allocatable = amountsOf(room.allocatable)
  // What others than the kubelet set in the Node's status counts as well.
  const ofNode = amountsOf(room.node?.status.allocatable)
  const requests: Record<string, number> = podRequests(pod)
  const named = ['pods', 'cpu', 'memory', 'ephemeral-storage']
  const order = [...named, ...Object.keys(requests).filter((name) => !named.includes(name))]
  const taken = active.map((other) => podRequests(other))
  return order.flatMap((name): Misfit[] => {
    const requested = name === 'pods' ? 1 : (requests[name] ?? 0)
    const capacity = allocatable[name] ?? ofNode[name]
    // Extended resources that this node does not have are not the node's business: they may be the cluster's.
    if (requested === 0 || (capacity === undefined && name.includes('/'))) return []
    const used = name === 'pods' ? taken.length : taken.reduce((sum, one) => sum + (one[name] ?? 0), 0)
    const amount = requested + used - (capacity ?? 0)
    if (amount <= 0) return []
    const message = `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity ?? 0}`
    return [{ reason: `OutOf${name}`, message, shortfall: { resource: name, amount } }]
  })
}

function portTaken(pod: FrozenPod, active: readonly FrozenPod[]): boolean {
  const wanted = hostPortsOf(pod)
  return wanted.length > 0 && active.some((other) => hostPortsOf(other).some((taken) => wanted.some((port) => hostPortsOverlap(port, taken))))
}

function underPressure(pod: FrozenPod, pressure: NodeRoom['pressure']): Refusal | undefined {
  if (isCriticalPod(pod)) return undefined
  // Under memory pressure alone, pods that reserve something are still welcome.
  const named = [pressure.disk && 'DiskPressure', pressure.pid && 'PIDPressure', pressure.memory && 'MemoryPressure'].filter((name) => name !== false)
  const onlyMemory = named.length === 1 && pressure.memory
  if (named.length === 0 || (onlyMemory && (podQosClass(pod) !== 'BestEffort' || tolerationsTolerateTaint(pod.spec.tolerations, memoryPressure))))
    return undefined
  return { reason: 'Evicted', message: `The node had condition: [${named.join(' ')}]. ` }
}

/** Whether some container has a profile that must be enforced. */
function wantsAppArmor(pod: FrozenPod): boolean {
  const enforced = (type: string | undefined) => type !== undefined && type !== 'Unconfined'
  const shared = pod.spec.securityContext?.appArmorProfile?.type
  return allContainers(pod).some(({ container }) => enforced(container.securityContext?.appArmorProfile?.type ?? shared))
}
