/**
 * The devices that claims have (L3), updated with every change of a claim. Administrator access does not occupy a device.
 * Upstream: dynamicresources allocateddevices.go, structured AllocatedState (v1.36).
 */
import type { AllocationResult } from '#api/gen/types/resource.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { parseQuantity } from '#api/machinery/quantity'
import { type Amounts, addAmounts } from './capacity.ts'
import { deviceId } from './pools.ts'

interface Use {
  readonly id: string
  /** Absent: the whole device. */
  readonly share: Amounts | undefined
}

export interface UsedDevices {
  /** Whether some claim has the device for itself. */
  has(id: string): boolean
  /** Consumed capacity of a shared device; undefined when there is none. */
  shares(id: string): Amounts | undefined
}

export class DevicesInUse implements UsedDevices {
  readonly #ofClaim = new Map<string, readonly Use[]>()
  readonly #whole = new Map<string, number>()
  /** Device → what each claim has of it. */
  readonly #shares = new Map<string, Map<string, Amounts>>()

  #releases = 0

  /** Another number after each claim that gives something back: only then can a search find what it did not find before. */
  get releases(): number {
    return this.#releases
  }

  /** A snapshot of the devices in use. */
  snapshot(): UsedDevices {
    const whole = new Set(this.#whole.keys())
    const shares = new Map([...this.#shares.keys()].map((id) => [id, this.shares(id)]))
    return { has: (id) => whole.has(id), shares: (id) => shares.get(id) }
  }

  has(id: string): boolean {
    return this.#whole.has(id)
  }

  shares(id: string): Amounts | undefined {
    const shares = this.#shares.get(id)
    if (!shares) return undefined
    let sum: Amounts = {}
    for (const share of shares.values()) sum = addAmounts(sum, share)
    return sum
  }

  /** Replaces what the claim has. */
  set(claimUid: string, allocation: Frozen<AllocationResult> | undefined): void {
    const before = this.#ofClaim.get(claimUid) ?? []
    const uses = usesOf(allocation)
    // A claim is seen several times with what it has: promised, written, and by the watch.
    if (semanticEqual(before, uses)) return
    if (before.length > 0) this.#releases++
    for (const { id, share } of before) {
      if (share) this.#dropShare(id, claimUid)
      else this.#count(id, -1)
    }
    if (uses.length === 0) this.#ofClaim.delete(claimUid)
    else this.#ofClaim.set(claimUid, uses)
    for (const { id, share } of uses) {
      if (!share) {
        this.#count(id, 1)
        continue
      }
      const shares = this.#shares.get(id) ?? new Map<string, Amounts>()
      shares.set(claimUid, addAmounts(shares.get(claimUid), share))
      this.#shares.set(id, shares)
    }
  }

  #dropShare(id: string, claimUid: string): void {
    const shares = this.#shares.get(id)
    shares?.delete(claimUid)
    if (shares?.size === 0) this.#shares.delete(id)
  }

  #count(id: string, by: 1 | -1): void {
    const count = (this.#whole.get(id) ?? 0) + by
    if (count > 0) this.#whole.set(id, count)
    else this.#whole.delete(id)
  }
}

function usesOf(allocation: Frozen<AllocationResult> | undefined): Use[] {
  const uses: Use[] = []
  for (const { driver, pool, device, adminAccess, shareID, consumedCapacity = {} } of allocation?.devices?.results ?? []) {
    if (adminAccess) continue
    const share = Object.fromEntries(Object.entries(consumedCapacity).map(([name, amount]) => [name, parseQuantity(amount)]))
    uses.push({ id: deviceId(driver, pool, device), share: shareID === undefined ? undefined : share })
  }
  return uses
}
