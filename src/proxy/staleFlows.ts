/**
 * Finds UDP flows that conntrack would keep on a removed endpoint, or keep rejecting after the first endpoint appeared (L3), pure.
 * Upstream: pkg/proxy/conntrack/cleanup.go.
 */
import type { ConntrackFilter } from '#host/conntrack'
import { ruleKey, type ServiceRule } from './model.ts'

export function staleUdpFlows(before: readonly ServiceRule[], now: readonly ServiceRule[]): ConntrackFilter[] {
  const current = new Map(now.map((rule) => [ruleKey(rule), rule]))
  const flows: ConntrackFilter[] = []
  const earlier = new Map(before.map((rule) => [ruleKey(rule), rule]))
  for (const old of before) {
    if (old.protocol !== 'udp') continue
    const kept = new Set(current.get(ruleKey(old))?.clusterEndpoints.map((endpoint) => endpoint.ip))
    for (const { ip } of old.clusterEndpoints) {
      if (kept.has(ip)) continue
      for (const address of [old.clusterIp, ...old.externalIps]) flows.push({ protocol: 'udp', origDst: address, dstNat: ip })
      if (old.nodePort !== undefined) flows.push({ protocol: 'udp', origPortDst: old.nodePort, dstNat: ip })
    }
  }
  for (const rule of now) {
    const hadNone = earlier.get(ruleKey(rule))?.clusterEndpoints.length === 0
    if (rule.protocol === 'udp' && hadNone && rule.clusterEndpoints.length > 0) flows.push({ protocol: 'udp', origDst: rule.clusterIp })
  }
  return flows
}
