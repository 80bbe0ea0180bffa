/**
 * Writes the pods of each Service into EndpointSlices (L3). plan.ts decides; this file listens and writes.
 * Upstream: pkg/controller/endpointslice, k8s.io/endpointslice (v1.36).
 */
import type { Pod, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { controllerReference } from '#api/helpers/owners'
import { isPodReady } from '#api/helpers/pods'
import { semanticEqual } from '#api/machinery/equality'
import { selectorOfMap } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { parseTime } from '#base/time'
import { endpointSlices, nodes, pods, services } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, StaleCacheError } from '../framework/reconciler.ts'
import { isNamespaceTerminating } from '../shared/podControl.ts'
import { podServiceHandler } from '../shared/podServiceHandler.ts'
import { createWriteTracker } from '../shared/writeTracker.ts'
import { hintPlan } from './hintPlan.ts'
import {
  type AddressType,
  addressTypes,
  managedBy,
  managedByLabel,
  planSlices,
  serviceNameLabel,
  sliceLabels,
  trafficDistribution,
  type WantedEndpoints,
  wantedEndpoints,
  wantsTopologyHints,
} from './plan.ts'
import { createDistributionMetrics, createSliceMetrics } from './sliceMetrics.ts'
import { createTopologyCache } from './topologyCache.ts'
import { writeSlices } from './writeSlices.ts'
import { withPresentHints } from './zoneHints.ts'
import { zoneOf } from './zoneShares.ts'

export interface EndpointSliceOptions {
  readonly endpoints?: {
    /** Most endpoints of a slice. Default 100. */
    readonly maxPerSlice?: number | undefined
    /** Changes of pods are collected for this long before EndpointSlices are written. Default 0. */
    readonly sliceBatchMs?: number | undefined
  }
}

export const endpointSlice: ControllerDescriptor<EndpointSliceOptions> = {
  name: 'endpointslice-controller',
  aliases: ['endpointslice'],
  serviceAccount: 'endpointslice-controller',
  create: createEndpointSliceController,
}

/** Queued when nodes change. Keys of Services contain a slash. */
const nodesKey = 'nodes'
const subsystem = 'endpoint_slice_controller'
const defaultMaxPerSlice = 100
const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'
const serviceIndex = 'service'
const byService = (slice: Frozen<EndpointSlice>): readonly string[] =>
  slice.metadata.labels?.[managedByLabel] === managedBy ? [`${slice.metadata.namespace}/${slice.metadata.labels[serviceNameLabel]}`] : []

