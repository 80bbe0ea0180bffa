/**
 * Whether a node takes a pod that was given to it (L3, pure): schedulers race and pods can name their node themselves.
 * Upstream: kubelet/lifecycle/predicate.go, eviction_manager.go Admit (v1.36).
 */
import { hostPortsOf, hostPortsOverlap } from '#api/helpers/hostPorts'
import { amountsOf, podRequests } from '#api/helpers/podResources'
import { tolerationsTolerateTaint } from '#api/helpers/taints'
import { type FrozenPod, isTerminalPhase } from './containers.ts'
import { podQosClass } from './resources.ts'

export interface Refusal {
  readonly reason: string
  readonly message: string
}

export interface NodeRoom {
  /** The node's allocatable resources, as quantities. */
  readonly allocatable: Readonly<Record<string, string>>
  readonly pressure: { readonly memory: boolean; readonly disk: boolean; readonly pid: boolean }
}

const memoryPressure = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' }
const criticalPriority = 2_000_000_000

export function isCriticalPod(pod: FrozenPod): boolean {
  return (pod.spec.priority ?? 0) >= criticalPriority
}

/** Undefined when the pod may run beside `others`. */
export function admitPod(pod: FrozenPod, others: readonly FrozenPod[], room: NodeRoom): Refusal | undefined {
  const pressed = underPressure(pod, room.pressure)
  if (pressed) return pressed
  const active = others.filter((other) => other !== pod && other.metadata.uid !== pod.metadata.uid && !isTerminalPhase(other.status?.phase))
  const allocatable = amountsOf(room.allocatable)
  const requests: Record<string, number> = { ...podRequests(pod), pods: 1 }
  const taken = active.map((other) => podRequests(other))
  for (const [name, requested] of Object.entries(requests)) {
    // Extended resources that this node does not have are not the node's business: they may be the cluster's.
    if (name.includes('/') && allocatable[name] === undefined) continue
    const capacity = allocatable[name] ?? 0
    const used = name === 'pods' ? taken.length : taken.reduce((sum, one) => sum + (one[name] ?? 0), 0)
    if (requested === 0 || requested + used <= capacity) continue
    const message = `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`
    return { reason: `OutOf${name}`, message: `Pod was rejected: ${message}` }
  }
  return portTaken(pod, active)
}

function portTaken(pod: FrozenPod, active: readonly FrozenPod[]): Refusal | undefined {
  const wanted = hostPortsOf(pod)
  const isFree = wanted.length === 0 || !active.some((other) => hostPortsOf(other).some((taken) => wanted.some((port) => hostPortsOverlap(port, taken))))
  if (isFree) return undefined
  return { reason: 'NodePorts', message: "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports" }
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
