/**
 * Takes back reservations, allocations and claims that no pod needs any more (L3). Upstream: syncClaim of pkg/controller/resourceclaim (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { ResourceClaim, ResourceClaimConsumerReference } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { pods, resourceClaims } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { Client } from '#client/client'
import { withoutFinalizer } from '../shared/protection.ts'
import { isPodDone, owningPod } from './podClaims.ts'

const finalizer = 'resource.kubernetes.io/delete-protection'

export function createClaimRelease(client: Client, claims: SharedInformer<ResourceClaim>, podInformer: SharedInformer<Pod>) {
  return { syncClaim }

  async function syncClaim(key: string, signal: AbortSignal): Promise<undefined> {
    let claim = claims.store.get(key)
    if (!claim) return
    const before = claim.status?.reservedFor ?? []
    const valid: Frozen<ResourceClaimConsumerReference>[] = []
    for (const consumer of before) if (await isConsuming(claim, consumer, signal)) valid.push(consumer)
    const isHeld = claim.metadata.finalizers?.includes(finalizer) === true
    const isLeaving = claim.metadata.deletionTimestamp !== undefined
    if (valid.length < before.length || (isHeld && isLeaving && valid.length === 0)) claim = await release(claim, valid, signal)
    if (valid.length === 0 && !isLeaving) await removeUnneeded(claim, signal)
  }

  /** A pod that the cache does not know may be new: then the server is asked. */
  async function isConsuming({ metadata: { namespace } }: Frozen<ResourceClaim>, consumer: Frozen<ResourceClaimConsumerReference>, signal: AbortSignal) {
    const { apiGroup = '', resource, name, uid } = consumer
    if (apiGroup !== '' || resource !== 'pods') throw new Error(`unsupported ReservedFor entry: ${JSON.stringify(consumer)}`)
    const cached = podInformer.lister.get({ namespace, name })
    if (cached) return cached.metadata.uid === uid && !isPodDone(cached)
    try {
      return (await client.of(pods).get({ namespace, name }, { signal })).metadata.uid === uid
    } catch (error) {
      if (isStatus(error, 'NotFound')) return false
      throw error
    }
  }

  /** With its last consumer a claim loses its devices, too, so that the next one can run elsewhere. */
  async function release(claim: Frozen<ResourceClaim>, valid: readonly Frozen<ResourceClaimConsumerReference>[], signal: AbortSignal) {
    const isHeld = claim.metadata.finalizers?.includes(finalizer) === true
    const { allocation, reservedFor: _, ...status } = claim.status ?? {}
    const kept = {
      ...status,
      ...(allocation && !(isHeld && valid.length === 0) ? { allocation } : {}),
      ...(valid.length > 0 ? { reservedFor: valid } : {}),
    }
    const after = await client.of(resourceClaims).updateStatus({ ...claim, status: kept } as Frozen<ResourceClaim>, { signal })
    if (!after.metadata.finalizers?.includes(finalizer) || after.status?.allocation) return after
    return client.of(resourceClaims).update(withoutFinalizer(after, finalizer), { signal })
  }

  /** A claim made for a pod that will not run again; where the pod is gone, the garbage collector sees to it. */
  async function removeUnneeded(claim: Frozen<ResourceClaim>, signal: AbortSignal): Promise<void> {
    const owner = owningPod(claim)
    const pod = owner && podInformer.lister.get({ namespace: claim.metadata.namespace, name: owner.name })
    if (!pod || (pod.metadata.uid === owner.uid && !isPodDone(pod))) return
    try {
      await client.of(resourceClaims).delete(refOfKey(keyOf(claim)), { preconditions: { uid: claim.metadata.uid }, signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }
}
