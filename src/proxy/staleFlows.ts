/**
 * Finds flows that conntrack would keep on a removed endpoint, or keep rejecting after the first endpoint appeared (L3), pure: UDP flows, as upstream, and TCP
 * connections that nothing has answered. The client repeats its SYN with the same ports, so that each repetition would go to the removed endpoint again, up to
 * two minutes long. Upstream: pkg/proxy/conntrack/cleanup.go, which leaves TCP alone and reads the whole table after each change. Here one change makes a
 * bounded number of filters: beyond it, wider ones, which also delete flows to endpoints that are left. Their clients get an endpoint again with the next packet.
 */
import { isIpv6 } from '#api/machinery/ip'
import type { ConntrackFilter } from '#host/conntrack'
import { type ProxyEndpoint, ruleKey, type ServiceRule } from './model.ts'

/** Each filter is one run of a program, which reads the kernel's table. */
export const maxFilters = 64

/** What to delete after a change of one family's rules. */
export function staleFlows(before: readonly ServiceRule[], now: readonly ServiceRule[]): ConntrackFilter[] {
  const ofIpv6 = [...before, ...now].some(({ clusterIp }) => isIpv6(clusterIp))
  return [...flowsToRemovedEndpoints(before, now, ofIpv6), ...flowsOfNewlyServed(before, now, ofIpv6), ...unansweredTcpFlows(before, now, ofIpv6)]
}

/** UDP flows. */
function flowsToRemovedEndpoints(before: readonly ServiceRule[], now: readonly ServiceRule[], ofIpv6: boolean): readonly ConntrackFilter[] {
  const current = new Map(now.map((rule) => [ruleKey(rule), rule]))
  const exact: ConntrackFilter[] = []
  const addresses = new Set<string>()
  for (const old of before.filter(isUdp)) {
    const kept = new Set(current.get(ruleKey(old))?.clusterEndpoints.map(placeOf))
    for (const endpoint of old.clusterEndpoints) {
      if (kept.has(placeOf(endpoint))) continue
      addresses.add(endpoint.ip)
      if (exact.length > maxFilters) continue
      for (const frontend of frontends(old)) exact.push({ ...frontend, dstNat: endpoint.ip, replyPortSrc: endpoint.port })
    }
  }
  return narrowest(
    exact,
    [...addresses].map((dstNat) => ({ protocol: 'udp', dstNat })),
    { protocol: 'udp', isIpv6: ofIpv6, dstNat: 'any' },
  )
}

/** UDP flows of Services that had no endpoint before. */
function flowsOfNewlyServed(before: readonly ServiceRule[], now: readonly ServiceRule[], ofIpv6: boolean): readonly ConntrackFilter[] {
  const earlier = new Map(before.map((rule) => [ruleKey(rule), rule]))
  const appeared = now.filter((rule) => isUdp(rule) && rule.clusterEndpoints.length > 0 && earlier.get(ruleKey(rule))?.clusterEndpoints.length === 0)
  const exact = appeared.flatMap(frontends)
  const ports = new Set(exact.map(({ origPortDst }) => origPortDst))
  return narrowest(
    exact,
    [...ports].map((origPortDst) => ({ protocol: 'udp', isIpv6: ofIpv6, origPortDst })),
    { protocol: 'udp', isIpv6: ofIpv6 },
  )
}

/** The filters that delete least and are not too many. */
function narrowest(exact: readonly ConntrackFilter[], wider: readonly ConntrackFilter[], widest: ConntrackFilter): readonly ConntrackFilter[] {
  return [exact, wider].find((filters) => filters.length <= maxFilters) ?? [widest]
}

const isUdp = ({ protocol }: ServiceRule) => protocol === 'udp'
const placeOf = ({ ip, port }: ProxyEndpoint) => `${ip} ${port}`

/** All flows that clients have to the Service's port, by each of its addresses and its node port. */
function frontends({ clusterIp, externalIps, port, nodePort }: ServiceRule): ConntrackFilter[] {
  const addresses = [clusterIp, ...externalIps].map((origDst) => ({ protocol: 'udp' as const, origDst, origPortDst: port }))
  const ofNodePort = { protocol: 'udp' as const, ...(isIpv6(clusterIp) ? { isIpv6: true } : {}), origPortDst: nodePort }
  return nodePort === undefined ? addresses : [...addresses, ofNodePort]
}

/** By the endpoint's address alone: it serves no Service any more. */
function unansweredTcpFlows(before: readonly ServiceRule[], now: readonly ServiceRule[], ofIpv6: boolean): readonly ConntrackFilter[] {
  const kept = tcpAddresses(now)
  const gone = [...tcpAddresses(before)].filter((ip) => !kept.has(ip))
  const unanswered = { protocol: 'tcp', state: 'SYN_SENT' } as const
  return gone.length <= maxFilters ? gone.map((dstNat) => ({ ...unanswered, dstNat })) : [{ ...unanswered, isIpv6: ofIpv6, dstNat: 'any' }]
}

function tcpAddresses(rules: readonly ServiceRule[]): ReadonlySet<string> {
  const ofTcp = rules.filter(({ protocol }) => protocol === 'tcp')
  return new Set(ofTcp.flatMap(({ clusterEndpoints, localEndpoints }) => [...clusterEndpoints, ...localEndpoints].map(({ ip }) => ip)))
}
