/** Keeps the Leases of nodes without a kubelet fresh (testing), so that they are not taken for lost. Upstream: kwok pkg/kwok/controllers/node_lease_controller.go. */
import { isStatus } from '#api/machinery/status'
import type { Clock, Timer } from '#base/clock'
import { formatMicroTime } from '#base/time'
import { leases } from '#client/builtIn'
import type { Client } from '#client/client'

const leaseSeconds = 40
const renewMs = (leaseSeconds * 1000) / 4

export class NodeLeases {
  readonly #client: Client
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #timers = new Map<string, Timer>()

  constructor(client: Client, clock: Clock, signal: AbortSignal) {
    this.#client = client
    this.#clock = clock
    this.#signal = signal
  }

  /** True when it was not kept before. */
  keep(nodeName: string): boolean {
    if (this.#timers.has(nodeName)) return false
    this.#renewAfter(nodeName, 0)
    return true
  }

  letGo(nodeName: string): void {
    this.#timers.get(nodeName)?.cancel()
    this.#timers.delete(nodeName)
  }

  stop(): void {
    for (const nodeName of [...this.#timers.keys()]) this.letGo(nodeName)
  }

  #renewAfter(nodeName: string, ms: number): void {
    this.#timers.set(
      nodeName,
      this.#clock.timer(ms, () => void this.#renew(nodeName)),
    )
  }

  async #renew(name: string): Promise<void> {
    const client = this.#client.of(leases)
    const ref = { namespace: 'kube-node-lease', name }
    const spec = { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime: formatMicroTime(this.#clock.now()) }
    const options = { signal: this.#signal }
    try {
      await client.patch(ref, 'merge', { spec }, options).catch((error: unknown) => {
        if (!isStatus(error, 'NotFound')) throw error
        return client.create({ metadata: ref, spec }, options)
      })
    } catch {
      // The next renewal is due before the Lease expires.
    }
    if (this.#timers.has(name) && !this.#signal.aborted) this.#renewAfter(name, renewMs)
  }
}
