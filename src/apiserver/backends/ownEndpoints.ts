/**
 * The addresses and ports at which this server itself listens (L3). Nothing is proxied there: the server would send itself the request with its
 * certificate for kubelets or extension servers, or proxy it in a circle (CVE-2022-3294).
 */
import { networkInterfaces } from 'node:os'
import { isLoopback, isSameAddress } from './addressBlocks.ts'

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
    return endpoints.length > 0 && (endpoints.some(({ host }) => isSameAddress(host, address)) || isOfThisHost(address))
  }
}

function isOfThisHost(address: string): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list?.map((one) => one.address) ?? [])
  return isLoopback(address) || addresses.some((one) => isSameAddress(one, address))
}
