/**
 * The address families of a service (L3, pure), from the client's request, the service's addresses and the cluster's ranges.
 * Upstream: pkg/registry/core/service/storage/alloc.go initIPFamilyFields, trimFieldsForDualStackDowngrade (v1.36).
 */
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { familyOf, type IpFamily } from './ipRange.ts'

const path = FieldPath.of('spec')

/** Fills in spec.ipFamilies and spec.ipFamilyPolicy. `configured` are the cluster's families, the default one first. */
export function initFamilies(service: Service, old: Frozen<Service> | undefined, configured: readonly IpFamily[]): FieldError[] {
  const { spec } = service
  if (spec.type === 'ExternalName' || keepsPreference(spec, old?.spec)) return []
  trimDowngrade(spec, old?.spec)
  const single = singleStackFaults(spec)
  if (single.length > 0) return single
  const ips = (spec.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '')
  const families = [...(spec.ipFamilies ?? [])] as IpFamily[]
  for (const ip of ips.slice(families.length)) families.push(familyOf(ip))
  if (isHeadlessWithoutSelector(spec)) {
    spec.ipFamilyPolicy ??= 'RequireDualStack'
    setFamilies(spec, families, configured, true)
    return []
  }
  const errors: FieldError[] = []
  if (spec.ipFamilyPolicy === 'RequireDualStack' && configured.length < 2)
    errors.push(fieldError.invalid(path.child('ipFamilyPolicy'), spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'))
  for (const [i, family] of families.entries())
    if (!configured.includes(family)) errors.push(fieldError.invalid(path.child('ipFamilies').index(i), family, 'not configured on this cluster'))
  if (errors.length > 0) return errors
  spec.ipFamilyPolicy ??= ips.length === 2 || families.length === 2 ? 'RequireDualStack' : 'SingleStack'
  setFamilies(spec, families, configured, configured.length === 2)
  return []
}

function setFamilies(spec: ServiceSpec, families: IpFamily[], configured: readonly IpFamily[], both: boolean): void {
  const [first = configured[0] ?? 'IPv4', second] = families
  const other = first === 'IPv4' ? 'IPv6' : 'IPv4'
  spec.ipFamilies = second || (both && spec.ipFamilyPolicy !== 'SingleStack') ? [first, second ?? other] : [first]
}

function isHeadlessWithoutSelector(spec: ServiceSpec): boolean {
  return spec.clusterIPs?.[0] === 'None' && Object.keys(spec.selector ?? {}).length === 0
}

/** A service that prefers two families is not changed by a cluster that gained or lost one. */
function keepsPreference(spec: ServiceSpec, old: Frozen<ServiceSpec> | undefined): boolean {
  if (!old || spec.ipFamilyPolicy !== 'PreferDualStack' || old.ipFamilyPolicy !== 'PreferDualStack') return false
  return same(spec.clusterIPs, old.clusterIPs) && same(spec.ipFamilies, old.ipFamilies)
}

/** A request for a single family that repeats both earlier families keeps only the first. */
function trimDowngrade(spec: ServiceSpec, old: Frozen<ServiceSpec> | undefined): void {
  if (!old || old.ipFamilyPolicy === 'SingleStack' || spec.ipFamilyPolicy !== 'SingleStack') return
  if (old.clusterIPs?.length === 2 && same(spec.clusterIPs, old.clusterIPs)) spec.clusterIPs = old.clusterIPs.slice(0, 1)
  if (old.ipFamilies?.length === 2 && same(spec.ipFamilies, old.ipFamilies)) spec.ipFamilies = old.ipFamilies.slice(0, 1)
}

function singleStackFaults(spec: ServiceSpec): FieldError[] {
  if (spec.ipFamilyPolicy !== 'SingleStack') return []
  const why = (field: string) => `must be RequireDualStack or PreferDualStack when multiple ${field} are specified`
  return (['clusterIPs', 'ipFamilies'] as const).flatMap((field) =>
    spec[field]?.length === 2 ? [fieldError.invalid(path.child('ipFamilyPolicy'), spec.ipFamilyPolicy, why(field))] : [],
  )
}

function same(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  return (a ?? []).join() === (b ?? []).join()
}
