/** Validation of a Service's status, and warnings for its author (L1). Upstream: ValidateLoadBalancerStatus, pkg/api/service/warnings.go (v1.36). */
import type { Service } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { cidrWarnings, ipWarnings } from '#api/machinery/formats'
import { invalidIpMessage, ipFamily } from '#api/machinery/ip'
import { isDns1123Subdomain } from '#api/machinery/names'
import { faults } from '../rules.ts'

const hintsAnnotation = 'service.kubernetes.io/topology-aware-hints'

/** @param path of the list of ingress points */
export function validateServiceStatus({ spec, status }: Service, path: FieldPath): FieldError[] {
  const ingress = status.loadBalancer?.ingress ?? []
  if (spec.type !== 'LoadBalancer' && ingress.length > 0) return [fieldError.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
  return ingress.flatMap(({ ip, ipMode, hostname }, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (ip && ipFamily(ip) === undefined) errors.push(fieldError.invalid(at.child('ip'), ip, invalidIpMessage))
    if (ip && ipMode === undefined) errors.push(fieldError.required(at.child('ipMode'), 'must be specified when `ip` is set'))
    else if (!ip && ipMode !== undefined) errors.push(fieldError.forbidden(at.child('ipMode'), 'may not be specified when `ip` is not set'))
    else if (ipMode !== undefined && ipMode !== 'VIP' && ipMode !== 'Proxy') errors.push(fieldError.notSupported(at.child('ipMode'), ipMode, ['Proxy', 'VIP']))
    if (!hostname) return errors
    errors.push(...faults(at.child('hostname'), hostname, isDns1123Subdomain(hostname)))
    if (ipFamily(hostname) !== undefined) errors.push(fieldError.invalid(at.child('hostname'), hostname, 'must be a DNS name, not an IP address'))
    return errors
  })
}

/** Warnings about fields that are deprecated, have no effect, or have a form that other programs read differently. */
export function serviceWarnings({ metadata, spec }: Service, root: FieldPath): string[] {
  const path = root.child('spec')
  const { externalIPs = [], loadBalancerIP = '', loadBalancerSourceRanges = [], type } = spec
  const isHeadless = type === 'ClusterIP' && spec.clusterIP === 'None'
  const isExternalName = type === 'ExternalName'
  const warnings: string[] = []
  if (metadata.annotations?.[hintsAnnotation] !== undefined)
    warnings.push(`annotation ${hintsAnnotation} is deprecated, please use service.kubernetes.io/topology-mode instead`)
  if (spec.clusterIP && spec.clusterIP !== 'None')
    for (const [i, ip] of (spec.clusterIPs ?? []).entries()) warnings.push(...ipWarnings(ip, path.child('clusterIPs').index(i)))
  if (isHeadless) {
    if (loadBalancerIP) warnings.push('spec.loadBalancerIP is ignored for headless services')
    if (externalIPs.length > 0) warnings.push('spec.externalIPs is ignored for headless services')
    if (spec.sessionAffinity !== 'None') warnings.push('spec.SessionAffinity is ignored for headless services')
  }
  for (const [i, ip] of externalIPs.entries()) warnings.push(...ipWarnings(ip, path.child('externalIPs').index(i)))
  if (externalIPs.length > 0 && !isHeadless && !isExternalName)
    warnings.push('spec.externalIPs is deprecated and may no longer be implemented in some clusters')
  if (loadBalancerIP) warnings.push(...ipWarnings(loadBalancerIP, path.child('loadBalancerIP')))
  for (const [i, cidr] of loadBalancerSourceRanges.entries()) warnings.push(...cidrWarnings(cidr, path.child('loadBalancerSourceRanges').index(i)))
  if (isExternalName && externalIPs.length > 0) warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"')
  if (!isExternalName && spec.externalName) warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"')
  if (spec.trafficDistribution === 'PreferClose') warnings.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
  return warnings
}
