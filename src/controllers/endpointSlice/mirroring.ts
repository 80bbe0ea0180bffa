/**
 * Mirrors Endpoints that people write by hand, for services without a selector, into EndpointSlices (L3).
 * Upstream: pkg/controller/endpointslicemirroring (v1.36).
 */
import type { EndpointAddress, Endpoints } from '#api/gen/types/core.v1'
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { controllerReference } from '#api/helpers/owners'
import { ipFamily } from '#api/machinery/ip'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { exponentialBuckets, type Metrics } from '#base/metrics'
import { endpointSlices, endpoints, services } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, StaleCacheError } from '../framework/reconciler.ts'
import { isNamespaceTerminating } from '../shared/podControl.ts'
import { createWriteTracker } from '../shared/writeTracker.ts'
import { type AddressType, managedByLabel, planSlices, serviceNameLabel, type WantedEndpoints } from './plan.ts'
import { createSliceMetrics, perSyncBuckets } from './sliceMetrics.ts'
import { writeSlices } from './writeSlices.ts'

export interface MirroringOptions {
  readonly endpoints?: {
    /** Most endpoints of a subset that are mirrored. Default 1000. */
    readonly maxPerSubset?: number | undefined
    /** Changes of Endpoints are collected for this long before they are mirrored. Default 0. */
    readonly mirrorBatchMs?: number | undefined
  }
}

export const endpointSliceMirroring: ControllerDescriptor<MirroringOptions> = {
  name: 'endpointslice-mirroring-controller',
  aliases: ['endpointslicemirroring'],
  serviceAccount: 'endpointslicemirroring-controller',
  create: createMirroringController,
}

const subsystem = 'endpoint_slice_mirroring_controller'
const managedBy = 'endpointslicemirroring-controller.k8s.io'
const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror'
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader'
const defaultMaxPerSubset = 1000
const mirrorIndex = 'mirror'
const byMirrored = (slice: Frozen<EndpointSlice>): readonly string[] =>
  slice.metadata.labels?.[managedByLabel] === managedBy ? [`${slice.metadata.namespace}/${slice.metadata.labels[serviceNameLabel]}`] : []

function createMirroringController(context: ControllerContext, options: MirroringOptions) {
  const client = context.client.of(endpointSlices)
  const { maxPerSubset = defaultMaxPerSubset, mirrorBatchMs = 0 } = options.endpoints ?? {}
  const endpointsInformer = context.informers.of(endpoints)
  const serviceInformer = context.informers.of(services)
  const informer = context.informers.of(endpointSlices)
  informer.addIndexers({ [mirrorIndex]: byMirrored })
  const tracker = createWriteTracker()
  const sliceMetrics = createSliceMetrics(context.metrics, subsystem, maxPerSubset)
  const { updated, skipped, duration } = mirroringMetrics(context.metrics)
  const reconciler = createReconciler(context, {
    name: endpointSliceMirroring.name,
    queueName: 'endpoint_slice_mirroring',
    workers: 5,
    maxRetries: 15,
    async reconcile(key, signal) {
      const startedMs = context.clock.monotonicMs()
      await reconcile(key, signal).finally(() => duration.observe((context.clock.monotonicMs() - startedMs) / 1000))
    },
  })
  const gather = (source: Frozen<Endpoints>) => reconciler.queue.addAfter(keyOf(source), mirrorBatchMs)
  reconciler.watch(endpointsInformer, { onAdd: gather, onUpdate: (_, source) => gather(source), onDelete: gather })
  reconciler.watch(serviceInformer, enqueueSelf(reconciler.queue))
  reconciler.watch(informer, {
    onUpdate: (_, slice) => {
      for (const key of byMirrored(slice)) reconciler.queue.add(key)
    },
    onDelete: (slice) => {
      tracker.sawDelete(slice)
      for (const key of byMirrored(slice)) reconciler.queue.add(key)
    },
  })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<void> {
    if (!tracker.isCurrent(key, (slice) => informer.store.get(slice))) throw new StaleCacheError('EndpointSlice informer cache is out of date')
    const source = endpointsInformer.store.get(key)
    const service = serviceInformer.store.get(key)
    const mirrored = source && service && !service.spec.selector && shouldMirror(source)
    const there = informer.store.byIndex(mirrorIndex, key)
    const wanted = mirrored ? mirroredEndpoints(source, maxPerSubset) : new Map<AddressType, WantedEndpoints[]>()
    if (!mirrored) sliceMetrics.forget(key)
    if (there.length === 0 && wanted.size === 0) return
    const labels = { ...source?.metadata.labels, [serviceNameLabel]: source?.metadata.name ?? '', [managedByLabel]: managedBy }
    const newSlice = (addressType: AddressType): NewObject<EndpointSlice> => ({
      metadata: {
        namespace: source?.metadata.namespace,
        generateName: `${source?.metadata.name}-`,
        labels,
        ...(source ? { ownerReferences: [controllerReference(source)] } : {}),
      },
      addressType,
      endpoints: [],
      ports: [],
    })
    const plan = planSlices(labels, wanted, there, newSlice, maxPerSubset)
    if (mirrored) {
      sliceMetrics.planned(key, wanted, plan, there.length)
      updated.observe(plan.endpoints.updated)
      skipped.observe(addressCount(source) - plan.endpoints.wanted)
    }
    try {
      await writeSlices(key, plan, { client, tracker, metrics: sliceMetrics }, signal)
    } catch (error) {
      if (!isStatus(error, 'NotFound') && !isNamespaceTerminating(error)) throw error
    }
  }
}

