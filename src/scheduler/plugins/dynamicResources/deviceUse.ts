/**
 * Devices that a search has taken so far (L3), in addition to those in use: whole devices, shares of them, and counters of their pools.
 * Upstream: structured allocator allocateDevice (v1.36).
 */
import { type Amounts, addAmounts, consumedBy, isLeft } from './capacity.ts'
import { CounterUse } from './counters.ts'
import type { UsedDevices } from './devicesInUse.ts'
import type { PoolDevice } from './pools.ts'
import type { RequestVariant } from './requests.ts'

export interface Use {
  /** Present for a share of a device that several claims may have. */
  readonly consumed: Amounts | undefined
  undo(): void
}

type Wanted = Pick<RequestVariant, 'adminAccess' | 'capacity'>

export class DeviceUse {
  readonly #inUse: UsedDevices
  /** Device → the claims that take it whole. */
  readonly #whole = new Map<string, Set<number>>()
  readonly #shares = new Map<string, Amounts>()
  readonly #counters: CounterUse

  constructor(inUse: UsedDevices) {
    this.#inUse = inUse
    this.#counters = new CounterUse(inUse)
  }

  /** Whether some claim has the device for itself. */
  has(id: string): boolean {
    return this.#inUse.has(id) || (this.#whole.get(id)?.size ?? 0) > 0
  }

  /** Whether the claim may not take the device. An administrator may have one that is in use, but not twice. */
  isBarred(id: string, claim: number, { adminAccess }: Wanted): boolean {
    return adminAccess ? this.#whole.get(id)?.has(claim) === true : this.has(id)
  }

  /** @returns undefined when the device, its capacity or its counters are not free; nothing is taken then */
  take(device: PoolDevice, claim: number, wanted: Wanted): Use | undefined {
    const { id } = device
    if (this.isBarred(id, claim, wanted)) return undefined
    const isShared = device.device.allowMultipleAllocations === true
    const consumed = consumedBy(wanted.capacity, device.device)
    const sharesBefore = this.#shares.get(id)
    if (!consumed || !isLeft(consumed, device.device, this.#inUse.shares(id), sharesBefore)) return undefined
    // A device that is shared already has its counters.
    const usesCounters = !(isShared && (sharesBefore !== undefined || this.#inUse.shares(id) !== undefined))
    if (usesCounters && !this.#counters.take(device)) return undefined
    if (isShared) this.#shares.set(id, addAmounts(sharesBefore, consumed))
    else this.#whole.set(id, (this.#whole.get(id) ?? new Set()).add(claim))
    return {
      consumed: isShared ? consumed : undefined,
      undo: () => {
        if (!isShared) this.#whole.get(id)?.delete(claim)
        else if (sharesBefore) this.#shares.set(id, sharesBefore)
        else this.#shares.delete(id)
        if (usesCounters) this.#counters.giveBack(device)
      },
    }
  }
}
