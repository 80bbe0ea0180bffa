/**
 * Creates and deletes a StatefulSet's pods and their claims, and records events (L3). claims.ts decides who owns a claim.
 * Upstream: pkg/controller/statefulset/stateful_pod_control.go (v1.36).
 */
import type { ControllerRevision, StatefulSet } from '#api/gen/types/apps.v1'
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { persistentVolumeClaims, pods } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { isNamespaceTerminating } from '../shared/podControl.ts'
import { claimReferences, isClaimStale } from './claims.ts'
import { isCondemned } from './plan.ts'
import { identityLabels, ordinalOf, statefulClaims, statefulPod } from './pods.ts'

export interface StatefulPodControlDeps {
  readonly client: Client
  readonly events: EventRecorder
  readonly claims: SharedInformer<PersistentVolumeClaim>
}

export interface StatefulPodControl {
  /** Makes the pod of an ordinal after its claims; does nothing while an old claim is being deleted. */
  create(set: Frozen<StatefulSet>, ordinal: number, revision: Frozen<ControllerRevision>, signal: AbortSignal): Promise<void>
  remove(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void>
  /** Gives a pod the labels of its place. */
  mendIdentity(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void>
  /** A pod that waits gets the claims it lacks; every claim gets the owners that the set's policy gives it. */
  settleClaims(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void>
}

/** Throws Status errors of the API, after recording an event for each. */
export function createStatefulPodControl({ client, events, claims }: StatefulPodControlDeps): StatefulPodControl {
  return { create, remove, mendIdentity, settleClaims }

  async function create(set: Frozen<StatefulSet>, ordinal: number, revision: Frozen<ControllerRevision>, signal: AbortSignal): Promise<void> {
    const pod = statefulPod(set, ordinal, revision)
    const { name = '' } = pod.metadata
    // The claims of the previous pod are being deleted; their deletion queues the set again.
    if (claimsOf(set, ordinal).some((claim) => isClaimStale(set, name, claim))) return
    await createClaims(set, ordinal, name, signal)
    const what = `Pod ${name} in StatefulSet ${set.metadata.name}`
    const made = await attempt(set, `create ${what}`, () => client.of(pods).create(pod, { signal }))
    if (made) await settleOwners(set, made, signal)
  }

  async function createClaims(set: Frozen<StatefulSet>, ordinal: number, podName: string, signal: AbortSignal): Promise<void> {
    for (const wanted of statefulClaims(set, ordinal)) {
      const { namespace, name = '' } = wanted.metadata
      const there = claims.lister.get({ namespace, name })
      if (there?.metadata.deletionTimestamp) throw new Error(`pvc ${name} is being deleted`)
      const what = `create Claim ${name} Pod ${podName} in StatefulSet ${set.metadata.name}`
      if (!there) await attempt(set, what, () => client.of(persistentVolumeClaims).create(wanted, { signal }))
    }
  }

  function claimsOf(set: Frozen<StatefulSet>, ordinal: number): Frozen<PersistentVolumeClaim>[] {
    return statefulClaims(set, ordinal).flatMap(({ metadata: { namespace, name = '' } }) => claims.lister.get({ namespace, name }) ?? [])
  }

  async function settleClaims(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const ordinal = ordinalOf(set, pod)
    if (ordinal === undefined) return
    const waiting = pod.status?.phase === 'Pending' && !pod.metadata.deletionTimestamp && !isCondemned(set, pod)
    if (waiting) await createClaims(set, ordinal, pod.metadata.name ?? '', signal)
    await settleOwners(set, pod, signal)
  }

  async function settleOwners(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    for (const claim of claimsOf(set, ordinalOf(set, pod) ?? -1)) {
      const ownerReferences = claimReferences(set, pod, claim, isCondemned(set, pod))
      if (!ownerReferences) continue
      const changed = { ...claim, metadata: { ...claim.metadata, ownerReferences } } as Frozen<PersistentVolumeClaim>
      await client.of(persistentVolumeClaims).update(changed, { signal })
    }
  }

  /** @returns what was made; undefined when it was there already, or its namespace is going */
  async function attempt<T>(set: Frozen<StatefulSet>, what: string, call: () => Promise<T>): Promise<T | undefined> {
    const ok = what.startsWith('create Claim') ? 'success' : 'successful'
    try {
      const made = await call()
      events.event(set, 'Normal', 'SuccessfulCreate', `${what} ${ok}`)
      return made
    } catch (error) {
      if (isStatus(error, 'AlreadyExists') || isNamespaceTerminating(error)) return undefined
      events.event(set, 'Warning', 'FailedCreate', `${what} failed error: ${messageOf(error)}`)
      throw error
    }
  }

  async function mendIdentity(set: Frozen<StatefulSet>, pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    const what = `update Pod ${name} in StatefulSet ${set.metadata.name}`
    const patch = { metadata: { uid, labels: identityLabels(name, ordinalOf(set, pod) ?? -1) } }
    try {
      await client.of(pods).patch({ namespace, name }, 'merge', patch, { signal })
      events.event(set, 'Normal', 'SuccessfulUpdate', `${what} successful`)
    } catch (error) {
      events.event(set, 'Warning', 'FailedUpdate', `${what} failed error: ${messageOf(error)}`)
      throw error
    }
  }

  async function remove(set: Frozen<StatefulSet>, { metadata }: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const what = `delete Pod ${metadata.name} in StatefulSet ${set.metadata.name}`
    try {
      await client.of(pods).delete({ namespace: metadata.namespace, name: metadata.name ?? '' }, { preconditions: { uid: metadata.uid }, signal })
      events.event(set, 'Normal', 'SuccessfulDelete', `${what} successful`)
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      events.event(set, 'Warning', 'FailedDelete', `${what} failed error: ${messageOf(error)}`)
      throw error
    }
  }
}
