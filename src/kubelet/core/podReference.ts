/** What an event is about (L3, pure): a pod or one of its containers. Upstream: pkg/kubelet/container/ref.go (v1.36). */
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { FrozenPod } from './containers.ts'

/** What an event about a pod, or about one of its containers, refers to. */
export function podReference(pod: FrozenPod, containerName?: string): ObjectReference {
  const path = containerName === undefined ? undefined : containerFieldPath(pod, containerName)
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    namespace: pod.metadata.namespace,
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    resourceVersion: pod.metadata.resourceVersion,
    ...(path === undefined ? {} : { fieldPath: path }),
  }
}

function containerFieldPath(pod: FrozenPod, name: string): string {
  if (pod.spec.initContainers?.some((container) => container.name === name)) return `spec.initContainers{${name}}`
  if (pod.spec.ephemeralContainers?.some((container) => container.name === name)) return `spec.ephemeralContainers{${name}}`
  return `spec.containers{${name}}`
}
