/**
 * Creates and deletes pods for a controller and records events (L3). Upstream: pkg/controller/controller_utils.go, RealPodControl and
 * slowStartBatch (v1.36).
 */
import type { Pod, PodTemplateSpec } from '#api/gen/types/core.v1'
import { controllerReference } from '#api/helpers/owners'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { pods } from '#client/builtIn'
import type { Client, NewObject } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'

export interface PodControl {
  /** @throws StatusError the server's error; an event has been recorded. */
  create(owner: Frozen<KubeObject>, pod: NewObject<Pod>, signal: AbortSignal): Promise<void>
  delete(owner: Frozen<KubeObject>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void>
}

export function createPodControl(client: Client, events: EventRecorder): PodControl {
  return {
    async create(owner, pod, signal) {
      try {
        const created = await client.of(pods).create(pod, { signal })
        events.event(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${created.metadata.name}`)
      } catch (error) {
        if (!isNamespaceTerminating(error)) events.event(owner, 'Warning', 'FailedCreate', `Error creating: ${messageOf(error)}`)
        throw error
      }
    },
    async delete(owner, pod, signal) {
      const { namespace, name = '' } = pod.metadata
      try {
        await client.of(pods).delete({ namespace, name }, { signal })
        events.event(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${name}`)
      } catch (error) {
        if (!isStatus(error, 'NotFound')) events.event(owner, 'Warning', 'FailedDelete', `Error deleting: ${messageOf(error)}`)
        throw error
      }
    },
  }
}

export const isNamespaceTerminating = (error: unknown): boolean => isStatus(error, 'Forbidden') && error.hasCause('NamespaceTerminating')

/** The pod that a controller's template describes. */
export function podFromTemplate(template: Frozen<PodTemplateSpec>, owner: Frozen<KubeObject>): NewObject<Pod> {
  const { labels, annotations, finalizers } = template.metadata ?? {}
  const metadata: Pod['metadata'] = {
    namespace: owner.metadata.namespace,
    generateName: `${owner.metadata.name}-`,
    ownerReferences: [controllerReference(owner)],
  }
  if (labels) metadata.labels = { ...labels }
  if (annotations) metadata.annotations = { ...annotations }
  if (finalizers) metadata.finalizers = [...finalizers]
  if (!template.spec) throw new Error('the pod template has no spec')
  return { metadata, spec: deepCopy<Pod['spec']>(template.spec) }
}

/** How long a turn of the event loop may take in which calls begin. */
const turnMs = 50
/** Calls that begin in the first turn, and at most: virtual time does not pass during a turn. */
const callsInFirstTurn = 4
const mostCallsInTurn = 64

/** Calls `fn` for all items at once, but lets others have their turn while it begins: a turn has more calls while turns are short. @returns the first error */
export async function forAllInTurns<T>(clock: Clock, items: readonly T[], fn: (item: T) => Promise<void>): Promise<{ successes: number; error: unknown }> {
  const calls: Promise<void>[] = []
  let callsInTurn = callsInFirstTurn
  let left = callsInTurn
  let beganMs = clock.monotonicMs()
  for (const item of items) {
    if (left-- === 0) {
      await clock.turn()
      const tookMs = clock.monotonicMs() - beganMs
      if (tookMs < turnMs / 2) callsInTurn = Math.min(mostCallsInTurn, callsInTurn * 2)
      else if (tookMs > turnMs) callsInTurn = Math.max(1, callsInTurn >> 1)
      left = callsInTurn - 1
      beganMs = clock.monotonicMs()
    }
    const call = fn(item)
    // It may fail while others begin; allSettled below tells.
    call.catch(() => {})
    calls.push(call)
  }
  const results = await Promise.allSettled(calls)
  return {
    successes: results.filter(({ status }) => status === 'fulfilled').length,
    error: results.find((result) => result.status === 'rejected')?.reason,
  }
}

/**
 * Calls `fn` `count` times, with 0, 1, 2 and so on, in batches of 1, 2, 4, …: when the first fails, thousands of others that would fail too are not tried.
 * @returns how many succeeded, and the first error
 */
export async function slowStartBatch(clock: Clock, count: number, fn: (i: number) => Promise<void>): Promise<{ successes: number; error: unknown }> {
  let successes = 0
  for (let done = 0, size = 1; done < count; done += size, size *= 2) {
    const batch = Array.from({ length: Math.min(size, count - done) }, (_, i) => done + i)
    const results = await forAllInTurns(clock, batch, fn)
    successes += results.successes
    if (results.error !== undefined) return { successes, error: results.error }
  }
  return { successes, error: undefined }
}
