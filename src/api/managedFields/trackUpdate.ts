/**
 * Keeps metadata.managedFields of an object that is created, updated or patched (L1): the passes in their order.
 * Upstream: apimachinery/pkg/util/managedfields (v1.36). Objects arrive decoded by their schema, in the request's version. Apply has passes of its own.
 */
import type { DeepReadonly } from '#base/frozen'
import { finished, type Steps } from '#base/steps'
import type { KubeObject } from '../machinery/meta.ts'
import { addFields } from './addFields.ts'
import { capUpdaters } from './capUpdaters.ts'
import { compareUpdate } from './compareWrite.ts'
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
  finished(trackUpdateSteps(input))
}

/** {@link trackUpdate}, with pauses. The objects must not change meanwhile. */
export function* trackUpdateSteps(input: UpdateInput): Steps<void> {
  const { old, updated } = input
  const before = claimsBeforeUpdate(old, updated, input.subresource)
  // An object that was never tracked stays untracked until someone applies.
  if (before.length === 0 && old !== undefined) {
    delete updated.metadata.managedFields
    return
  }
  yield
  const change = yield* compareUpdate(input, old, updated)
  yield
  const left = dropFields(before, change)
  yield
  const claims = capUpdaters(addFields(left, before, input, change))
  yield
  if (claims.length > 0) updated.metadata.managedFields = encodeClaims(claims)
  else delete updated.metadata.managedFields
}
