/** Fields of a pod and resources of its containers as text (L3, pure). Upstream: kubelet/util fieldpath, api/v1/resource helpers (v1.36). */
import type { ResourceFieldSelector } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { type FrozenContainer, type FrozenPod, findSpecContainer } from './containers.ts'
import { quantity } from './quantities.ts'

/** What stands in for an absent limit: the node's allocatable resources, as quantities. */
export type Allocatable = Readonly<Record<string, string>>

export interface PodRuntimeFacts {
  readonly podIPs: readonly string[]
  readonly hostIPs: readonly string[]
  readonly allocatable: Allocatable
}

const subscripted = /^metadata\.(labels|annotations)\['(.*)'\]$/

/** Go's %q for the values of labels and annotations in files. */
function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  return Object.keys(map ?? {})
    .sort()
    .map((key) => `${key}=${JSON.stringify(map?.[key] ?? '')}`)
    .join('\n')
}

/** @throws Error for a field that the downward API does not offer. */
export function podField(pod: FrozenPod, path: string, facts: Pick<PodRuntimeFacts, 'podIPs' | 'hostIPs'>): string {
  const match = subscripted.exec(path)
  if (match) return ownValue(match[1] === 'labels' ? pod.metadata.labels : pod.metadata.annotations, match[2] ?? '') ?? ''
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name ?? ''
    case 'metadata.namespace':
      return pod.metadata.namespace ?? ''
    case 'metadata.uid':
      return pod.metadata.uid ?? ''
    case 'metadata.labels':
      return formatMap(pod.metadata.labels)
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations)
    case 'spec.nodeName':
      return pod.spec.nodeName ?? ''
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? ''
    case 'status.hostIP':
      return facts.hostIPs[0] ?? ''
    case 'status.hostIPs':
      return facts.hostIPs.join(',')
    case 'status.podIP':
      return facts.podIPs[0] ?? ''
    case 'status.podIPs':
      return facts.podIPs.join(',')
    default:
      throw new Error(`unsupported fieldPath: ${path}`)
  }
}

/** The resource in units of the divisor, rounded up; an absent limit is the pod's, or else the node's allocatable amount. */
export function resourceField(pod: FrozenPod, container: FrozenContainer, selector: Frozen<ResourceFieldSelector>, allocatable: Allocatable): string {
  const target = selector.containerName ? findSpecContainer(pod, selector.containerName) : container
  if (!target) throw new Error(`container ${selector.containerName} not found`)
  const [where, ...rest] = selector.resource.split('.')
  const name = rest.join('.')
  if (where !== 'limits' && where !== 'requests') throw new Error(`unsupported container resource : ${selector.resource}`)
  const { limits, requests } = target.resources ?? {}
  const ofPod = ['cpu', 'memory'].includes(name) ? pod.spec.resources?.limits?.[name] : undefined
  const value = where === 'limits' ? (ownValue(limits, name) ?? ofPod ?? ownValue(allocatable, name)) : (ownValue(requests, name) ?? '0')
  const divisor = quantity(selector.divisor) || 1
  return String(Math.ceil(quantity(value) / divisor - 1e-9))
}
