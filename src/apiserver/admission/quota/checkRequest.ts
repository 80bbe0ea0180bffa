/**
 * Checks one write against the quotas of its namespace (L3, pure).
 * Upstream: CheckRequest of apiserver/pkg/admission/plugin/resourcequota/controller.go (v1.36).
 */
import type { Pod, ResourceQuota } from '#api/gen/types/core.v1'
import { isPodLevelResource } from '#api/helpers/podResources'
import {
  formatQuotaAmount,
  hasDeadline,
  isIgnoredByQuota,
  type QuotaAmounts,
  quotaAmount,
  quotaCovers,
  quotaNamesOf,
  quotaUsage,
} from '#api/helpers/quotaUsage'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import type { AdmissionAttributes } from '../admission.ts'
import { plainError, refuse } from '../attributes.ts'
import { type LimitedResource, uncovered } from './limitedResources.ts'
import { RunningQuota } from './runningQuota.ts'

/** What a write adds to a quota. */
export interface Charge {
  readonly quota: RunningQuota
  readonly amounts: QuotaAmounts
}

/** Whether a write can change usage. Most kinds are only counted, which is a matter of their creation. */
export function changesUsage({ namespace, resource, subresource, operation, object, oldObject }: AdmissionAttributes): boolean {
  if (namespace === '' || !object || isIgnoredByQuota(resource)) return false
  if (operation === 'CREATE') return subresource === ''
  switch (`${resource.group}/${resource.resource}`) {
    case '/pods':
      // A new deadline changes the scope.
      return subresource === 'resize' || (subresource === '' && hasDeadline(object as Frozen<Pod>) !== hasDeadline(oldObject as Frozen<Pod>))
    case '/services':
    case 'resource.k8s.io/resourceclaims':
      return subresource === ''
    case '/persistentvolumeclaims':
      // The status has the storage that was given, and the attributes class on the way.
      return subresource === '' || subresource === 'status'
    default:
      return false
  }
}

/**
 * @param quotas of the namespace
 * @returns what to charge if the write is admitted; empty: nothing
 * @throws Status Forbidden; for scopes 500 without a reason, as upstream's
 */
export function checkRequest(attributes: AdmissionAttributes, quotas: readonly RunningQuota[], limited: readonly LimitedResource[]): readonly Charge[] {
  const { resource, object } = attributes
  if (!object) return []
  const covering: (Charge & { readonly names: readonly string[] })[] = []
  const usage = quotaUsage(resource, object)
  const before = previousUsage(attributes)
  for (const quota of quotas) {
    const names = quotaNamesOf(resource, quota.names)
    if (names.length === 0 || !quotaCovers(quota.object, resource, object)) continue
    const missing = unspecified(resource, object, names)
    if (missing) throw refuse(attributes, `failed quota: ${quota.name}: must specify ${missing}`)
    if (names.some((name) => quota.used(name) === undefined)) {
      throw refuse(attributes, `status unknown for quota: ${quota.name}, resources: ${[...names].sort().join(',')}`)
    }
    // If the quota did not cover the old object, the full usage counts.
    const paid = before && quotaCovers(quota.object, resource, before.object) ? before.usage : {}
    covering.push({ quota, names, amounts: growth(usage, paid) })
  }
  const grows = covering.length > 0 ? covering.some(({ amounts }) => !isEmpty(amounts)) : !isEmpty(growth(usage, before?.usage ?? {}))
  if (!grows) return []
  if (limited.length > 0) requireQuotas(attributes, usage, { limited, quotas, covering: covering.map(({ quota }) => quota) })
  return covering.flatMap(({ quota, names, amounts }) => {
    const asked = pick(amounts, names)
    if (isEmpty(asked)) return []
    refuseExcess(attributes, quota, asked)
    return [{ quota, amounts: asked }]
  })
}

/** Whether an update adds nothing to any quota and is not refused: other writes cannot change that. */
export function addsNothing(attributes: AdmissionAttributes, quotas: readonly Frozen<ResourceQuota>[], limited: readonly LimitedResource[]): boolean {
  if (attributes.operation !== 'UPDATE') return false
  try {
    const running = quotas.map((object) => new RunningQuota(object))
    return checkRequest(attributes, running, limited).length === 0
  } catch {
    // The refusal is decided when the write is in turn, with what the quotas then have.
    return false
  }
}

function previousUsage({
  operation,
  resource,
  oldObject,
}: AdmissionAttributes): { readonly object: Frozen<KubeObject>; readonly usage: QuotaAmounts } | undefined {
  if (operation !== 'UPDATE' || !oldObject) return undefined
  return { object: oldObject, usage: quotaUsage(resource, oldObject) }
}

function growth(usage: QuotaAmounts, paid: QuotaAmounts): QuotaAmounts {
  const more = Object.entries(usage).map(([name, amount]) => [name, amount - (paid[name] ?? 0)] as const)
  return Object.fromEntries(more.filter(([, amount]) => amount > 0))
}

function pick(amounts: QuotaAmounts, names: readonly string[]): QuotaAmounts {
  return Object.fromEntries(names.flatMap((name) => (amounts[name] === undefined ? [] : [[name, amounts[name]]])))
}

function isEmpty(amounts: QuotaAmounts): boolean {
  for (const _ in amounts) return false
  return true
}

interface Quotas {
  readonly limited: readonly LimitedResource[]
  readonly quotas: readonly RunningQuota[]
  readonly covering: readonly RunningQuota[]
}

function requireQuotas(attributes: AdmissionAttributes, usage: QuotaAmounts, { limited, quotas, covering }: Quotas): void {
  const { resource, object } = attributes
  if (!object) return
  const objects = (some: readonly RunningQuota[]) => some.map((quota) => quota.object)
  const { names, scopes } = uncovered(limited, { resource, object, usage }, objects(quotas), objects(covering))
  if (names.length > 0) throw refuse(attributes, `insufficient quota to consume: ${names.join(',')}`)
  const shown = scopes.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(' ')}]}`)
  if (shown.length > 0) throw plainError(`insufficient quota to match these scopes: [${shown.join(' ')}]`)
}

function refuseExcess(attributes: AdmissionAttributes, quota: RunningQuota, asked: QuotaAmounts): void {
  const over = Object.entries(asked)
    .map(([name, amount]) => ({ name, asked: amount, used: quota.used(name) ?? 0, limit: quota.hard(name) }))
    .filter((one) => one.used + one.asked > quotaAmount(one.name, one.limit))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  if (over.length > 0) throw refuse(attributes, exceeded(quota.name, over))
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
function unspecified({ group, resource }: GroupResource, object: Frozen<KubeObject>, names: readonly string[]): string {
  if (group !== '' || resource !== 'pods') return ''
  const { spec } = object as Frozen<Pod>
  // Pod-level resources cover all containers.
  if ([spec.resources?.requests, spec.resources?.limits].some((amounts) => Object.keys(amounts ?? {}).some(isPodLevelResource))) return ''
  const missing: string[] = []
  for (const name of [...names].sort()) {
    const [, kind = 'requests', what = ''] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(name) ?? []
    if (what === '') continue
    const key = kind as 'requests' | 'limits'
    const silent = [...spec.containers, ...(spec.initContainers ?? [])].filter((container) => container.resources?.[key]?.[what] === undefined)
    if (silent.length === 0) continue
    const containers = silent.map((container) => container.name).sort()
    missing.push(`${name} for: ${containers.join(',')}`)
  }
  return missing.join('; ')
}
