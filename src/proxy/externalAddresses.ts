/**
 * Decides which external addresses a proxy serves (L3), pure. The owner of a Service chooses its external addresses, so they never override addresses that the
 * cluster allocated: cluster IPs win, addresses of the service ranges are ignored, and if two Services claim one address and port, a load balancer's address
 * wins over an external IP, then the older Service wins. Upstream: pkg/proxy has no such order; CVE-2020-8554 describes the remaining risk, which the admission
 * plugin DenyServiceExternalIPs removes.
 */
import type { Service } from '#api/gen/types/core.v1'
import { cidrContains, formatIp, isIpv6, isLinkLocalMulticast, isLinkLocalUnicast, isLoopback, isUnspecified, parseCidr, parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'

export interface ExternalAddresses {
  readonly externalIps: readonly string[]
  readonly loadBalancerIps: readonly string[]
}

export interface IgnoredAddress {
  /** The field of the Service: `spec.externalIPs` or `status.loadBalancer.ingress`. */
  readonly field: string
  readonly ip: string
  readonly reason: string
}

/** Returns the reason why an external address is not served; undefined: it is served. */
export type AddressRule = (ip: string) => string | undefined

/** @param ranges the CIDRs of cluster IPs */
export function addressRule(services: readonly Frozen<Service>[], ranges: readonly string[]): AddressRule {
  const clusterIps = new Set(services.flatMap(({ spec }) => [spec.clusterIP, ...(spec.clusterIPs ?? [])]).flatMap((ip) => canonical(ip ?? '') ?? []))
  const blocks = ranges.flatMap((range) => parseCidr(range) ?? [])
  return (text) => {
    const ip = parseIp(text)
    if (!ip) return 'is no IP address'
    if (clusterIps.has(formatIp(ip))) return 'is the cluster IP of a Service'
    if (blocks.some((block) => cidrContains(block, ip))) return 'is in a range that cluster IPs come from'
    const isSpecial = isLoopback(ip) || isUnspecified(ip) || isLinkLocalUnicast(ip) || isLinkLocalMulticast(ip)
    return isSpecial ? 'is a loopback, link-local or unspecified address' : undefined
  }
}

/** The external addresses of a Service that are served, in the family. */
export function externalAddresses(service: Frozen<Service>, rule: AddressRule, ofIpv6: boolean): ExternalAddresses {
  const usable = (ips: readonly string[]) => [...new Set(ips)].filter((ip) => isIpv6(ip) === ofIpv6 && rule(ip) === undefined)
  return { externalIps: usable(service.spec.externalIPs ?? []), loadBalancerIps: usable(ingressIps(service)) }
}

/** The external addresses of a Service that are not served. */
export function ignoredAddresses(service: Frozen<Service>, rule: AddressRule): IgnoredAddress[] {
  const ignored = (field: string, ips: readonly string[]) =>
    ips.flatMap((ip) => {
      const reason = rule(ip)
      return reason === undefined ? [] : [{ field, ip, reason }]
    })
  return [...ignored('spec.externalIPs', service.spec.externalIPs ?? []), ...ignored('status.loadBalancer.ingress', ingressIps(service))]
}

function ingressIps({ status }: Frozen<Service>): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode }) => (ip && ipMode !== 'Proxy' ? [ip] : []))
}

function canonical(text: string): string | undefined {
  const ip = parseIp(text)
  return ip && formatIp(ip)
}

interface Claim {
  readonly protocol: string
  readonly port: number
  readonly externalIps: readonly string[]
  readonly loadBalancerIps: readonly string[]
}

/** Gives each address and port to one rule. @param rules from the oldest Service to the newest */
export function withoutConflicts<T extends Claim>(rules: readonly T[]): T[] {
  const owners = new Map<string, T>()
  const claim = (rule: T, ips: readonly string[]) => {
    for (const ip of ips) {
      const key = `${ip} ${rule.protocol} ${rule.port}`
      if (!owners.has(key)) owners.set(key, rule)
    }
  }
  for (const rule of rules) claim(rule, rule.loadBalancerIps)
  for (const rule of rules) claim(rule, rule.externalIps)
  return rules.map((rule) => {
    const owned = (ip: string) => owners.get(`${ip} ${rule.protocol} ${rule.port}`) === rule
    if (rule.externalIps.every(owned)) return rule
    return { ...rule, externalIps: rule.externalIps.filter(owned), loadBalancerIps: rule.loadBalancerIps.filter(owned) }
  })
}
