/** Addresses of an API as kubeadm's files and flags give them (L4, pure): HOST or HOST:PORT, IPv6 addresses in brackets before a port. */
import { isIP } from 'node:net'
import { isLinkLocalMulticast, isLoopback, isUnspecified, parseIp } from '#api/machinery/ip'

export interface Endpoint {
  readonly host: string
  readonly port?: number
}

const hostName = /^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$/

/** Undefined for a text that is none. */
export function parseEndpoint(text: string): Endpoint | undefined {
  if (isIP(text)) return { host: text }
  const [, inBrackets, plain, digits] = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = inBrackets ?? plain
  const port = Number(digits)
  if (host === undefined || !(inBrackets === undefined ? isIP(host) !== 0 || hostName.test(host) : isIP(host) === 6)) return undefined
  if (digits === undefined) return { host }
  return port >= 1 && port <= 65_535 ? { host, port } : undefined
}

export function isEndpoint(text: string): boolean {
  return parseEndpoint(text) !== undefined
}

/** @throws Error for a text that isEndpoint() refuses */
export function splitEndpoint(text: string): Endpoint {
  const found = parseEndpoint(text)
  if (!found) throw new Error(`${text} is not HOST or HOST:PORT`)
  return found
}

export function joinEndpoint({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
}

/** An address that another machine can connect to: neither loopback nor unspecified. */
export function isAdvertisable(text: string): boolean {
  const address = parseIp(text)
  return address !== undefined && ![isLoopback, isUnspecified, isLinkLocalMulticast].some((is) => is(address))
}