function mirroringMetrics(metrics: Metrics) {
  const perSync = (name: string, help: string, buckets = perSyncBuckets) =>
    metrics.histogram({ name: `${subsystem}_${name}`, help: `${help} in one sync of an Endpoints object.`, buckets })
  return {
    updated: perSync('endpoints_updated_per_sync', 'Endpoints that were changed'),
    skipped: perSync('addresses_skipped_per_sync', 'Addresses beyond the most that are mirrored'),
    duration: perSync('endpoints_sync_duration', 'Seconds spent', exponentialBuckets(0.001, 2, 15)),
  }
}

function shouldMirror({ metadata }: Frozen<Endpoints>): boolean {
  return metadata.labels?.[skipMirrorLabel] !== 'true' && metadata.annotations?.[leaderAnnotation] === undefined
}

const addressCount = ({ subsets = [] }: Frozen<Endpoints>) =>
  subsets.reduce((sum, { addresses = [], notReadyAddresses = [] }) => sum + addresses.length + notReadyAddresses.length, 0)

/** The subsets by address family; ports stay with the subset they came from. */
function mirroredEndpoints(source: Frozen<Endpoints>, maxPerSubset: number): Map<AddressType, WantedEndpoints[]> {
  const wanted = new Map<AddressType, WantedEndpoints[]>()
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of source.subsets ?? []) {
    const slicePorts = ports.map((port) => ({ ...port, name: port.name ?? '', protocol: port.protocol ?? 'TCP' }))
    const all = [...addresses.map((address) => endpointOf(address, true)), ...notReadyAddresses.map((address) => endpointOf(address, false))]
    for (const type of ['IPv4', 'IPv6'] as const) {
      const ofFamily = all.filter(({ addresses: [ip = ''] }) => (ipFamily(ip) === 6) === (type === 'IPv6')).slice(0, maxPerSubset)
      if (ofFamily.length > 0) wanted.set(type, [...(wanted.get(type) ?? []), { ports: slicePorts, endpoints: ofFamily }])
    }
  }
  return wanted
}

function endpointOf({ ip, hostname, nodeName, targetRef }: Frozen<EndpointAddress>, ready: boolean): Endpoint {
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname ? { hostname } : {}),
    ...(nodeName ? { nodeName } : {}),
    ...(targetRef ? { targetRef: { ...targetRef } } : {}),
  }
}
