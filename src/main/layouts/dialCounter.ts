/** Counts the dials in flight of a local cluster and refuses those beyond the limits (L5). There is no queue: a client may try again. */
import { formatIp, parseIp } from '#api/machinery/ip'
import { UnreachableAddress } from '#apiserver/backends/reach'

export interface DialCounter {
  /** @throws UnreachableAddress beyond a limit */
  add(address: string): void
  remove(address: string): void
}

export function createDialCounter({ ofServer, perAddress }: { readonly ofServer: number; readonly perAddress: number }): DialCounter {
  const counts = new Map<string, number>()
  let total = 0
  return {
    add(address) {
      const key = keyOf(address)
      const count = counts.get(key) ?? 0
      if (count >= perAddress) throw new UnreachableAddress(`${perAddress} connections to ${address} are being made already: try again later`)
      if (total >= ofServer) throw new UnreachableAddress(`${ofServer} connections into the cluster are being made already: try again later`)
      counts.set(key, count + 1)
      total++
    },
    remove(address) {
      const key = keyOf(address)
      const left = (counts.get(key) ?? 0) - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
      total--
    },
  }
}

/** One key for all spellings of an IPv6 address, and for an IPv4 address that is written as IPv6 (::ffff:10.0.0.1). */
function keyOf(address: string): string {
  const ip = parseIp(address)
  if (!ip) return address
  const isMapped = ip.family === 6 && ip.value >> 32n === 0xffffn
  return formatIp(isMapped ? { family: 4, value: ip.value & 0xffff_ffffn } : ip)
}
