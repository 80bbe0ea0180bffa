/**
 * Writes what was decided about claims (L3): devices and consumer before the pod is bound, and their release when it is not bound after all.
 * Upstream: dynamicresources.go bindClaim, Unreserve, PostFilter (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { AllocationResult, ResourceClaim } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { resourceClaims } from '#client/builtIn'
import { retryOnConflict } from '#client/retryOnConflict'
import type { Handle } from '../../framework/handle.ts'

type Claim = Frozen<ResourceClaim>

export const finalizer = 'resource.kubernetes.io/delete-protection'

/** @throws Error when the claim is being deleted or another client has changed it */
export async function bindClaim(
  handle: Handle,
  claim: Claim,
  allocation: Frozen<AllocationResult> | undefined,
  pod: Frozen<Pod>,
  signal: AbortSignal,
): Promise<Claim> {
  const calls = handle.client.of(resourceClaims)
  const key = keyOf(claim)
  let known: Claim | undefined = claim
  const write = async (): Promise<Claim> => {
    let now = known ?? (await calls.get(refOfKey(key), { signal }))
    // Another try begins with what is there then.
    known = undefined
    if (now.metadata.uid !== claim.metadata.uid || now.metadata.deletionTimestamp) throw new Error(`claim ${key} got deleted in the meantime`)
    if (allocation && now.status?.allocation) throw new Error(`claim ${key} got allocated elsewhere in the meantime`)
    if (allocation && !now.metadata.finalizers?.includes(finalizer)) {
      const finalizers = [...(now.metadata.finalizers ?? []), finalizer]
      now = await calls.update({ ...now, metadata: { ...now.metadata, finalizers } }, { signal })
    }
    const { name = '', uid = '' } = pod.metadata
    const allocated = allocation ?? now.status?.allocation
    if (!allocated) throw new Error(`claim ${key} got deallocated in the meantime`)
    const reservedFor = [...(now.status?.reservedFor ?? []), { resource: 'pods', name, uid }]
    const timed = { ...allocated, allocationTimestamp: allocated.allocationTimestamp ?? formatTime(handle.clock.now()) }
    return calls.updateStatus({ ...now, status: { ...now.status, allocation: timed, reservedFor } }, { signal })
  }
  return retryOnConflict(handle, write, { signal })
}

export async function releaseClaim(handle: Handle, claim: Claim, pod: Frozen<Pod>): Promise<void> {
  const { uid } = claim.metadata
  const body = { metadata: { uid }, status: { reservedFor: [{ $patch: 'delete', uid: pod.metadata.uid }] } }
  await handle.client.of(resourceClaims).patch(refOfKey(keyOf(claim)), 'strategic', body, { subresource: 'status' })
}

/** The claim is unused and blocks the pod from nodes that fit. */
export async function deallocateClaim(handle: Handle, claim: Claim): Promise<void> {
  const { allocation: _, reservedFor: __, devices: ___, ...status } = claim.status ?? {}
  await handle.client.of(resourceClaims).updateStatus({ ...claim, status })
}
