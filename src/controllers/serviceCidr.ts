/**
 * Keeps ServiceCIDRs (L3): marks them ready, and lets one go only when no address in use needs it any more.
 * Upstream: pkg/controller/servicecidrs (v1.36).
 */
import type { IPAddress, ServiceCIDR } from '#api/gen/types/networking.v1'
import { findCondition } from '#api/machinery/conditions'
import { cidrContains, type IpBlock, networkAddress, parseCidr, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { formatTime, parseTime } from '#base/time'
import { ipAddresses, serviceCIDRs } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf } from './framework/reconciler.ts'

const finalizer = 'networking.k8s.io/service-cidr-finalizer'
const fieldManager = 'service-cidrs-controller'
/** Allocators may not have seen the deletion yet: an address could still be taken. */
const deletionGraceMs = 10_000

export const serviceCidr: ControllerDescriptor = {
  name: 'service-cidr-controller',
  aliases: [],
  serviceAccount: 'service-cidrs-controller',
  create: createServiceCidrController,
}

function createServiceCidrController(context: ControllerContext) {
  const ranges = context.informers.of(serviceCIDRs)
  const addresses = context.informers.of(ipAddresses)
  const client = context.client.of(serviceCIDRs)
  const reconciler = createReconciler(context, {
    name: serviceCidr.name,
    queueName: 'ipaddresses',
    workers: 5,
    async reconcile(name, signal) {
      const range = ranges.lister.get({ name })
      if (!range) return undefined
      if (!range.metadata.deletionTimestamp) {
        await setFinalizers(range, [...others(range), finalizer], signal)
        await setReady(range, { status: 'True', reason: '', message: 'Kubernetes Service CIDR is ready' }, signal)
        return undefined
      }
      if (isNeeded(range, ranges.store.list(), addresses.store.list())) {
        const message = 'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR'
        await setReady(range, { status: 'False', reason: 'Terminating', message }, signal)
        return undefined
      }
      const waitMs = (parseTime(range.metadata.deletionTimestamp) ?? 0) + deletionGraceMs - context.clock.now()
      if (waitMs > 0) return { requeueAfterMs: waitMs }
      await setFinalizers(range, others(range), signal)
      return undefined
    },
  })

  async function setFinalizers(range: Frozen<ServiceCIDR>, finalizers: readonly string[], signal: AbortSignal): Promise<void> {
    const { name = '', resourceVersion, finalizers: before = [] } = range.metadata
    if (finalizers.length === before.length) return
    await client.patch({ name }, 'merge', { metadata: { finalizers, resourceVersion } }, { fieldManager, signal })
  }

  async function setReady(range: Frozen<ServiceCIDR>, wanted: { status: string; reason: string; message: string }, signal: AbortSignal): Promise<void> {
    const { name = '' } = range.metadata
    const ready = findCondition(range.status?.conditions, 'Ready')
    if (ready?.status === wanted.status && ready.reason === wanted.reason) return
    const condition = { type: 'Ready', ...wanted, lastTransitionTime: formatTime(context.clock.now()) }
    const body = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, status: { conditions: [condition] } }
    await client.patch({ name }, 'apply', body, { subresource: 'status', fieldManager, force: true, signal })
  }

  reconciler.watch(ranges, {
    ...enqueueSelf(reconciler.queue),
    // A new range may take over what keeps an old one.
    onAdd: () => enqueueAll(),
  })
  reconciler.watch(addresses, {
    onAdd: () => undefined,
    onUpdate: () => undefined,
    onDelete: () => enqueueAll((range) => Boolean(range.metadata.deletionTimestamp)),
  })
  function enqueueAll(matters: (range: Frozen<ServiceCIDR>) => boolean = () => true): void {
    for (const range of ranges.store.list()) if (matters(range)) reconciler.queue.add(range.metadata.name ?? '')
  }
  return reconciler
}

function others(range: Frozen<ServiceCIDR>): string[] {
  return (range.metadata.finalizers ?? []).filter((one) => one !== finalizer)
}

/** Whether some address is in this range and in no other that stays. */
export function isNeeded(range: Frozen<ServiceCIDR>, all: readonly Frozen<ServiceCIDR>[], addresses: readonly Frozen<IPAddress>[]): boolean {
  const staying = all.filter((other) => other.metadata.name !== range.metadata.name && !other.metadata.deletionTimestamp).flatMap(blocksOf)
  const lost = blocksOf(range).filter((block) => !staying.some((other) => encloses(other, block)))
  if (lost.length === 0) return false
  return addresses.some(({ metadata }) => {
    const ip = parseIp(metadata.name ?? '')
    return ip !== undefined && lost.some((block) => cidrContains(block, ip)) && !staying.some((block) => cidrContains(block, ip))
  })
}

function blocksOf({ spec }: Frozen<ServiceCIDR>): IpBlock[] {
  return (spec?.cidrs ?? []).flatMap((cidr) => parseCidr(cidr) ?? [])
}

function encloses(outer: IpBlock, inner: IpBlock): boolean {
  return outer.prefixLength <= inner.prefixLength && cidrContains(outer, networkAddress(inner))
}
