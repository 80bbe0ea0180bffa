/** Counts the dials in flight of a local cluster and refuses those beyond the limits (L5). There is no queue: a client may try again. */
import { formatIp, parseIp } from '#api/machinery/ip'
import { UnreachableAddress } from '#apiserver/backends/reach'

export interface DialCounter {
  /** @throws UnreachableAddress beyond a limit */
  add(address: string, user?: string): void
  remove(address: string, user?: string): void
}

export interface DialLimits {
  readonly ofServer: number
  readonly perAddress: number
  readonly perUser: number
}

export function createDialCounter({ ofServer, perAddress, perUser }: DialLimits): DialCounter {
  const byAddress = new Counts()
  const byUser = new Counts()
  let total = 0
  return {
    add(address, user) {
      const key = keyOf(address)
      if (byAddress.of(key) >= perAddress) throw refused(`${perAddress} connections to ${address}`)
      if (user !== undefined && byUser.of(user) >= perUser) throw refused(`${perUser} connections of this user`)
      if (total >= ofServer) throw refused(`${ofServer} connections into the cluster`)
      byAddress.add(key, 1)
      if (user !== undefined) byUser.add(user, 1)
      total++
    },
    remove(address, user) {
      byAddress.add(keyOf(address), -1)
      if (user !== undefined) byUser.add(user, -1)
      total--
    },
  }
}

function refused(what: string): UnreachableAddress {
  return new UnreachableAddress(`${what} are being made already: try again later`)
}

class Counts {
  readonly #counts = new Map<string, number>()

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: string, count: number): void {
    const sum = this.of(key) + count
    if (sum > 0) this.#counts.set(key, sum)
    else this.#counts.delete(key)
  }
}

/** One key for all spellings of an IPv6 address, and for an IPv4 address that is written as IPv6 (::ffff:10.0.0.1). */
function keyOf(address: string): string {
  const ip = parseIp(address)
  if (!ip) return address
  const isMapped = ip.family === 6 && ip.value >> 32n === 0xffffn
  return formatIp(isMapped ? { family: 4, value: ip.value & 0xffff_ffffn } : ip)
}
