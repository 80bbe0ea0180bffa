/** Addresses and ranges as texts (L3), pure. */
import { cidrContains, parseCidr, parseIp } from '#api/machinery/ip'

export function isWithin(ranges: readonly string[], address: string): boolean {
  const ip = parseIp(address)
  return ranges.some((range) => {
    const block = parseCidr(range)
    return ip !== undefined && block !== undefined && cidrContains(block, ip)
  })
}
