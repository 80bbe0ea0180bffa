/**
 * Server-side apply (L1): the passes in their order.
 * Upstream: apimachinery/pkg/util/managedfields, structured-merge-diff/v6/merge/update.go (v1.36). Objects arrive decoded by their schema, in the
 * request's version.
 */
import type { DeepReadonly } from '#base/frozen'
import { finished, type Steps } from '#base/steps'
import type { KubeObject } from '../machinery/meta.ts'
import { jsonEqual } from '../machinery/objects.ts'
import { badRequest } from '../machinery/status.ts'
import { type Claim, claimOf, sameManager } from './claims.ts'
import { type Comparison, withoutServerFields } from './compareObjects.ts'
import { comparingApplied } from './compareWrite.ts'
import { type Conflict, conflictError, conflictsOf } from './conflicts.ts'
import { claimsBeforeApply } from './decodeClaims.ts'
import { dropFields } from './dropFields.ts'
import { encodeClaims } from './encodeClaims.ts'
import { refuseFaults } from './faults.ts'
import { differenceBelow, equals, type FieldSet, isEmpty, setOfFields } from './fieldSet.ts'
import { allowedByLastApplied, renewLastApplied } from './lastApplied.ts'
import { mergeTyped, mergingSteps } from './merge.ts'
import { prune } from './prune.ts'
import type { TrackedWrite } from './trackedWrite.ts'
import { fieldSetOf } from './typed.ts'

export interface ApplyInput extends TrackedWrite {
  readonly live: DeepReadonly<KubeObject> | undefined
  readonly applied: DeepReadonly<KubeObject>
  readonly force: boolean
  /** Fields of the configuration that decoding did not find in the schema: apply refuses them. */
  readonly unknownFields?: readonly string[] | undefined
}

/**
 * @returns the new object (the live one is not changed), with managedFields; equal to the live one when nothing changed.
 * @throws StatusError Conflict with FieldManagerConflict causes unless forced; BadRequest when the configuration holds managedFields.
 */
export function apply(input: ApplyInput): KubeObject {
  return finished(steps(input, false))
}

/** {@link apply}, with pauses. The objects must not change meanwhile. */
export function applySteps(input: ApplyInput): Steps<KubeObject> {
  return steps(input, true)
}

function* steps(input: ApplyInput, isLarge: boolean): Steps<KubeObject> {
  const { live, applied } = input
  if (applied.metadata.managedFields !== undefined && applied.metadata.managedFields.length > 0) throw badRequest('metadata.managedFields must be nil')
  refuseFaults(input)
  yield
  const attempt = yield* applyOnce(input, input.force, isLarge)
  yield
  if (attempt.conflicts.length === 0) return finish(input, attempt)
  // Moving from client-side apply: kubectl may take the fields that it applied according to the annotation.
  if (input.manager === 'kubectl' && live !== undefined && allowedByLastApplied(live, attempt.conflicts, input.schema)) {
    return finish(input, yield* applyOnce(input, true, isLarge))
  }
  throw conflictError(attempt.conflicts)
}

interface Attempt {
  readonly object: KubeObject
  readonly claims: readonly Claim[]
  readonly unchanged: boolean
  readonly conflicts: readonly Conflict[]
}

function* applyOnce(input: ApplyInput, force: boolean, isLarge: boolean): Steps<Attempt> {
  const { live, applied, schema } = input
  const before = claimsBeforeApply(live, input)
  yield
  const self = claimOf(input, 'Apply', appliedFields(input))
  yield
  const last = before.find((claim) => sameManager(claim, self))
  const others = before.filter((claim) => claim !== last)
  const merged = (isLarge ? yield* mergingSteps(live, applied, schema) : mergeTyped(live, applied, schema)) as KubeObject
  yield
  const object = last === undefined ? merged : prune(merged, last, [...others, self], input)
  object.apiVersion = applied.apiVersion
  object.kind = applied.kind
  yield
  const change = yield* comparingApplied(input, live, object)
  yield
  const conflicts = force ? [] : conflictsOf(others, change)
  yield
  const left = dropFields(others, change)
  yield
  const claims = isEmpty(self.fields) ? left : [...left, self]
  return { object, claims, conflicts, unchanged: isUnchanged(live, object, change, last, self) }
}

/** The fields that the manager owns by this configuration. */
function appliedFields({ applied, schema, resetFields }: ApplyInput): FieldSet {
  const set = withoutServerFields(fieldSetOf(applied, schema))
  return resetFields === undefined || resetFields.length === 0 ? set : differenceBelow(set, setOfFields(resetFields))
}

function isUnchanged(live: ApplyInput['live'], object: KubeObject, { changed, removed }: Comparison, last: Claim | undefined, self: Claim): boolean {
  return (
    live !== undefined &&
    isEmpty(changed) &&
    isEmpty(removed) &&
    (last === undefined ? isEmpty(self.fields) : last.apiVersion === self.apiVersion && equals(last.fields, self.fields)) &&
    sameBesidesManagedFields(live, object)
  )
}

function sameBesidesManagedFields(a: DeepReadonly<KubeObject>, b: DeepReadonly<KubeObject>): boolean {
  const strip = ({ metadata: { managedFields: _managedFields, ...metadata }, ...rest }: DeepReadonly<KubeObject>) => ({ ...rest, metadata })
  return jsonEqual(strip(a), strip(b))
}

function finish({ live, applied, manager }: ApplyInput, { object, claims, unchanged }: Attempt): KubeObject {
  const entries = live?.metadata.managedFields
  if (unchanged && entries !== undefined && entries.length > 0) return object
  object.metadata.managedFields = encodeClaims(claims)
  if (manager === 'kubectl') renewLastApplied(object, applied)
  return object
}
