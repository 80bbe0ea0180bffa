/**
 * Keeps the status of ResourceQuotas (L3): counts what is there whenever something that a quota of its namespace limits comes, goes or changes, and
 * all of it now and then. Resources are watched as discovery shows them, custom ones too.
 * Upstream: pkg/controller/resourcequota (v1.36), which leaves counting up to admission; here admission only refuses.
 */
import type { ResourceQuota } from '#api/gen/types/core.v1'
import { formatQuotaAmount, quotaAmount, quotaCovers, quotaNamesOf, quotaUsage } from '#api/helpers/quotaUsage'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type GroupResource, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { resourceQuotas } from '#client/builtIn'
import type { HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, enqueueSelf, everyPeriod } from './framework/reconciler.ts'
import { createResourceDiscovery, type Discovered, followDiscovery } from './garbageCollector/resources.ts'

export interface ResourceQuotaOptions {
  /** Every quota is recalculated this often, also without a change. Default 5 min. */
  readonly resourceQuotaSyncPeriodMs?: number | undefined
}

export const resourceQuota: ControllerDescriptor<ResourceQuotaOptions> = {
  name: 'resourcequota-controller',
  aliases: ['resourcequota'],
  serviceAccount: 'resourcequota-controller',
  create: createResourceQuotaController,
}

const fullResyncMs = 5 * 60_000

interface Monitor {
  readonly informer: SharedInformer<KubeObject>
  readonly registration: HandlerRegistration
}

function createResourceQuotaController(context: ControllerContext, { resourceQuotaSyncPeriodMs = fullResyncMs }: ResourceQuotaOptions): Component {
  const { clock } = context
  const client = context.client.of(resourceQuotas)
  const informer = context.informers.of(resourceQuotas)
  const monitors = new Map<string, Monitor>()
  const discover = createResourceDiscovery(context.client)
  let discovered: Discovered | undefined
  const reconciler = createReconciler(context, { name: resourceQuota.name, queueName: 'resourcequota_primary', workers: 5, reconcile })
  reconciler.watch(informer, enqueueSelf(reconciler.queue))
  reconciler.also((signal) => everyPeriod(context, resourceQuota.name, resourceQuotaSyncPeriodMs, async () => enqueueAll(), signal))
  return {
    name: resourceQuota.name,
    async run(signal) {
      let working: Promise<void> | undefined
      const follow = async () => {
        await watchServed(signal)
        working ??= reconciler.run(signal)
      }
      await followDiscovery(context, resourceQuota.name, follow, signal)
      await working
      for (const { registration } of monitors.values()) registration.remove()
    },
  }

  function enqueueAll(): void {
    for (const quota of informer.store.list()) reconciler.queue.add(keyOf(quota))
  }

  async function watchServed(signal: AbortSignal): Promise<void> {
    const before = discovered
    discovered = await discover(signal)
    if (discovered === before) return
    const served = new Set<string>()
    for (const resource of discovered.watchable) {
      const key = `${resource.group}/${resource.resource}`
      if (!resource.namespaced) continue
      served.add(key)
      if (monitors.has(key)) continue
      const objects = context.informers.of(resource)
      const enqueue = (object: Frozen<KubeObject>) => enqueueQuotas(resource, object.metadata.namespace)
      const registration = objects.addHandler({
        onAdd: (object, initial) => {
          if (!initial) enqueue(object)
        },
        onUpdate: (old, object) => {
          // Most namespaces have no quota, and what an object uses takes a while to add up.
          if (quotasFor(resource, object.metadata.namespace).length === 0) return
          if (!semanticEqual(quotaUsage(resource, old), quotaUsage(resource, object)) || old.metadata.uid !== object.metadata.uid) enqueue(object)
        },
        onDelete: enqueue,
      })
      monitors.set(key, { informer: objects, registration })
      // Quotas that count what has just begun to be served.
      void objects
        .synced(signal)
        .then(() => enqueueTracking(resource))
        .catch(() => {})
    }
    for (const [key, { informer: objects, registration }] of monitors) {
      if (served.has(key)) continue
      registration.remove()
      context.informers.stopUnused(objects)
      monitors.delete(key)
    }
  }

  function quotasFor(resource: GroupResource, namespace: string | undefined): Frozen<ResourceQuota>[] {
    return informer.lister.list({ namespace }).filter((quota) => tracks(quota, resource))
  }

  function enqueueQuotas(resource: GroupResource, namespace: string | undefined): void {
    for (const quota of quotasFor(resource, namespace)) reconciler.queue.add(keyOf(quota))
  }

  function enqueueTracking(resource: GroupResource): void {
    for (const quota of informer.store.list()) if (tracks(quota, resource)) reconciler.queue.add(keyOf(quota))
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const quota = informer.store.get(key)
    if (!quota || quota.metadata.deletionTimestamp) return
    const seen = [...monitors.values()].filter(({ informer: objects }) => tracks(quota, objects.resource))
    for (const { informer: objects } of seen) await objects.synced(signal)
    const used = quotaUsed(
      quota,
      seen.map(({ informer: objects }) => ({ resource: objects.resource, objects: objects.lister.list({ namespace: quota.metadata.namespace }) })),
      clock.now(),
    )
    const status = { hard: { ...quota.spec.hard }, used }
    if (isSame(quota, status.hard, used)) return
    await client.updateStatus({ ...quota, status } as Frozen<ResourceQuota>, { signal })
  }
}

function tracks({ spec }: Frozen<ResourceQuota>, resource: GroupResource): boolean {
  return quotaNamesOf(resource, Object.keys(spec.hard ?? {})).length > 0
}

/** What the objects use of what the quota limits; names that nothing served can use are left out. */
export function quotaUsed(
  quota: Frozen<ResourceQuota>,
  all: readonly { readonly resource: GroupResource; readonly objects: readonly Frozen<KubeObject>[] }[],
  nowMs: number,
): Record<string, string> {
  const names = Object.keys(quota.spec.hard ?? {})
  const totals = new Map<string, number>()
  for (const { resource, objects } of all) {
    const tracked = quotaNamesOf(resource, names)
    for (const name of tracked) totals.set(name, totals.get(name) ?? 0)
    for (const object of objects) {
      if (!quotaCovers(quota, resource, object)) continue
      const usage = quotaUsage(resource, object, nowMs)
      for (const name of tracked) totals.set(name, (totals.get(name) ?? 0) + (usage[name] ?? 0))
    }
  }
  return Object.fromEntries([...totals].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, amount]) => [name, formatQuotaAmount(name, amount)]))
}

/** By amounts: 1000m is 1. */
function isSame({ status }: Frozen<ResourceQuota>, hard: Readonly<Record<string, string>>, used: Readonly<Record<string, string>>): boolean {
  const equal = (a: Readonly<Record<string, string>> | undefined, b: Readonly<Record<string, string>>) =>
    a !== undefined &&
    Object.keys(a).length === Object.keys(b).length &&
    Object.entries(b).every(([name, value]) => a[name] !== undefined && quotaAmount(name, a[name]) === quotaAmount(name, value))
  return equal(status?.hard, hard) && equal(status?.used, used)
}