function createEndpointSliceController(context: ControllerContext, options: EndpointSliceOptions) {
  const { client } = context
  const { maxPerSlice = defaultMaxPerSlice, sliceBatchMs } = options.endpoints ?? {}
  const serviceInformer = context.informers.of(services)
  const podInformer = context.informers.of(pods)
  const nodeInformer = context.informers.of(nodes)
  const informer = context.informers.of(endpointSlices)
  informer.addIndexers({ [serviceIndex]: byService })
  const events = context.events('endpoint-slice-controller')
  const tracker = createWriteTracker()
  const sliceMetrics = createSliceMetrics(context.metrics, subsystem, maxPerSlice)
  const distributionMetrics = createDistributionMetrics(context.metrics, subsystem)
  const topology = createTopologyCache(() => nodeInformer.store.list())
  const syncs = context.metrics.counter({ name: `${subsystem}_syncs`, help: 'Services whose slices were synced, by result.', labels: ['result'] })
  const reconciler = createReconciler(context, {
    name: endpointSlice.name,
    queueName: 'endpoint_slice',
    workers: 5,
    maxRetries: 15,
    async reconcile(key, signal) {
      if (key === nodesKey) return queueOverloaded()
      const service = serviceInformer.store.get(key)
      // Slices of a service that is gone belong to the garbage collector.
      if (!service || service.spec.type === 'ExternalName' || !service.spec.selector || service.metadata.deletionTimestamp) {
        tracker.forget(key)
        sliceMetrics.forget(key)
        distributionMetrics.forget(key)
        topology.forget(key)
        return
      }
      if (!tracker.isCurrent(key, (slice) => informer.store.get(slice))) {
        syncs.inc({ result: 'stale' })
        throw new StaleCacheError('EndpointSlice informer cache is out of date')
      }
      try {
        await sync(key, service, signal)
        syncs.inc({ result: 'success' })
      } catch (error) {
        syncs.inc({ result: 'error' })
        if (isNamespaceTerminating(error)) return
        const message = `Error updating Endpoint Slices for Service ${key}: ${messageOf(error)}`
        if (!isStatus(error, 'Conflict')) events.event(service, 'Warning', 'FailedToUpdateEndpointSlices', message)
        throw error
      }
    },
  })
  reconciler.watch(serviceInformer, enqueueSelf(reconciler.queue))
  reconciler.watch(podInformer, podServiceHandler(serviceInformer, reconciler.queue, sliceBatchMs))
  reconciler.watch(nodeInformer, {
    onAdd: nodesChanged,
    onUpdate: (old, node) => {
      if (isNodeReady(old) !== isNodeReady(node) || zoneOf(old) !== zoneOf(node)) nodesChanged()
    },
    onDelete: nodesChanged,
  })
  reconciler.watch(informer, {
    // Another client changed or deleted a slice of this controller: restore it.
    onUpdate: (old, slice) => {
      if (old.metadata.resourceVersion === slice.metadata.resourceVersion) return
      for (const key of new Set([...byService(old), ...byService(slice)])) reconciler.queue.add(key)
    },
    onDelete: (slice) => {
      tracker.sawDelete(slice)
      for (const key of byService(slice)) reconciler.queue.add(key)
    },
  })
  return reconciler

  async function sync(key: string, service: Frozen<Service>, signal: AbortSignal): Promise<void> {
    const { namespace } = service.metadata
    const selector = selectorOfMap(service.spec.selector)
    const selected = podInformer.lister.list({ namespace, matches: ({ metadata }) => selector.matches(metadata.labels ?? {}) })
    const there = informer.store.byIndex(serviceIndex, key)
    const topologyMode = wantsTopologyHints(service) ? 'Auto' : 'Disabled'
    const wanted = new Map<AddressType, readonly WantedEndpoints[]>()
    for (const type of addressTypes(service)) {
      const groups = wantedEndpoints(service, selected, (name) => nodeInformer.store.get(name), type)
      wanted.set(type, topologyMode === 'Auto' ? withPresentHints(groups, there) : groups)
    }
    const newSlice = (addressType: AddressType): NewObject<EndpointSlice> => ({
      metadata: { namespace, generateName: `${service.metadata.name}-`, labels: sliceLabels(service), ownerReferences: [controllerReference(service)] },
      addressType,
      endpoints: [],
      ports: [],
    })
    const unhinted = planSlices(sliceLabels(service), wanted, there, newSlice, maxPerSlice)
    const { plan, events: topologyEvents } = hintPlan(topology, key, service, unhinted, there)
    for (const { type, reason, message } of topologyEvents) events.event(service, type, reason, message)
    sliceMetrics.planned(key, wanted, plan, there.length)
    const trigger = triggerTime(selected)
    const triggered = {
      ...plan,
      create: plan.create.map((slice) => withTrigger(slice, trigger)),
      update: plan.update.map((slice) => withTrigger(slice, trigger)),
    }
    await writeSlices(key, triggered, { client: client.of(endpointSlices), tracker, metrics: sliceMetrics }, signal)
    const changed = plan.create.length + plan.update.length + plan.remove.length
    distributionMetrics.synced(key, { topology: topologyMode, distribution: trafficDistribution(service) }, changed)
  }

  function nodesChanged(): void {
    topology.nodesChanged()
    reconciler.queue.add(nodesKey)
  }

  function queueOverloaded(): undefined {
    for (const key of topology.overloaded()) reconciler.queue.add(key)
  }
}

/** When the newest of the pods' readiness changed: what latency measurements start from. */
function triggerTime(selected: readonly Frozen<Pod>[]): string | undefined {
  let latest: string | undefined
  for (const pod of selected) {
    const time = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime
    if (time && isPodReady(pod) && (parseTime(time) ?? 0) > (parseTime(latest ?? '') ?? 0)) latest = time
  }
  return latest
}

function withTrigger<T extends NewObject<EndpointSlice> | Frozen<EndpointSlice>>(slice: T, trigger: string | undefined): T {
  if (trigger === undefined || semanticEqual(slice.metadata.annotations?.[triggerTimeAnnotation], trigger)) return slice
  return { ...slice, metadata: { ...slice.metadata, annotations: { ...slice.metadata.annotations, [triggerTimeAnnotation]: trigger } } }
}
