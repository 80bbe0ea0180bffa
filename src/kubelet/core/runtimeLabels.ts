/**
 * The labels and annotations by which the kubelet finds its own containers again after a restart (L3): upstream's keys,
 * so that crictl, log collectors and metrics agents read them. Upstream: kubelet/kuberuntime/labels.go (v1.36).
 */
import type { Container, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export const labelKeys = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const

export const annotationKeys = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  ports: 'io.kubernetes.container.ports',
  podTerminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  podDeletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  /** Ours: 'init' or 'once' for containers that are meant to end. The simulated runtime reads it. */
  kind: 'skiff.dev/container-kind',
  /** Ours: the resources that the container was created with, for in-place resize after a restart of the kubelet. */
  resources: 'skiff.dev/container-resources',
} as const

export function podLabels(pod: Frozen<Pod>): Record<string, string> {
  return {
    ...pod.metadata.labels,
    [labelKeys.podName]: pod.metadata.name ?? '',
    [labelKeys.podNamespace]: pod.metadata.namespace ?? '',
    [labelKeys.podUid]: pod.metadata.uid ?? '',
  }
}

export function containerLabels(pod: Frozen<Pod>, container: Frozen<Container>): Record<string, string> {
  return {
    [labelKeys.podName]: pod.metadata.name ?? '',
    [labelKeys.podNamespace]: pod.metadata.namespace ?? '',
    [labelKeys.podUid]: pod.metadata.uid ?? '',
    [labelKeys.containerName]: container.name,
  }
}

/** What the kubelet must know again of a container after a restart. */
export function containerAnnotations(pod: Frozen<Pod>, container: Frozen<Container>, restartCount: number): Record<string, string> {
  const grace = pod.spec.terminationGracePeriodSeconds
  const deletion = pod.metadata.deletionGracePeriodSeconds
  const preStop = container.lifecycle?.preStop
  return {
    [annotationKeys.hash]: containerHash(container),
    [annotationKeys.restartCount]: String(restartCount),
    [annotationKeys.terminationMessagePath]: container.terminationMessagePath ?? '/dev/termination-log',
    [annotationKeys.terminationMessagePolicy]: container.terminationMessagePolicy ?? 'File',
    ...kindAnnotation(pod, container.name),
    ...(container.ports?.length ? { [annotationKeys.ports]: JSON.stringify(container.ports) } : {}),
    ...(container.resources ? { [annotationKeys.resources]: JSON.stringify(container.resources) } : {}),
    ...(grace === undefined ? {} : { [annotationKeys.podTerminationGracePeriod]: String(grace) }),
    ...(deletion === undefined ? {} : { [annotationKeys.podDeletionGracePeriod]: String(deletion) }),
    ...(preStop ? { [annotationKeys.preStopHandler]: JSON.stringify(preStop) } : {}),
  }
}

/** An init container that is no sidecar, or a container that never restarts; the pods of Jobs with another policy are known by their label. */
function kindAnnotation({ spec }: Frozen<Pod>, name: string): Record<string, string> {
  const init = spec.initContainers?.find((one) => one.name === name)
  if (init) return init.restartPolicy === 'Always' ? {} : { [annotationKeys.kind]: 'init' }
  const container = spec.containers.find((one) => one.name === name)
  return container && (container.restartPolicy ?? spec.restartPolicy) === 'Never' ? { [annotationKeys.kind]: 'once' } : {}
}

/** Changes when the container must be restarted: its name and image only, because nothing else of it can change in place. FNV-1a in hex. */
export function containerHash(container: Pick<Frozen<Container>, 'name' | 'image'>): string {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(JSON.stringify([container.name, container.image ?? '']))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash.toString(16)
}
