/**
 * ResourceQuota (L3): refuses what would use more of a namespace than its quotas allow. Usage is what the caches hold plus what was admitted
 * and has not arrived there yet, so requests side by side cannot pass together.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota (v1.36), which counts in the quota's status; here that is the controller's alone.
 */
import type { Pod, ResourceQuota } from '#api/gen/types/core.v1'
import { formatQuotaAmount, type QuotaAmounts, quotaAmount, quotaCovers, quotaUsage } from '#api/helpers/quotaUsage'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { refuse } from '../attributes.ts'
import { type LimitedResource, uncovered } from '../limitedResources.ts'

/** Admitted and on its way into the store. A write that fails after admission leaves its reservation to expire. */
interface Reservation {
  readonly object: Frozen<KubeObject>
  readonly expiresMs: number
}

const reservationMs = 5_000
const quotas = { group: '', resource: 'resourcequotas' }

/** `limitedResources`: what nobody may use without a quota for it. */
export function resourceQuota(reader: ObjectReader, clock: Clock, limitedResources: readonly LimitedResource[] = []): AdmissionPlugin {
  const reserved = createReservations(reader, clock)
  const usages = new WeakMap<object, QuotaAmounts>()
  const usageOf = (resource: GroupResource, object: Frozen<KubeObject>) => {
    let usage = usages.get(object)
    if (!usage) {
      usage = quotaUsage(resource, object)
      // Only frozen objects stay what they are.
      if (Object.isFrozen(object)) usages.set(object, usage)
    }
    return usage
  }
  const used = (quota: Frozen<ResourceQuota>, resource: GroupResource, namespace: string, except: string, name: string): number => {
    let total = 0
    const add = (object: Frozen<KubeObject>) => {
      if (object.metadata.name !== except && quotaCovers(quota, resource, object)) total += usageOf(resource, object)[name] ?? 0
    }
    for (const object of reader.list(resource, namespace)) add(object)
    for (const object of reserved.of(resource, namespace)) add(object)
    return total
  }
  return {
    name: 'ResourceQuota',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate(attributes) {
      const { namespace, resource, object, dryRun, operation } = attributes
      if (namespace === '' || !object || !counts(attributes)) return
      const applying = reader.list<ResourceQuota>(quotas, namespace)
      if (applying.length === 0 && limitedResources.length === 0) return
      const usage = quotaUsage(resource, object)
      const before = operation === 'UPDATE' && attributes.oldObject ? quotaUsage(resource, attributes.oldObject) : {}
      const covering = applying.filter((quota) => quotaCovers(quota, resource, object))
      for (const { metadata, spec } of covering) {
        const missing = operation === 'CREATE' ? unspecified(resource, object, Object.entries(spec.hard ?? {})) : ''
        if (missing) throw refuse(attributes, `failed quota: ${metadata.name}: must specify ${missing}`)
      }
      if (limitedResources.length > 0) requireQuotas(limitedResources, attributes, { usage: grown(usage, before), applying, covering })
      let limited = false
      for (const quota of covering) {
        const hard = Object.entries(quota.spec.hard ?? {})
        limited ||= hard.some(([name]) => usage[name] !== undefined)
        const over = hard
          .filter(([name]) => (usage[name] ?? 0) > (before[name] ?? 0))
          .map(([name, limit]) => ({
            name,
            limit,
            asked: (usage[name] ?? 0) - (before[name] ?? 0),
            used: used(quota, resource, namespace, nameOf(attributes), name) + (before[name] ?? 0),
          }))
          .filter(({ name, limit, asked, used: inUse }) => inUse + asked > quotaAmount(name, limit))
          .sort((a, b) => (a.name < b.name ? -1 : 1))
        if (over.length > 0) throw refuse(attributes, exceeded(quota.metadata.name ?? '', over))
      }
      if (limited && !dryRun && operation === 'CREATE') reserved.add(resource, namespace, nameOf(attributes), object)
    },
  }
}

/** What is used more than before. */
function grown(usage: QuotaAmounts, before: QuotaAmounts): QuotaAmounts {
  const amounts = Object.entries(usage).map(([name, amount]): [string, number] => [name, amount - (before[name] ?? 0)])
  return Object.fromEntries(amounts.filter(([, amount]) => amount > 0))
}

