/**
 * The addresses and ports at which this server itself listens (L3). Nothing is proxied there: a request would come back to this server with the
 * certificate that it shows to kubelets or extension servers, or would be proxied in a circle (CVE-2022-3294).
 */
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

interface Endpoint {
  readonly host: string
  readonly port: number
}

export class OwnEndpoints {
  readonly #listening = new Set<Endpoint>()
  readonly #advertised: () => { readonly address: string; readonly port: number } | undefined

  /** @param advertised where pods reach this server, if they do */
  constructor(advertised: () => { readonly address: string; readonly port: number } | undefined = () => undefined) {
    this.#advertised = advertised
  }

  /** @returns forgets the endpoint again */
  add({ host, port }: Endpoint): () => void {
    const endpoint = { host, port }
    this.#listening.add(endpoint)
    return () => this.#listening.delete(endpoint)
  }

  /** `host:port` of the newest; empty before the first. */
  get newest(): string {
    const endpoint = [...this.#listening].at(-1)
    return endpoint ? `${endpoint.host}:${endpoint.port}` : ''
  }

  /** @param address an IP address */
  has(address: string, port: number): boolean {
    const advertised = this.#advertised()
    const endpoints = [...this.#listening, ...(advertised ? [{ host: advertised.address, port: advertised.port }] : [])].filter((one) => one.port === port)
    return endpoints.length > 0 && (endpoints.some(({ host }) => sameAddress(host, address)) || isOfThisHost(address))
  }
}

const thisHost = new BlockList()
thisHost.addSubnet('127.0.0.0', 8, 'ipv4')
// Both connect to this host.
thisHost.addAddress('0.0.0.0', 'ipv4')
thisHost.addAddress('::', 'ipv6')
thisHost.addAddress('::1', 'ipv6')

/** A list compares IPv4 addresses with those that IPv6 maps, and every spelling of one. */
function isOfThisHost(address: string): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list?.map((one) => one.address) ?? [])
  return thisHost.check(address, familyOf(address)) || addresses.some((one) => sameAddress(one, address))
}

function sameAddress(a: string, b: string): boolean {
  if (isIP(a) === 0 || isIP(b) === 0) return false
  const list = new BlockList()
  list.addAddress(a, familyOf(a))
  return list.check(b, familyOf(b))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6'
}
