/** Tells critical pods from others (L3, pure): eviction spares them and preemption makes room for them. Upstream: kubelet/types/pod_update.go IsCriticalPod (v1.36). */
import { configMirrorAnnotation, type FrozenPod, isStaticPod } from './containers.ts'

const criticalPriority = 2_000_000_000

export function isCriticalPod(pod: FrozenPod): boolean {
  const isMirror = pod.metadata.annotations?.[configMirrorAnnotation] !== undefined
  return isStaticPod(pod) || isMirror || (pod.spec.priority ?? 0) >= criticalPriority
}
