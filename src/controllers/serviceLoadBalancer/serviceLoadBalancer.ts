/**
 * Gives services of type LoadBalancer addresses of the cluster's nodes (L3), where the nodes' proxies take what arrives; no cloud is needed.
 * Upstream: cloud-provider/controllers/service (v1.36), whose events and metric these are.
 */
import type { LoadBalancerIngress, Node, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { externalPolicyLocal } from '#api/helpers/services'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { endpointSlices, nodes, services } from '#client/builtIn'
import { serviceNameLabel } from '../endpointSlice/plan.ts'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { assignAddresses, type HolderOf, internalAddresses, type PortOfNode, portsOf, rivalWithPort, takesTraffic, wantsLoadBalancer } from './addresses.ts'

export const serviceLoadBalancer: ControllerDescriptor = {
  name: 'service-lb-controller',
  aliases: ['service'],
  serviceAccount: 'service-controller',
  create: createServiceLoadBalancer,
}

const portIndex = 'loadBalancerPort'
const portIndexers = { [portIndex]: (service: Frozen<Service>) => (wantsLoadBalancer(service) ? portsOf(service).map(portKey) : []) }
const portKey = ({ port, protocol }: PortOfNode) => `${port}/${protocol}`

const sliceIndex = 'loadBalancerService'
const sliceIndexers = { [sliceIndex]: (slice: Frozen<EndpointSlice>) => [serviceKeyOf(slice)] }
const serviceKeyOf = ({ metadata }: Frozen<EndpointSlice>) => `${metadata.namespace}/${metadata.labels?.[serviceNameLabel]}`

const apiServerKey = 'default/kubernetes'
/** Hundreds of nodes can change at once: changes are collected for this long, because each would write every service. */
const gatherNodesMs = 500

function createServiceLoadBalancer(context: ControllerContext) {
  const serviceInformer = context.informers.of(services)
  const nodeInformer = context.informers.of(nodes)
  const slices = context.informers.of(endpointSlices)
  const client = context.client.of(services)
  serviceInformer.addIndexers(portIndexers)
  slices.addIndexers(sliceIndexers)
  const events = context.events('service-controller')
  const syncs = context.metrics.counter({
    name: 'service_controller_loadbalancer_sync_total',
    help: 'How often the addresses of a service of type LoadBalancer were set',
  })
  // One at a time, since two services may want the same port.
  const reconciler = createReconciler(context, { name: serviceLoadBalancer.name, queueName: 'service', workers: 1, reconcile })
  const { queue } = reconciler

  const enqueueRivals = (service: Frozen<Service>) => {
    for (const rival of rivalsOf(service)) queue.add(keyOf(rival))
  }
  const enqueueAll = () => {
    for (const port of serviceInformer.store.indexValues(portIndex))
      for (const service of serviceInformer.store.byIndex(portIndex, port)) queue.addAfter(keyOf(service), gatherNodesMs)
  }
  const enqueueService = (slice: Frozen<EndpointSlice>) => {
    const service = serviceInformer.store.get(serviceKeyOf(slice))
    if (service && wantsLoadBalancer(service) && externalPolicyLocal(service)) queue.add(keyOf(service))
  }
  reconciler.watch(serviceInformer, {
    onAdd: (service) => {
      if (isConcerned(service)) queue.add(keyOf(service))
    },
    onUpdate: (old, service) => {
      if (isConcerned(service)) queue.add(keyOf(service))
      // What it had may be free for others now.
      if (!semanticEqual(claimOf(old), claimOf(service))) enqueueRivals(old)
    },
    onDelete: enqueueRivals,
  })
  reconciler.watch(nodeInformer, {
    onAdd: enqueueAll,
    onUpdate: (old, node) => {
      if (!semanticEqual(addressesFor(old), addressesFor(node))) enqueueAll()
    },
    onDelete: enqueueAll,
  })
  reconciler.watch(slices, { onAdd: enqueueService, onUpdate: (_, slice) => enqueueService(slice), onDelete: enqueueService })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const service = serviceInformer.store.get(key)
    if (!service || service.metadata.deletionTimestamp) return
    if (wantsLoadBalancer(service)) await ensure(service, signal)
    else if (service.spec.type !== 'LoadBalancer' && ingressOf(service).length > 0) await release(service, signal)
  }

  async function ensure(service: Frozen<Service>, signal: AbortSignal): Promise<void> {
    const before = ingressOf(service)
    const ready = nodeInformer.store.list().filter(takesTraffic)
    const { ingress, problem } = assignAddresses(service, candidatesFor(service, ready), holderOf(service))
    if (ready.length === 0) events.event(service, 'Warning', 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer')
    if (problem !== undefined && ingress.length === 0)
      events.event(service, 'Warning', 'SyncLoadBalancerFailed', `Error syncing load balancer: failed to ensure load balancer: ${problem}`)
    if (semanticEqual(before, ingress)) return
    const isNew = before.length === 0
    if (isNew) events.event(service, 'Normal', 'EnsuringLoadBalancer', 'Ensuring load balancer')
    await setIngress(service, ingress, signal)
    if (isNew) events.event(service, 'Normal', 'EnsuredLoadBalancer', 'Ensured load balancer')
    else if (ingress.length > 0) events.event(service, 'Normal', 'UpdatedLoadBalancer', 'Updated load balancer with new hosts')
  }

  async function release(service: Frozen<Service>, signal: AbortSignal): Promise<void> {
    events.event(service, 'Normal', 'DeletingLoadBalancer', 'Deleting load balancer')
    await setIngress(service, [], signal)
    events.event(service, 'Normal', 'DeletedLoadBalancer', 'Deleted load balancer')
  }

  async function setIngress(service: Frozen<Service>, ingress: readonly Frozen<LoadBalancerIngress>[], signal: AbortSignal): Promise<void> {
    const { namespace, name = '', resourceVersion } = service.metadata
    const loadBalancer = { ingress: ingress.length > 0 ? ingress : null }
    await client.patch({ namespace, name }, 'merge', { metadata: { resourceVersion }, status: { loadBalancer } }, { subresource: 'status', signal })
    syncs.inc()
  }

  /** With the Local policy only nodes that have a ready endpoint can answer. */
  function candidatesFor(service: Frozen<Service>, ready: readonly Frozen<Node>[]): string[] {
    if (!externalPolicyLocal(service)) return ready.flatMap(internalAddresses)
    const endpoints = slices.store.byIndex(sliceIndex, keyOf(service)).flatMap(({ endpoints }) => endpoints ?? [])
    const local = new Set(endpoints.flatMap(({ conditions, nodeName }) => (conditions?.ready !== false && nodeName ? [nodeName] : [])))
    return ready.filter(({ metadata }) => local.has(metadata.name ?? '')).flatMap(internalAddresses)
  }

  /** Other services with one of its ports. */
  function rivalsOf(service: Frozen<Service>): Frozen<Service>[] {
    const key = keyOf(service)
    return portsOf(service).flatMap((port) => serviceInformer.store.byIndex(portIndex, portKey(port)).filter((other) => keyOf(other) !== key))
  }

  function holderOf(service: Frozen<Service>): HolderOf {
    const rivals = rivalsOf(service)
    const own = ownPorts(service)
    return (address, port) => {
      const rival = rivalWithPort(service, rivals, address, port)
      return rival ? `service ${keyOf(rival)}` : own.get(`${address} ${portKey(port)}`)
    }
  }

  /** Ports of the service that the cluster itself needs on its nodes' addresses, with their users. */
  function ownPorts(service: Frozen<Service>): Map<string, string> {
    const wanted = new Set(portsOf(service).map(({ port }) => port))
    const kubelets = nodeInformer.store.list().flatMap((node) => {
      const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port
      if (port === undefined || !wanted.has(port)) return []
      return internalAddresses(node).map((address) => [`${address} ${port}/TCP`, 'the kubelet'] as const)
    })
    const apiServers = slices.store.byIndex(sliceIndex, apiServerKey).flatMap(({ endpoints, ports }) => {
      const addresses = endpoints?.flatMap((endpoint) => endpoint.addresses) ?? []
      return addresses.flatMap((address) => (ports ?? []).map(({ port }) => [`${address} ${port}/TCP`, 'the API server'] as const))
    })
    return new Map([...kubelets, ...apiServers])
  }
}

/** What others with the same ports have to mind. */
const claimOf = (service: Frozen<Service>) => (wantsLoadBalancer(service) ? { ports: portsOf(service), ingress: ingressOf(service) } : undefined)
const ingressOf = (service: Frozen<Service>) => service.status?.loadBalancer?.ingress ?? []
const isConcerned = (service: Frozen<Service>) => wantsLoadBalancer(service) || (service.spec.type !== 'LoadBalancer' && ingressOf(service).length > 0)
const addressesFor = (node: Frozen<Node>) => (takesTraffic(node) ? internalAddresses(node) : [])
