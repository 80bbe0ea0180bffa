/** Answers for names with fixed addresses (L3). Upstream: CoreDNS plugin/hosts, with the lines in the Corefile. */
import net from 'node:net'
import { formatIp, parseIp } from '#api/machinery/ip'
import { addressOfReverseName } from '../clusterRecords.ts'
import type { DnsRecord } from '../message.ts'
import { type DnsPlugin, isInZone, serverFailure } from './plugin.ts'

export interface HostsOptions {
  /** Address and names of each line. */
  readonly entries: readonly { readonly address: string; readonly names: readonly string[] }[]
  readonly zones: readonly string[]
  /** Zones whose other names the next plugin answers. */
  readonly fallthrough: readonly string[]
  readonly ttl: number
  readonly hasReverse: boolean
}

export function createHostsPlugin({ entries, zones, fallthrough, ttl, hasReverse }: HostsOptions): DnsPlugin {
  const addresses = new Map<string, string[]>()
  const names = new Map<string, string[]>()
  const add = (map: Map<string, string[]>, key: string, value: string) => void map.set(key, [...(map.get(key) ?? []), value])
  for (const { address, names: ofLine } of entries) {
    const ip = parseIp(address)
    if (!ip) continue
    for (const name of ofLine) add(addresses, name.toLowerCase(), formatIp(ip))
    const [first] = ofLine
    if (hasReverse && first !== undefined) add(names, formatIp(ip), first)
  }
  const recordsOf = (name: string, nameAsAsked: string, type: string): DnsRecord[] | undefined => {
    const ip = addressOfReverseName(name)
    if (ip !== undefined) {
      const found = names.get(ip)
      return found && (type === 'PTR' ? found.map((target) => ({ name: nameAsAsked, ttl, type: 'PTR', target })) : [])
    }
    const family = type === 'A' ? 4 : type === 'AAAA' ? 6 : 0
    return addresses.get(name)?.flatMap((address) => (net.isIP(address) === family ? [{ name: nameAsAsked, ttl, type: type as 'A', address }] : []))
  }
  return {
    name: 'hosts',
    resolve: ({ name, nameAsAsked, type }) => {
      if (!zones.some((zone) => isInZone(name, zone))) return undefined
      const answers = recordsOf(name, nameAsAsked, type)
      if (answers) return { code: 'NOERROR', authoritative: true, answers }
      return fallthrough.some((zone) => isInZone(name, zone)) ? undefined : serverFailure
    },
  }
}
