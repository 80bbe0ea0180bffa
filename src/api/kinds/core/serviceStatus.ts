/** What load balancers may say about a service, and what its author is warned about (L1). Upstream: ValidateLoadBalancerStatus, pkg/api/service/warnings.go (v1.36). */
import type { Service } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { invalidIpMessage, ipFamily } from '#api/machinery/ip'
import { isDns1123Subdomain } from '#api/machinery/names'
import { faults } from '../rules.ts'

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

/** A headless service has no address for others to reach it by. */
export function serviceWarnings({ spec }: Service): string[] {
  if (spec.clusterIP !== 'None') return []
  return [
    ...(spec.loadBalancerIP ? ['spec.loadBalancerIP is ignored for headless services'] : []),
    ...(spec.externalIPs?.length ? ['spec.externalIPs is ignored for headless services'] : []),
    ...(spec.sessionAffinity !== 'None' ? ['spec.SessionAffinity is ignored for headless services'] : []),
  ]
}
