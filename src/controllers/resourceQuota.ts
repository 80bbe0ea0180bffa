/**
 * Keeps the status of ResourceQuotas (L3): counts the objects of the namespace when a quota is new or its limits change, when an object goes or uses
 * less, and every few minutes. Admission adds the usage of new objects to the status. Resources are watched as discovery shows them, custom ones too.
 * Upstream: pkg/controller/resourcequota (v1.36).
 */
import type { ResourceQuota } from '#api/gen/types/core.v1'
import { formatQuotaAmount, type QuotaAmounts, quotaAmount, quotaCovers, quotaNamesOf, quotaUsage } from '#api/helpers/quotaUsage'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type GroupResource, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { resourceQuotas } from '#client/builtIn'
import type { HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler, everyPeriod, type Result } from './framework/reconciler.ts'
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
/** After a count that came to less: admission may have charged an object that was not stored yet. */
const recountMs = 1_000

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
  reconciler.watch(informer, {
    onAdd: (quota) => reconciler.queue.add(keyOf(quota)),
    // Admission changes the status with each object that it charges.
    onUpdate: (old, quota) => {
      if (!semanticEqual(old.spec.hard, quota.spec.hard)) reconciler.queue.add(keyOf(quota))
    },
  })
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
        onUpdate: (old, object) => {
          // Most namespaces have no quota, and what an object uses takes a while to add up.
          if (quotasFor(resource, object.metadata.namespace).length === 0) return
          if (old.metadata.uid !== object.metadata.uid || usesLess(quotaUsage(resource, old), quotaUsage(resource, object))) enqueue(object)
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

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const quota = informer.store.get(key)
    if (!quota || quota.metadata.deletionTimestamp) return undefined
    const seen = [...monitors.values()].filter(({ informer: objects }) => tracks(quota, objects.resource))
    for (const { informer: objects } of seen) await objects.synced(signal)
    const counted = quotaUsed(
      quota,
      seen.map(({ informer: objects }) => ({ resource: objects.resource, objects: objects.lister.list({ namespace: quota.metadata.namespace }) })),
      clock.now(),
    )
    const hard = { ...quota.spec.hard }
    // Names that nothing served can use now keep what was counted before.
    const kept = Object.entries(quota.status?.used ?? {}).filter(([name]) => Object.hasOwn(hard, name))
    const used = { ...Object.fromEntries(kept), ...counted }
    if (isSame(quota, hard, used)) return undefined
    await client.updateStatus({ ...quota, status: { hard, used } } as Frozen<ResourceQuota>, { signal })
    return countsLess(quota, used) ? { requeueAfterMs: recountMs } : undefined
  }
}

/** Whether an update sets free something that quotas limit. */
function usesLess(before: QuotaAmounts, after: QuotaAmounts): boolean {
  return Object.entries(before).some(([name, amount]) => (after[name] ?? 0) < amount)
}

function countsLess({ status }: Frozen<ResourceQuota>, used: Readonly<Record<string, string>>): boolean {
  return Object.entries(status?.used ?? {}).some(([name, amount]) => quotaAmount(name, used[name] ?? '0') < quotaAmount(name, amount))
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
