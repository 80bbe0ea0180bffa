/**
 * The claims as the scheduler knows them (L3): the watched state, its own later writes, and allocations that are decided but not written yet.
 * Upstream: dynamicresources dra_manager.go, the claims' assume cache and in-flight allocations (v1.36).
 */
import type { Pod, PodResourceClaim } from '#api/gen/types/core.v1'
import type { AllocationResult, ResourceClaim } from '#api/gen/types/resource.v1'
import { isControlledBy } from '#api/helpers/owners'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { resourceClaims } from '#client/builtIn'
import type { Lister } from '#client/cache/lister'
import type { Handle } from '../../framework/handle.ts'
import { DevicesInUse } from './devicesInUse.ts'

type Claim = Frozen<ResourceClaim>

export class ClaimTracker {
  readonly inUse = new DevicesInUse()
  readonly #lister: Lister<ResourceClaim>
  /** Written by us, and newer than what the watch has said. */
  readonly #written = new Map<string, Claim>()
  readonly #promised = new Map<string, Frozen<AllocationResult>>()

  constructor(handle: Pick<Handle, 'lister' | 'watch'>) {
    this.#lister = handle.lister(resourceClaims)
    const seen = (claim: Claim) => {
      const mine = this.#written.get(keyOf(claim))
      if (mine && (mine.metadata.uid !== claim.metadata.uid || versionOf(claim) >= versionOf(mine))) this.#written.delete(keyOf(claim))
      this.#count(claim)
    }
    handle.watch(resourceClaims, {
      onAdd: (claim) => seen(claim),
      onUpdate: (old, claim) => {
        if (old.metadata.uid !== claim.metadata.uid) this.#forget(old)
        seen(claim)
      },
      onDelete: (claim) => this.#forget(claim),
    })
  }

  get(namespace: string | undefined, name: string): Claim | undefined {
    const known = this.#lister.get({ namespace, name })
    const mine = this.#written.get(`${namespace}/${name}`)
    return known && mine && mine.metadata.uid === known.metadata.uid ? mine : known
  }

  /** Whether the watch has shown it. */
  isKnown({ metadata: { namespace, name = '', uid } }: Claim): boolean {
    return this.#lister.get({ namespace, name })?.metadata.uid === uid
  }

  /** The claim that was made for the pod's extended resources. */
  extendedClaimOf(pod: Frozen<Pod>): Claim | undefined {
    const { namespace = '' } = pod.metadata
    return this.#lister.list({ namespace, matches: (claim) => isExtendedClaimOf(claim, pod) })[0]
  }

  isPromised({ metadata: { uid = '' } }: Claim): boolean {
    return this.#promised.has(uid)
  }

  /** From now on the devices are taken. */
  promise(claim: Claim, allocation: Frozen<AllocationResult>): void {
    this.#promised.set(claim.metadata.uid ?? '', allocation)
    this.#count(claim)
  }

  /** @returns whether there was a promise */
  takeBack(claim: Claim): boolean {
    const there = this.#promised.delete(claim.metadata.uid ?? '')
    if (there) this.#count(claim)
    return there
  }

  /** The promise has been kept: the API server has it. */
  written(claim: Claim): void {
    const known = this.#lister.get(refOfKey(keyOf(claim)))
    if (known && known.metadata.uid === claim.metadata.uid && versionOf(claim) > versionOf(known)) this.#written.set(keyOf(claim), claim)
    this.#promised.delete(claim.metadata.uid ?? '')
    this.#count(claim)
  }

  #forget(claim: Claim): void {
    this.#written.delete(keyOf(claim))
    this.#promised.delete(claim.metadata.uid ?? '')
    this.inUse.set(claim.metadata.uid ?? '', undefined)
  }

  #count({ metadata: { uid = '', namespace, name = '' } }: Claim): void {
    const now = this.get(namespace, name)
    this.inUse.set(uid, this.#promised.get(uid) ?? (now?.metadata.uid === uid ? now.status?.allocation : undefined))
  }
}

function versionOf({ metadata }: Claim): number {
  return Number(metadata.resourceVersion ?? 0)
}

/** The claims of a pod, in its order; or why they cannot be used. Those that its template makes unnecessary are left out. */
export function claimsOf(pod: Frozen<Pod>, tracker: ClaimTracker): { readonly claims: readonly Claim[] } | { readonly reason: string } {
  const claims: Claim[] = []
  for (const podClaim of pod.spec.resourceClaims ?? []) {
    const { namespace } = pod.metadata
    const named = claimNameOf(pod, podClaim)
    if ('reason' in named) return named
    if (named.name === undefined) continue
    const claim = tracker.get(namespace, named.name)
    if (!claim) return { reason: `resourceclaim.resource.k8s.io "${named.name}" not found` }
    if (claim.metadata.deletionTimestamp) return { reason: `resourceclaim "${named.name}" is being deleted` }
    if (named.mustBeOwned && !isControlledBy(claim, pod))
      return { reason: `ResourceClaim ${keyOf(claim)} was not created for Pod ${keyOf(pod)} (Pod is not owner)` }
    claims.push(claim)
  }
  return { claims }
}

function claimNameOf(
  pod: Frozen<Pod>,
  { name, resourceClaimName, resourceClaimTemplateName }: Frozen<PodResourceClaim>,
): { readonly name: string | undefined; readonly mustBeOwned: boolean } | { readonly reason: string } {
  if (resourceClaimName !== undefined) return { name: resourceClaimName, mustBeOwned: false }
  if (resourceClaimTemplateName === undefined) return { reason: `pod "${keyOf(pod)}", spec.resourceClaim "${name}": none of the supported fields are set` }
  const made = pod.status?.resourceClaimStatuses?.find((one) => one.name === name)
  return made ? { name: made.resourceClaimName, mustBeOwned: true } : { reason: `pod "${keyOf(pod)}": ResourceClaim not created yet` }
}

const maxConsumers = 256

export function canBeReserved({ status }: Claim): boolean {
  return (status?.reservedFor?.length ?? 0) < maxConsumers
}

export function isReservedFor({ status }: Claim, pod: Frozen<Pod>): boolean {
  return status?.reservedFor?.some(({ uid }) => uid === pod.metadata.uid) === true
}

export const extendedClaimAnnotation = 'resource.kubernetes.io/extended-resource-claim'

export function isExtendedClaim({ metadata }: Claim): boolean {
  return metadata.annotations?.[extendedClaimAnnotation] === 'true'
}

function isExtendedClaimOf(claim: Claim, pod: Frozen<Pod>): boolean {
  const { name, uid } = pod.metadata
  return (
    isExtendedClaim(claim) && claim.metadata.ownerReferences?.some((owner) => owner.controller === true && owner.name === name && owner.uid === uid) === true
  )
}
