/**
 * ResourceQuota (L3): refuses objects that would exceed a quota of their namespace. Usage is the sum of cached objects and of admitted ones that
 * are not in the cache yet, so concurrent requests cannot exceed it together.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota (v1.36), which counts in the quota's status; here that is the controller's alone.
 */
import type { Pod, ResourceQuota } from '#api/gen/types/core.v1'
import { isPodLevelResource } from '#api/helpers/podResources'
import { formatQuotaAmount, hasDeadline, isIgnoredByQuota, type QuotaAmounts, quotaAmount, quotaCovers, quotaUsage } from '#api/helpers/quotaUsage'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { greatest } from '#base/extremes'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { plainError, refuse } from '../attributes.ts'
import { type LimitedResource, uncovered } from '../limitedResources.ts'
import { createReservations, type QuotaReservations } from '../quotaReservations.ts'

type Pending = ReturnType<QuotaReservations['of']>

const quotas = { group: '', resource: 'resourcequotas' }

/** @param limitedResources resources that may be used only under a quota */
export function resourceQuota(reader: ObjectReader, clock: Clock, limitedResources: readonly LimitedResource[] = []): AdmissionPlugin {
  const reserved = createReservations(reader, clock)
  const usages = new WeakMap<object, QuotaAmounts>()
  const usageOf = (resource: GroupResource, object: Frozen<KubeObject>) => {
    // A terminating pod is not charged once its grace period is over, so its usage changes without a write.
    if (object.metadata.deletionTimestamp !== undefined) return quotaUsage(resource, object, clock.now())
    let usage = usages.get(object)
    if (!usage) {
      usage = quotaUsage(resource, object)
      // Only frozen objects cannot change, so only their usage is cached.
      if (Object.isFrozen(object)) usages.set(object, usage)
    }
    return usage
  }
  const used = ({ namespace, resource, ...rest }: AdmissionAttributes, quota: Frozen<ResourceQuota>, name: string, pending: Pending): number => {
    const except = nameOf(rest)
    const amountOf = (object: Frozen<KubeObject>) => (quotaCovers(quota, resource, object) ? (usageOf(resource, object)[name] ?? 0) : 0)
    const most = (pendingName: string, atLeast: number) => greatest((pending.get(pendingName) ?? []).map(amountOf), atLeast)
    const unseen = new Set(pending.keys()).add(except)
    let total = 0
    for (const object of reader.list(resource, namespace)) {
      const objectName = object.metadata.name ?? ''
      if (objectName !== except) total += most(objectName, amountOf(object))
      unseen.delete(objectName)
    }
    unseen.delete(except)
    for (const pendingName of unseen) total += most(pendingName, 0)
    return total
  }
  return {
    name: 'ResourceQuota',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate(attributes) {
      const { namespace, resource, object, dryRun, oldObject } = attributes
      if (namespace === '' || !object || !counts(attributes)) return
      const applying = reader.list<ResourceQuota>(quotas, namespace)
      if (applying.length === 0 && limitedResources.length === 0) return
      const usage = quotaUsage(resource, object)
      const old = attributes.operation === 'UPDATE' ? oldObject : undefined
      const before = old ? quotaUsage(resource, old) : {}
      const covering = applying.filter((quota) => quotaCovers(quota, resource, object))
      for (const { metadata, spec } of covering) {
        const missing = unspecified(resource, object, Object.entries(spec.hard ?? {}))
        if (missing) throw refuse(attributes, `failed quota: ${metadata.name}: must specify ${missing}`)
      }
      if (limitedResources.length > 0 && grows(usage, before)) requireQuotas(limitedResources, attributes, { usage, applying, covering })
      const pending = reserved.of(resource, namespace)
      let limited = false
      for (const quota of covering) {
        const counted = Object.entries(quota.spec.hard ?? {}).filter(([name]) => usage[name] !== undefined)
        // If the quota did not cover the old object, the full usage counts.
        const paid = old && quotaCovers(quota, resource, old) ? before : {}
        const growing = counted.filter(([name]) => (usage[name] ?? 0) > (paid[name] ?? 0))
        limited ||= growing.length > 0
        const over = growing
          .map(([name, limit]) => ({
            name,
            limit,
            asked: (usage[name] ?? 0) - (paid[name] ?? 0),
            used: used(attributes, quota, name, pending) + (paid[name] ?? 0),
          }))
          .filter(({ name, limit, asked, used: inUse }) => inUse + asked > quotaAmount(name, limit))
          .sort((a, b) => (a.name < b.name ? -1 : 1))
        if (over.length > 0) throw refuse(attributes, exceeded(quota.metadata.name ?? '', over))
      }
      if (limited && !dryRun) reserved.add(resource, namespace, nameOf(attributes), object, old)
    },
  }
}

function grows(usage: QuotaAmounts, before: QuotaAmounts): boolean {
  return Object.entries(usage).some(([name, amount]) => amount > (before[name] ?? 0))
}

interface Quotas {
  readonly usage: QuotaAmounts
  readonly applying: readonly Frozen<ResourceQuota>[]
  readonly covering: readonly Frozen<ResourceQuota>[]
}

/** @throws Status Forbidden; for scopes 500 without a reason, as upstream's */
function requireQuotas(limited: readonly LimitedResource[], attributes: AdmissionAttributes, { usage, applying, covering }: Quotas): void {
  if (!attributes.object) return
  const { names, scopes } = uncovered(limited, { resource: attributes.resource, object: attributes.object, usage }, applying, covering)
  if (names.length > 0) throw refuse(attributes, `insufficient quota to consume: ${names.join(',')}`)
  const shown = scopes.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(' ')}]}`)
  if (shown.length > 0) throw plainError(`insufficient quota to match these scopes: [${shown.join(' ')}]`)
}

function nameOf({ name, object }: Pick<AdmissionAttributes, 'name' | 'object'>): string {
  return name || object?.metadata.name || ''
}

/** Whether a write can change usage. For pods these are a resize and a new deadline, which changes the scope; subresources of other kinds use nothing. */
function counts({ resource, subresource, operation, object, oldObject }: AdmissionAttributes): boolean {
  if (isIgnoredByQuota(resource)) return false
  const isPod = resource.group === '' && resource.resource === 'pods'
  if (!isPod || operation === 'CREATE') return subresource === ''
  return subresource === 'resize' || (subresource === '' && hasDeadline(object as Frozen<Pod>) !== hasDeadline(oldObject as Frozen<Pod>))
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

/** Lists the values that a quota on compute resources requires and containers lack: `limits.cpu for: a,b; requests.memory for: a`. */
function unspecified({ group, resource }: GroupResource, object: Frozen<KubeObject>, hard: readonly (readonly [string, string])[]): string {
  if (group !== '' || resource !== 'pods') return ''
  const { spec } = object as Frozen<Pod>
  // Pod-level resources cover all containers.
  if ([spec.resources?.requests, spec.resources?.limits].some((amounts) => Object.keys(amounts ?? {}).some(isPodLevelResource))) return ''
  const missing: string[] = []
  for (const name of hard.map(([one]) => one).sort()) {
    const [, kind = 'requests', what = ''] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(name) ?? []
    if (what === '') continue
    const key = kind as 'requests' | 'limits'
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
