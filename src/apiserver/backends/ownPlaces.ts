/**
 * The addresses and ports at which this server itself listens (L3). Nothing is proxied there: a request would come back to this server with the
 * certificate that it shows to kubelets or extension servers, or would be proxied in a circle (CVE-2022-3294).
 */
import { networkInterfaces } from 'node:os'
import { isLoopback, isSameAddress } from './addressBlocks.ts'

interface Place {
  readonly host: string
  readonly port: number
}

export class OwnPlaces {
  readonly #listening = new Set<Place>()
  readonly #advertised: () => { readonly address: string; readonly port: number } | undefined

  /** @param advertised where pods reach this server, if they do */
  constructor(advertised: () => { readonly address: string; readonly port: number } | undefined = () => undefined) {
    this.#advertised = advertised
  }

  /** @returns forgets the place again */
  add({ host, port }: Place): () => void {
    const place = { host, port }
    this.#listening.add(place)
    return () => this.#listening.delete(place)
  }

  /** `host:port` of the newest; empty before the first. */
  get newest(): string {
    const place = [...this.#listening].at(-1)
    return place ? `${place.host}:${place.port}` : ''
  }

  /** @param address an IP address */
  has(address: string, port: number): boolean {
    const advertised = this.#advertised()
    const places = [...this.#listening, ...(advertised ? [{ host: advertised.address, port: advertised.port }] : [])].filter((place) => place.port === port)
    return places.length > 0 && (places.some(({ host }) => isSameAddress(host, address)) || isOfThisHost(address))
  }
}

function isOfThisHost(address: string): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list?.map((one) => one.address) ?? [])
  return isLoopback(address) || addresses.some((one) => isSameAddress(one, address))
}
