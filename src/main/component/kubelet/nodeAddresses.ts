/**
 * The addresses that a node gives as its own (L5): those of --node-ip, or that of the interface with the default route.
 * Upstream: component-helpers/node/util/ips.go, kubelet/nodestatus/setters.go (v1.36).
 */
import fs from 'node:fs/promises'
import { isIP } from 'node:net'
import os from 'node:os'
import { UsageError } from '../../apiserver/options/flags.ts'

const unspecified = new Set(['0.0.0.0', '::'])

export interface NodeAddresses {
  /** None: the machine's own, of this family before the other. */
  readonly addresses: readonly string[]
  readonly preferred: 'IPv4' | 'IPv6'
  /** What is no address, and is left out. */
  readonly invalid: readonly string[]
}

/** @throws UsageError for more than one address of a family, or a pair of which one is any address */
export function parseNodeIP(given: string): NodeAddresses {
  const texts = given.split(',').map((text) => text.trim())
  const addresses = texts.filter((text) => isIP(text) !== 0)
  const invalid = given === '' ? [] : texts.filter((text) => isIP(text) === 0)
  const refuse = (why: string) => new UsageError([`bad --node-ip "${given}": ${why}`])
  const [first = '', second] = addresses
  if (addresses.length > 2 || (second !== undefined && isIP(first) === isIP(second)))
    throw refuse('must contain either a single IP or a dual-stack pair of IPs')
  if (second !== undefined && addresses.some((address) => unspecified.has(address))) throw refuse(`dual-stack node IP cannot include '0.0.0.0' or '::'`)
  return { addresses: addresses.filter((address) => !unspecified.has(address)), preferred: first === '::' ? 'IPv6' : 'IPv4', invalid }
}

/** The address of the interface with the default route, if there is one. @throws UsageError for a machine without an address */
export async function defaultAddress(preferred: NodeAddresses['preferred']): Promise<string> {
  const routes = await fs.readFile('/proc/net/route', 'utf8').catch(() => '')
  const name = routes
    .split('\n')
    .map((line) => line.split('\t'))
    .find(([, destination]) => destination === '00000000')?.[0]
  const all = Object.entries(os.networkInterfaces()).flatMap(([device, addresses]) => (addresses ?? []).map((one) => ({ ...one, device })))
  const outside = all
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .sort((a, b) => Number(b.family === preferred) - Number(a.family === preferred))
  const [first] = outside
  const found = outside.find(({ device, family }) => device === name && family === first?.family) ?? first
  if (!found) throw new UsageError(['this machine has no address that others could reach: name one with --node-ip'])
  return found.address
}
