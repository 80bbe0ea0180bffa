/**
 * The older Endpoints object of each Service, which clients still read (L3). Upstream: pkg/controller/endpoint (v1.36).
 */
import type { EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service } from '#api/gen/types/core.v1'
import { isPodReady, isPodTerminal } from '#api/helpers/pods'
import { findTargetPort, isHeadless } from '#api/helpers/services'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOfMap } from '#api/machinery/labelSelector'
import { type Frozen, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { endpoints as endpointsResource, pods, services } from '#client/builtIn'
import { addressOf, addressTypes } from './endpointSlice/plan.ts'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'
import { byContainerPorts } from './shared/byContainerPorts.ts'
import { isNamespaceTerminating } from './shared/podControl.ts'
import { podServiceHandler } from './shared/podServiceHandler.ts'

export interface EndpointsOptions {
  readonly endpoints?: {
    /** Changes of pods are collected for this long before Endpoints are written. Default 0. */
    readonly batchMs?: number | undefined
  }
}

export const endpoints: ControllerDescriptor<EndpointsOptions> = {
  name: 'endpoints-controller',
  aliases: ['endpoint'],
  serviceAccount: 'endpoint-controller',
  create: createEndpointsController,
}

const maxAddresses = 1000
const overCapacityAnnotation = 'endpoints.kubernetes.io/over-capacity'
const managedByLabel = 'endpoints.kubernetes.io/managed-by'
const managedBy = 'endpoint-controller'
const headlessLabel = 'service.kubernetes.io/headless'

function createEndpointsController(context: ControllerContext, options: EndpointsOptions) {
  const serviceInformer = context.informers.of(services)
  const podInformer = context.informers.of(pods)
  const informer = context.informers.of(endpointsResource)
  const reconciler = createReconciler(context, { name: endpoints.name, queueName: 'endpoint', workers: 5, maxRetries: 15, reconcile })
  reconciler.watch(serviceInformer, enqueueSelf(reconciler.queue))
  reconciler.watch(podInformer, podServiceHandler(serviceInformer, reconciler.queue, options.endpoints?.batchMs))
  reconciler.watch(informer, { onDelete: ({ metadata }) => reconciler.queue.add(`${metadata.namespace}/${metadata.name}`) })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const client = context.client.of(endpointsResource)
    const service = serviceInformer.store.get(key)
    const there = informer.store.get(key)
    try {
      if (!service) {
        // Only what we made: others' Endpoints without a service are their business.
        if (there?.metadata.labels?.[managedByLabel] === managedBy) await client.delete(refOfKey(key), { signal })
        return
      }
      if (service.spec.type === 'ExternalName' || !service.spec.selector) return
      const selector = selectorOfMap(service.spec.selector)
      const selected = podInformer.lister.list({ namespace: service.metadata.namespace, matches: ({ metadata }) => selector.matches(metadata.labels ?? {}) })
      const { subsets, truncated } = endpointSubsets(service, selected)
      const labels = { ...service.metadata.labels, [managedByLabel]: managedBy, ...(isHeadless(service) ? { [headlessLabel]: '' } : {}) }
      const { [overCapacityAnnotation]: _, ...kept } = there?.metadata.annotations ?? {}
      const annotations = truncated ? { ...kept, [overCapacityAnnotation]: 'truncated' } : kept
      if (!there) {
        await client.create({ metadata: { ...refOfKey(key), labels, annotations }, subsets }, { signal })
        return
      }
      const same =
        semanticEqual(there.subsets, subsets) && semanticEqual(there.metadata.labels, labels) && semanticEqual(there.metadata.annotations ?? {}, annotations)
      if (!same) await client.update({ ...there, metadata: { ...there.metadata, labels, annotations }, subsets } as Frozen<Endpoints>, { signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound') && !isStatus(error, 'AlreadyExists') && !isNamespaceTerminating(error)) throw error
    }
  }
}

/** Pods grouped by their ports; addresses in order, so that equal sets are equal objects. */
function endpointSubsets(service: Frozen<Service>, selected: readonly Frozen<Pod>[]): { subsets: EndpointSubset[]; truncated: boolean } {
  const groups = new Map<string, { ports: EndpointPort[]; ready: EndpointAddress[]; notReady: EndpointAddress[] }>()
  const [type = 'IPv4'] = addressTypes(service)
  const tolerate = service.spec.publishNotReadyAddresses === true
  let count = 0
  const portsOfPod = byContainerPorts((pod) => {
    const ports = portsOf(service, pod)
    return { ports, key: JSON.stringify(ports) }
  })
  for (const pod of selected) {
    const ip = addressOf(pod, type)
    if (ip === undefined || isPodTerminal(pod) || (pod.metadata.deletionTimestamp && !tolerate)) continue
    const { ports, key } = portsOfPod(pod)
    if ((service.spec.ports ?? []).length > 0 && ports.length === 0) continue
    const ready = tolerate || isPodReady(pod)
    if (count++ >= maxAddresses) continue
    const group = groups.get(key) ?? { ports, ready: [], notReady: [] }
    groups.set(key, group)
    ;(ready ? group.ready : group.notReady).push(endpointAddress(service, pod, ip))
  }
  const byIp = (a: EndpointAddress, b: EndpointAddress) => (a.ip < b.ip ? -1 : 1)
  const subsets = [...groups.values()].map(({ ports, ready, notReady }) => ({
    ...(ready.length > 0 ? { addresses: ready.sort(byIp) } : {}),
    ...(notReady.length > 0 ? { notReadyAddresses: notReady.sort(byIp) } : {}),
    ...(ports.length > 0 ? { ports } : {}),
  }))
  return { subsets: subsets.sort((a, b) => (JSON.stringify(a.ports) < JSON.stringify(b.ports) ? -1 : 1)), truncated: count > maxAddresses }
}

function portsOf(service: Frozen<Service>, pod: Frozen<Pod>): EndpointPort[] {
  return (service.spec.ports ?? [])
    .flatMap((port): EndpointPort[] => {
      const number = findTargetPort(pod, port)
      if (number === undefined) return []
      const { name, appProtocol, protocol = 'TCP' } = port
      return [{ ...(name ? { name } : {}), port: number, protocol, ...(appProtocol ? { appProtocol } : {}) }]
    })
    .sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))
}

function endpointAddress(service: Frozen<Service>, pod: Frozen<Pod>, ip: string): EndpointAddress {
  const { nodeName, hostname, subdomain } = pod.spec
  const { namespace, name, uid } = pod.metadata
  return {
    ip,
    ...(nodeName ? { nodeName } : {}),
    ...(hostname && subdomain === service.metadata.name ? { hostname } : {}),
    targetRef: { kind: 'Pod', namespace, name, uid },
  }
}
