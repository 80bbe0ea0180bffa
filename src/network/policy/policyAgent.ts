/**
 * Enforces network policies on one node (L3): keeps the node's table in step with the model, and holds a new pod's containers until the rules for its address
 * are in the kernel. The table stays when the agent stops, and its successor replaces it in one transaction, so that no moment is open.
 * Upstream's counterpart: sigs.k8s.io/kube-network-policies.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { createWakeUp } from '#base/wakeUp'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createConntrack } from '#host/conntrack'
import type { Exec } from '#host/exec'
import { createNftTable } from '#host/nftables'
import { inTimeSlices, SharedTurns } from '#host/timeSlices'
import { followPolicyObjects, type PolicyChanges } from './changes.ts'
import { PolicyModel } from './model.ts'
import { createPolicyRenderer, policyTable } from './nftables.ts'

export interface PolicyAgentDeps {
  /** Informers of this agent alone, which hold slimmed objects. */
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly exec: Exec
}

export interface PolicyAgentConfig {
  readonly nodeName: string
}

export interface PolicyAgent extends Component {
  /**
   * Resolves when the policies of the pod are in force for these addresses. A pod that changes no rule does not wait for the kernel.
   * @throws Error when that takes longer than five seconds, or when aborted
   */
  podNetworkReady(pod: Frozen<Pod>, addresses: readonly string[], signal: AbortSignal): Promise<void>
}

const waitMs = 5_000
const retryMs = { initial: 500, max: 30_000 }

export function createPolicyAgent(deps: PolicyAgentDeps, config: PolicyAgentConfig): PolicyAgent {
  const wakeUp = createWakeUp()
  const changes = followPolicyObjects(deps.informers, config.nodeName, wakeUp.ring)
  const flows = createFlowCleaner(deps)
  const model = new PolicyModel((pod) => pod.nodeName === config.nodeName, flows.forget)
  const enforcement = new Enforcement(deps, model, changes)
  return {
    name: 'network-policies',
    podNetworkReady: (pod, addresses, signal) => {
      changes.announce(pod, addresses)
      return enforcement.inForce(keyOf(pod), signal)
    },
    run: async (signal) => {
      const enforce = async () => {
        await changes.synced(signal)
        wakeUp.ring()
        for (let failures = 0; !signal.aborted; ) {
          await wakeUp.wait(signal)
          if (signal.aborted) break
          failures = (await enforcement.update()) ? 0 : failures + 1
          if (failures === 0) continue
          await deps.clock.sleep(Math.min(retryMs.max, retryMs.initial * 2 ** (failures - 1)), signal)
          wakeUp.ring()
        }
      }
      try {
        await Promise.all([enforce(), flows.run(signal)])
      } catch (error) {
        if (!signal.aborted) throw error
      }
    },
  }
}

/**
 * Makes the kernel forget the connections of an address that a pod no longer has: otherwise the packets of their clients would pass as replies when the
 * address belongs to another pod.
 */
function createFlowCleaner({ exec, log }: PolicyAgentDeps) {
  const conntrack = createConntrack(exec)
  const released = new Set<string>()
  const wakeUp = createWakeUp()
  return {
    forget: (address: string) => {
      released.add(address)
      wakeUp.ring()
    },
    run: async (signal: AbortSignal) => {
      while (!signal.aborted) {
        await wakeUp.wait(signal)
        for (const address of released) {
          if (signal.aborted) break
          released.delete(address)
          try {
            for (const filter of [{ replySrc: address }, { origSrc: address }]) await conntrack.delete(filter)
          } catch (error) {
            log.error(error, 'Failed to delete the connections of a pod that is gone', { address })
          }
        }
      }
    },
  }
}

/** The model, the kernel's table and the pods that wait for both to agree. */
class Enforcement {
  readonly #deps: PolicyAgentDeps
  readonly #changes: PolicyChanges
  readonly #model: PolicyModel
  readonly #render = createPolicyRenderer()
  readonly #table: ReturnType<typeof createNftTable>
  readonly #turns = new SharedTurns()
  /** Pods whose last change of the rules is not in the kernel. */
  readonly #unapplied = new Set<string>()
  readonly #waiting = new Set<() => void>()
  /** The model's version that the kernel has; -1 before the first. */
  #applied = -1

  constructor(deps: PolicyAgentDeps, model: PolicyModel, changes: PolicyChanges) {
    this.#deps = deps
    this.#changes = changes
    this.#model = model
    this.#table = createNftTable(deps.exec, 'inet', policyTable, this.#turns)
  }

  /** @returns whether the kernel has the newest rules */
  async update(): Promise<boolean> {
    const { log, clock, metrics } = this.#deps
    const startedMs = clock.monotonicMs()
    await inTimeSlices(
      this.#changes.takeIn(this.#model, {
        touched: (podKey) => this.#unapplied.add(podKey),
        obstacle: (networkPolicy, reason) => log.error(new Error(reason), 'A network policy is too large and allows nothing', { networkPolicy }),
      }),
      this.#turns,
    )
    this.#release()
    const { version } = this.#model
    if (version === this.#applied) return true
    try {
      await this.#table.apply(await inTimeSlices(this.#render(this.#model), this.#turns))
    } catch (error) {
      log.error(error, 'Failed to apply network policies')
      return false
    }
    this.#applied = version
    this.#unapplied.clear()
    metrics
      .histogram({ name: 'skiff_network_policy_apply_duration_seconds', help: 'Time from the start of work on changes until their rules are in force.' })
      .observe((clock.monotonicMs() - startedMs) / 1000)
    log.v(3).info('Applied network policies', { version })
    this.#release()
    return true
  }

  #isInForce(podKey: string): boolean {
    return this.#applied >= 0 && !this.#changes.isPending(podKey) && !this.#unapplied.has(podKey)
  }

  #release(): void {
    for (const look of [...this.#waiting]) look()
  }

  inForce(podKey: string, signal: AbortSignal): Promise<void> {
    const reason = () => new Error(`the network policies of the pod are not in force after ${waitMs / 1000} seconds`)
    const scope = deadlineScope({ clock: this.#deps.clock, ms: waitMs, reason }, signal)
    return new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!this.#isInForce(podKey)) return
        this.#waiting.delete(look)
        resolve()
      }
      const abort = () => {
        this.#waiting.delete(look)
        reject(scope.signal.reason)
      }
      this.#waiting.add(look)
      if (scope.signal.aborted) abort()
      else scope.signal.addEventListener('abort', abort, { once: true })
    }).finally(() => scope[Symbol.dispose]())
  }
}
