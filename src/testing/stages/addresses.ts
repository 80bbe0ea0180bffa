/** Addresses for pods that no runtime gives any (testing): each pod of a node one of the node's range, the same for as long as it is there. */
export class PodAddresses {
  readonly #byPod = new Map<string, { readonly cidr: string; readonly address: string }>()
  readonly #taken = new Map<string, Set<string>>()

  /** Undefined when the range is used up. */
  of(uid: string, cidr: string): string | undefined {
    const known = this.#byPod.get(uid)
    if (known) return known.address
    const taken = this.#taken.get(cidr) ?? new Set()
    const address = firstFree(cidr, taken)
    if (address === undefined) return undefined
    this.#taken.set(cidr, taken.add(address))
    this.#byPod.set(uid, { cidr, address })
    return address
  }

  /** A pod that came with an address keeps it. */
  keep(uid: string, cidr: string, address: string): void {
    if (this.#byPod.has(uid)) return
    this.#byPod.set(uid, { cidr, address })
    this.#taken.set(cidr, (this.#taken.get(cidr) ?? new Set()).add(address))
  }

  release(uid: string): void {
    const known = this.#byPod.get(uid)
    this.#byPod.delete(uid)
    if (known) this.#taken.get(known.cidr)?.delete(known.address)
  }
}

/** IPv4. The first address names the range, the second is a gateway's, the last is the broadcast's. */
function firstFree(cidr: string, taken: ReadonlySet<string>): string | undefined {
  const [base = '', prefix = '24'] = cidr.split('/')
  const number = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const last = 2 ** (32 - Number(prefix)) - 1
  for (let offset = 2; offset < last; offset++) {
    const address = [24, 16, 8, 0].map((shift) => Math.floor((number + offset) / 2 ** shift) % 256).join('.')
    if (!taken.has(address)) return address
  }
  return undefined
}
