/**
 * Charges writes to the quotas of their namespaces (L3): usage is added to the quota's status by a write that must still find the checked version,
 * so that all API servers over one store agree. Writes that wait for a namespace are checked together and share one write of each quota.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota/{controller,resource_access}.go (v1.36).
 */
import type { ResourceQuota } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { internalError, isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Transport } from '#client/transport'
import { inSlices, withWorkers } from '../../core/fairLoop.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { addsNothing, type Charge, checkRequest } from './checkRequest.ts'
import type { LimitedResource } from './limitedResources.ts'
import { RunningQuota } from './runningQuota.ts'

const quotas = { group: '', resource: 'resourcequotas' }
const timeoutMs = 10_000
/** Each conflict means that another server charged the quota. Upstream tries 4 times, and its clients see the conflict then. */
const maxTries = 20
/** Quotas of one namespace that are written at once. */
const writers = 8

export interface QuotaEvaluatorDeps {
  readonly reader: ObjectReader
  readonly clock: Clock
  /** The server's own; undefined until it is assembled. */
  readonly transport: () => Transport | undefined
}

interface Waiting {
  readonly attributes: AdmissionAttributes
  settle(error?: unknown): void
}

/** A write that fits, and what it adds. */
interface Admitted {
  readonly one: Waiting
  readonly charges: readonly Charge[]
}

export class QuotaEvaluator {
  readonly #deps: QuotaEvaluatorDeps
  readonly #limited: readonly LimitedResource[]
  /** Writes that wait, by their namespaces; a namespace without any is being worked on. */
  readonly #waiting = new Map<string, Waiting[]>()

  constructor(deps: QuotaEvaluatorDeps, limited: readonly LimitedResource[]) {
    this.#deps = deps
    this.#limited = limited
  }

  /** Resolves when the write is charged; undefined when no quota concerns it, or it is an update that adds nothing. @throws StatusError when it exceeds a quota */
  evaluate(attributes: AdmissionAttributes): Promise<void> | undefined {
    const { namespace } = attributes
    const objects = this.#deps.reader.list<ResourceQuota>(quotas, namespace)
    if (this.#limited.length === 0 && objects.length === 0) return undefined
    if (addsNothing(attributes, objects, this.#limited)) return undefined
    return new Promise((resolve, reject) => {
      const timer = this.#deps.clock.timer(timeoutMs, () => reject(internalError(new Error('resource quota evaluation timed out'))))
      const settle = (error?: unknown) => {
        timer.cancel()
        if (error === undefined) resolve()
        else reject(error)
      }
      const queue = this.#waiting.get(namespace)
      if (queue) queue.push({ attributes, settle })
      else {
        this.#waiting.set(namespace, [{ attributes, settle }])
        void this.#work(namespace)
      }
    })
  }

  async #work(namespace: string): Promise<void> {
    for (;;) {
      const batch = this.#waiting.get(namespace)?.splice(0) ?? []
      if (batch.length === 0) break
      try {
        await this.#check(namespace, batch)
      } catch (error) {
        for (const one of batch) one.settle(error)
      }
    }
    this.#waiting.delete(namespace)
  }

  async #check(namespace: string, batch: readonly Waiting[]): Promise<void> {
    let waiting = batch
    let objects = this.#deps.reader.list<ResourceQuota>(quotas, namespace)
    for (let attempt = 1; ; attempt++) {
      const running = objects.map((object) => new RunningQuota(object))
      const admitted = await this.#admit(waiting, running)
      const { failed, error } = await this.#write(running.filter((quota) => quota.isChanged))
      const again: Waiting[] = []
      for (const { one, charges } of admitted) {
        if (!charges.some(({ quota }) => failed.has(quota.name))) one.settle()
        else if (attempt < maxTries && isOutdated(error)) again.push(one)
        else one.settle(error)
      }
      if (again.length === 0) return
      // Charges of the other quotas are stored: only the failed ones are checked again. A deleted one limits nothing.
      waiting = again
      objects = (await this.#list(namespace)).filter(({ metadata }) => failed.has(metadata.name ?? ''))
    }
  }

  /** Settles writes that are refused, or add nothing. */
  async #admit(waiting: readonly Waiting[], running: readonly RunningQuota[]): Promise<readonly Admitted[]> {
    const admitted: Admitted[] = []
    await inSlices(waiting, (one) => {
      try {
        const charges = checkRequest(one.attributes, running, this.#limited)
        if (charges.length === 0 || one.attributes.dryRun) return one.settle()
        for (const { quota, amounts } of charges) quota.charge(amounts)
        admitted.push({ one, charges })
      } catch (error) {
        one.settle(error)
      }
    })
    return admitted
  }

  /** Names of the quotas that could not be written, and the error of one; {@link isOutdated} only if it is true of all. */
  async #write(changed: readonly RunningQuota[]): Promise<{ readonly failed: ReadonlySet<string>; readonly error?: unknown }> {
    const failed = new Set<string>()
    let error: unknown
    await withWorkers(changed, writers, async (quota) => {
      const { namespace, name } = quota.object.metadata
      const path = `/api/v1/namespaces/${namespace}/resourcequotas/${name}/status`
      try {
        await this.#transport().request({ method: 'PUT', path, body: quota.charged() })
      } catch (cause) {
        failed.add(quota.name)
        if (error === undefined || !isOutdated(cause)) error = cause
      }
    })
    return { failed, error }
  }

  /** From the store, since the cache may be behind the other server's write. */
  async #list(namespace: string): Promise<readonly Frozen<ResourceQuota>[]> {
    const { body } = await this.#transport().request({ method: 'GET', path: `/api/v1/namespaces/${namespace}/resourcequotas` })
    return (body as { readonly items: readonly Frozen<ResourceQuota>[] }).items
  }

  #transport(): Transport {
    const transport = this.#deps.transport()
    if (!transport) throw internalError(new Error('quotas cannot be charged before the server is assembled'))
    return transport
  }
}

/** The quota is another one by now, or is gone: it is looked up again. */
function isOutdated(error: unknown): boolean {
  return isStatus(error, 'Conflict') || isStatus(error, 'NotFound')
}
