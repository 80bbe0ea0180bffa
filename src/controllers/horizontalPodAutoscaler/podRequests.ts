/**
 * The requests of pods for one resource, in thousandths (L3, pure): the request of one container if one is named; otherwise that of
 * the pod level if it is set, else the sum over containers and sidecars. Upstream: calculateRequests of pkg/controller/podautoscaler/replica_calculator.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodLevelResource, podRequests } from '#api/helpers/podResources'
import type { Frozen } from '#api/machinery/meta'
import { quantityMilliValue } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'

/** By name of the pod. @throws Error for a pod that does not request the resource, with upstream's text */
export function requestsOf(pods: readonly Frozen<Pod>[], resource: string, container: string): ReadonlyMap<string, number> {
  return new Map(pods.map((pod) => [pod.metadata.name ?? '', requestOf(pod, resource, container)]))
}

function requestOf(pod: Frozen<Pod>, resource: string, container: string): number {
  const isPodLevel = Object.keys(pod.spec.resources?.requests ?? {}).some(isPodLevelResource)
  return container === '' && isPodLevel ? podLevelRequest(pod, resource) : containersRequest(pod, resource, container)
}

function podLevelRequest(pod: Frozen<Pod>, resource: string): number {
  const amount = ownValue(podRequests(pod), resource)
  if (amount === undefined) throw new Error(`missing pod-level request for ${resource} in Pod ${pod.metadata.name}`)
  return resource === 'cpu' ? amount : amount * 1000
}

function containersRequest(pod: Frozen<Pod>, resource: string, container: string): number {
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const counted = [...pod.spec.containers, ...sidecars].filter(({ name }) => container === '' || name === container)
  if (container !== '' && counted.length === 0) throw new Error(`container ${container} not found in Pod ${pod.metadata.name}`)
  let total = 0
  for (const { name, resources } of counted) {
    const request = ownValue(resources?.requests, resource)
    if (request === undefined) throw new Error(`missing request for ${resource} in container ${name} of Pod ${pod.metadata.name}`)
    total += quantityMilliValue(request)
  }
  return total
}
