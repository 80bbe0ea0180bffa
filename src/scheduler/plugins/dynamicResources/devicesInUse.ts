/**
 * Which devices are taken (L3), kept in step with the claims. Access for administrators takes nothing from anybody.
 * Upstream: dynamicresources allocateddevices.go, structured AllocatedState (v1.36).
 */
import type { AllocationResult } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseQuantity } from '#api/machinery/quantity'
import { type Amounts, addAmounts } from './capacity.ts'
import { deviceId } from './pools.ts'

interface Use {
  readonly id: string
  /** Absent: the whole device. */
  readonly share: Amounts | undefined
}

export class DevicesInUse {
  readonly #ofClaim = new Map<string, readonly Use[]>()
  readonly #whole = new Map<string, number>()
  /** Device → what each claim has of it. */
  readonly #shares = new Map<string, Map<string, Amounts>>()

  #version = 0

  /** Another one after each change. */
  get version(): number {
    return this.#version
  }

  /** Whether somebody has the device for himself. */
  has(id: string): boolean {
    return this.#whole.has(id)
  }

  /** What is taken of a device that is shared; undefined: nobody has it. */
  shares(id: string): Amounts | undefined {
    const shares = this.#shares.get(id)
    if (!shares) return undefined
    let sum: Amounts = {}
    for (const share of shares.values()) sum = addAmounts(sum, share)
    return sum
  }

  /** Replaces what the claim has. */
  set(claimUid: string, allocation: Frozen<AllocationResult> | undefined): void {
    if (allocation || this.#ofClaim.has(claimUid)) this.#version++
    for (const { id, share } of this.#ofClaim.get(claimUid) ?? []) {
      if (share) this.#dropShare(id, claimUid)
      else this.#count(id, -1)
    }
    const uses = usesOf(allocation)
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
