/**
 * Keeps metadata.managedFields of an object that is created, updated or patched (L1): the passes in their order.
 * Upstream: apimachinery/pkg/util/managedfields (v1.36). Objects arrive decoded by their schema, in the request's version. Apply has passes of its own.
 */
import type { DeepReadonly } from '#base/frozen'
import type { Steps } from '#base/steps'
import type { KubeObject } from '../machinery/meta.ts'
import { addFields } from './addFields.ts'
import { capUpdaters } from './capUpdaters.ts'
import type { Claim } from './claims.ts'
import { compareUpdate, comparingUpdate } from './compareWrite.ts'
import { claimsBeforeUpdate } from './decodeClaims.ts'
import { dropFields } from './dropFields.ts'
import { encodeClaims } from './encodeClaims.ts'
import type { TrackedWrite } from './trackedWrite.ts'

/** A manager without a name is called 'unknown'. */
export interface UpdateInput extends TrackedWrite {
  /** Undefined on create. */
  readonly old: DeepReadonly<KubeObject> | undefined
  /** Changed in place: its metadata.managedFields are set. */
  readonly updated: KubeObject
}

/** Sets `updated.metadata.managedFields`. */
export function trackUpdate(input: UpdateInput): void {
  const before = trackedClaims(input)
  if (before === undefined) return
  const change = compareUpdate(input, input.old, input.updated)
  keepClaims(input, capUpdaters(addFields(dropFields(before, change), before, input, change)))
}

/** {@link trackUpdate}, with pauses. The objects must not change meanwhile. */
export function* trackUpdateSteps(input: UpdateInput): Steps<void> {
  const before = trackedClaims(input)
  if (before === undefined) return
  yield
  const change = yield* comparingUpdate(input, input.old, input.updated)
  yield
  const left = dropFields(before, change)
  yield
  const claims = capUpdaters(addFields(left, before, input, change))
  yield
  keepClaims(input, claims)
}

/** Undefined for an object that was never tracked: it stays untracked until someone applies. */
function trackedClaims({ old, updated, subresource }: UpdateInput): readonly Claim[] | undefined {
  const before = claimsBeforeUpdate(old, updated, subresource)
  if (before.length > 0 || old === undefined) return before
  delete updated.metadata.managedFields
  return undefined
}

function keepClaims({ updated }: UpdateInput, claims: readonly Claim[]): void {
  if (claims.length > 0) updated.metadata.managedFields = encodeClaims(claims)
  else delete updated.metadata.managedFields
}