interface Quotas {
  readonly usage: QuotaAmounts
  readonly applying: readonly Frozen<ResourceQuota>[]
  readonly covering: readonly Frozen<ResourceQuota>[]
}

/** @throws Status Forbidden; for scopes 500 without a reason, as upstream's */
function requireQuotas(limited: readonly LimitedResource[], attributes: AdmissionAttributes, { usage, applying, covering }: Quotas): void {
  if (Object.keys(usage).length === 0 || !attributes.object) return
  const { names, scopes } = uncovered(limited, { resource: attributes.resource, object: attributes.object, usage }, applying, covering)
  if (names.length > 0) throw refuse(attributes, `insufficient quota to consume: ${names.join(',')}`)
  const shown = scopes.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(' ')}]}`)
  if (shown.length > 0) throw new StatusError('', `insufficient quota to match these scopes: [${shown.join(' ')}]`, { code: 500 })
}

function nameOf({ name, object }: AdmissionAttributes): string {
  return name || object?.metadata.name || ''
}

/** Subresources use nothing, except a resize. */
function counts({ resource, subresource }: AdmissionAttributes): boolean {
  return subresource === '' || (subresource === 'resize' && resource.group === '' && resource.resource === 'pods')
}

interface Over {
  readonly name: string
  readonly limit: string
  readonly asked: number
  readonly used: number
}

function exceeded(quota: string, over: readonly Over[]): string {
  const list = (value: (one: Over) => string) => over.map((one) => `${one.name}=${value(one)}`).join(',')
  const amount = (of: 'asked' | 'used') => list((one) => formatQuotaAmount(one.name, one[of]))
  return `exceeded quota: ${quota}, requested: ${amount('asked')}, used: ${amount('used')}, limited: ${list((one) => one.limit)}`
}

/** A quota on compute resources needs every container to say what it takes: `limits.cpu for: a,b; requests.memory for: a`. */
function unspecified({ group, resource }: GroupResource, object: Frozen<KubeObject>, hard: readonly (readonly [string, string])[]): string {
  if (group !== '' || resource !== 'pods') return ''
  const { spec } = object as Frozen<Pod>
  const missing: string[] = []
  for (const name of hard.map(([one]) => one).sort()) {
    const [, kind = 'requests', what = ''] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(name) ?? []
    if (what === '') continue
    const key = kind as 'requests' | 'limits'
    // A pod may say it once for all its containers.
    if (spec.resources?.[key]?.[what] !== undefined) continue
    const silent = [...spec.containers, ...(spec.initContainers ?? [])].filter((container) => container.resources?.[key]?.[what] === undefined)
    if (silent.length > 0)
      missing.push(
        `${name} for: ${silent
          .map((container) => container.name)
          .sort()
          .join(',')}`,
      )
  }
  return missing.join('; ')
}

function createReservations(reader: ObjectReader, clock: Clock) {
  const all = new Map<string, Map<string, Reservation>>()
  const followed = new Set<string>()
  const keyOf = ({ group, resource }: GroupResource, namespace: string) => `${group}/${resource}/${namespace}`
  const follow = (resource: GroupResource) => {
    const key = `${resource.group}/${resource.resource}`
    if (followed.has(key)) return
    followed.add(key)
    reader.onChange(resource, ({ type, object: { metadata } }) => {
      // What goes is another one, whose name this one will have.
      if (type !== 'DELETED') all.get(keyOf(resource, metadata.namespace ?? ''))?.delete(metadata.name ?? '')
    })
  }
  return {
    add(resource: GroupResource, namespace: string, name: string, object: Frozen<KubeObject>) {
      follow(resource)
      const key = keyOf(resource, namespace)
      const here = all.get(key) ?? new Map<string, Reservation>()
      all.set(key, here.set(name, { object, expiresMs: clock.monotonicMs() + reservationMs }))
    },
    *of(resource: GroupResource, namespace: string) {
      const here = all.get(keyOf(resource, namespace))
      for (const [name, { object, expiresMs }] of here ?? []) {
        if (expiresMs < clock.monotonicMs()) here?.delete(name)
        else yield object
      }
    },
  }
}
