/**
 * The claim that the scheduler itself makes for a pod's extended resources (L3): kept in memory while a node is sought, made in the API before the pod is
 * bound, deleted when it is not bound after all. Upstream: plugins/dynamicresources/extendeddynamicresources.go (v1.36).
 */
import type { ContainerExtendedResourceRequest, Pod } from '#api/gen/types/core.v1'
import type { AllocationResult, ResourceClaim } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { type Random, randomUid } from '#base/random'
import { pods, resourceClaims } from '#client/builtIn'
import { retryOnConflict } from '#client/retryOnConflict'
import type { Handle } from '../../framework/handle.ts'
import type { NodeInfo } from '../../framework/nodeInfo.ts'
import type { PodInfo } from '../../framework/podInfo.ts'
import { type Refusal, unresolvable } from '../../framework/status.ts'
import { type ClaimTracker, extendedClaimAnnotation } from './claimTracker.ts'
import { bindClaim, finalizer } from './claimWrites.ts'
import { type ExtendedResourceClasses, extendedRequests } from './extendedResources.ts'

type Claim = Frozen<ResourceClaim>

/** No name that a claim could have: this one is in memory only. */
export const temporaryName = '<extended-resources>'
const pollMs = 100
const seenLimitMs = 120_000

/** What a cycle knows of the pod's extended resources. */
export interface ExtendedClaim {
  /** What an earlier cycle has left: nothing fits until it is gone. */
  readonly stale: Claim | undefined
  readonly temporary: Claim
  readonly pod: PodInfo
  /** Set by reserve: what the chosen node has to give. */
  chosen?: ExtendedVariant | undefined
  /** Set when it is in the API. */
  made?: Claim
}

/** The claim as one node would have to satisfy it. */
export interface ExtendedVariant {
  readonly claim: Claim
  readonly mappings: readonly ContainerExtendedResourceRequest[]
}

/** @returns undefined when no class gives what the pod asks for */
export function extendedClaimOf(pod: PodInfo, classes: ExtendedResourceClasses, tracker: ClaimTracker, random: Random): ExtendedClaim | undefined {
  if (classes.givenBy(pod.otherResources).length === 0) return undefined
  return { stale: tracker.extendedClaimOf(pod.pod), temporary: temporaryClaim(pod.pod, random), pod }
}

function temporaryClaim({ metadata: { namespace, name = '', uid = '' } }: Frozen<Pod>, random: Random): Claim {
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: {
      ...(namespace === undefined ? {} : { namespace }),
      name: temporaryName,
      uid: randomUid(random),
      generateName: `${name}-extended-resources-`,
      annotations: { [extendedClaimAnnotation]: 'true' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }],
    },
    spec: {},
    status: {},
  }
}

const staleClaim = unresolvable('cannot schedule extended resource claim')
const cannotFit = unresolvable('cannot fit resource')

/** Resources that the node's device plugins provide are not requested from DRA drivers. Undefined when no request remains. */
export function variantFor({ stale, temporary, pod }: ExtendedClaim, node: NodeInfo, classes: ExtendedResourceClasses): ExtendedVariant | Refusal | undefined {
  if (stale) return staleClaim
  const asked: string[] = []
  for (const name of pod.otherResources) {
    if (!name.includes('/')) continue
    if (!node.allocatable[name] && classes.classOf(name) !== undefined) asked.push(name)
    else if (node.allocatable[name] === undefined) return cannotFit
  }
  if (asked.length === 0) return undefined
  const { requests, mappings } = extendedRequests(pod.pod, asked, (name) => classes.classOf(name))
  return { claim: { ...temporary, spec: { devices: { requests } } }, mappings }
}

export interface WriteDeps {
  readonly handle: Handle
  readonly tracker: ClaimTracker
  readonly creates: (status: 'success' | 'failure') => void
}

/**
 * Makes the chosen variant's claim, allocated and reserved, and tells the pod's status of it. Its devices stay promised until the watch has shown it.
 * @returns the claim as written
 */
export async function makeExtendedClaim(
  { handle, tracker, creates }: WriteDeps,
  extended: ExtendedClaim,
  allocation: Frozen<AllocationResult>,
  signal: AbortSignal,
): Promise<Claim> {
  const { chosen, temporary, pod } = extended
  if (!chosen) throw new Error(`pod ${pod.key}: no node was chosen for its extended resources`)
  const { name: _name, uid: _uid, ...metadata } = deepCopy<ResourceClaim>(chosen.claim).metadata
  const calls = handle.client.of(resourceClaims)
  const made = await calls.create({ metadata, spec: deepCopy<ResourceClaim>(chosen.claim).spec }, { signal }).catch((error: unknown) => {
    creates('failure')
    throw new Error(`create claim for extended resources of pod ${pod.key}: ${messageOf(error)}`)
  })
  creates('success')
  extended.made = made
  const written = await bindClaim(handle, made, allocation, pod.pod, signal)
  extended.made = written
  const deadlineMs = handle.clock.monotonicMs() + seenLimitMs
  while (!tracker.isKnown(written) && handle.clock.monotonicMs() < deadlineMs) await handle.clock.sleep(pollMs, signal)
  tracker.written(written)
  tracker.takeBack(temporary)
  const { uid, namespace, name = '' } = pod.pod.metadata
  const status = { extendedResourceClaimStatus: { resourceClaimName: written.metadata.name ?? '', requestMappings: chosen.mappings } }
  await handle.client.of(pods).patch({ namespace, name }, 'strategic', { metadata: { uid }, status }, { subresource: 'status', signal })
  return written
}

/** With the finalizer that keeps an allocated claim; one that is gone already is fine. */
export async function deleteClaim(handle: Handle, claim: Claim): Promise<void> {
  const calls = handle.client.of(resourceClaims)
  const ref = refOfKey(keyOf(claim))
  const gone = (error: unknown) => {
    if (!isStatus(error, 'NotFound')) throw error
  }
  const release = async () => {
    const now = await calls.get(ref)
    if (now.metadata.uid !== claim.metadata.uid || !now.metadata.finalizers?.includes(finalizer)) return
    await calls.update({ ...now, metadata: { ...now.metadata, finalizers: now.metadata.finalizers.filter((one) => one !== finalizer) } })
  }
  await retryOnConflict(handle, release).catch(gone)
  await calls.delete(ref, { preconditions: { uid: claim.metadata.uid ?? '' } }).catch(gone)
}
