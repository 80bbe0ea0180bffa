/**
 * A quota while writes are checked against it (L3, pure): the usage in its status, and what the checked writes add.
 * Upstream: the running quotas of apiserver/pkg/admission/plugin/resourcequota/controller.go (v1.36).
 */
import type { ResourceQuota } from '#api/gen/types/core.v1'
import { formatQuotaAmount, type QuotaAmounts, quotaAmount } from '#api/helpers/quotaUsage'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'

export class RunningQuota {
  readonly object: Frozen<ResourceQuota>
  /** The limited names. */
  readonly names: readonly string[]
  readonly #used = new Map<string, number>()

  constructor(object: Frozen<ResourceQuota>) {
    this.object = object
    this.names = Object.keys(object.status?.hard ?? {})
  }

  get name(): string {
    return this.object.metadata.name ?? ''
  }

  /** Whether writes were charged. */
  get isChanged(): boolean {
    return this.#used.size > 0
  }

  /** The limit as it is written; the name must be one of {@link names}. */
  hard(name: string): string {
    return ownValue(this.object.status?.hard ?? {}, name) ?? '0'
  }

  /** Undefined when the controller has not counted it yet. */
  used(name: string): number | undefined {
    const running = this.#used.get(name)
    if (running !== undefined) return running
    const written = ownValue(this.object.status?.used ?? {}, name)
    return written === undefined ? undefined : quotaAmount(name, written)
  }

  charge(amounts: QuotaAmounts): void {
    for (const [name, amount] of Object.entries(amounts)) this.#used.set(name, (this.used(name) ?? 0) + amount)
  }

  /** The object with the usage as its status. */
  charged(): Frozen<ResourceQuota> {
    const charged = [...this.#used].map(([name, amount]) => [name, formatQuotaAmount(name, amount)] as const)
    const used = { ...this.object.status?.used, ...Object.fromEntries(charged) }
    return { ...this.object, status: { ...this.object.status, used } } as Frozen<ResourceQuota>
  }
}
