/**
 * Field ownership (L1): server-side apply, and the bookkeeping of managedFields on every other write.
 * Upstream: apimachinery/pkg/util/managedfields, structured-merge-diff/v6/merge/update.go (v1.36). Objects arrive decoded by their
 * schema, in the request's version; versions.ts looks at them as other versions do.
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject } from '../machinery/meta.ts'
import { type JsonObject, jsonEqual, setOwn } from '../machinery/objects.ts'
import { badRequest, StatusError } from '../machinery/status.ts'
import { withNils } from '../schema/nils.ts'
import type { Schema } from '../schema/schema.ts'
import { type Comparison, compareObjects, withoutServerFields } from './compare.ts'
import { type Claim, capUpdateManagers, readEntries, sameManager, timeOf, writeEntries } from './entries.ts'
import { configurationFaults } from './faults.ts'
import { difference, differenceBelow, equals, type FieldSet, intersection, isEmpty, pathsOf, setOfFields, union, withNamedParents } from './fieldSet.ts'
import { mergeTyped, removeFields } from './merge.ts'
import { fieldSetOf } from './typed.ts'
import { type OtherVersions, perVersion, pruneAcrossVersions } from './versions.ts'

interface Common {
  readonly schema: Schema | undefined
  /** The field manager's name; '' becomes 'unknown'. */
  readonly manager: string
  /** The request's group/version. */
  readonly apiVersion: string
  readonly subresource?: string | undefined
  /** Dotted fields that this endpoint resets and nobody may own through it: 'status' on the main resource, 'spec' on …/status. */
  readonly resetFields?: readonly string[] | undefined
  readonly nowMs: number
  /** The resource's other versions; absent: they all have one shape. */
  readonly otherVersion?: OtherVersions | undefined
}

export interface UpdateInput extends Common {
  /** Undefined on create. */
  readonly old: DeepReadonly<KubeObject> | undefined
  /** Changed in place: its metadata.managedFields are set. */
  readonly updated: KubeObject
}

export interface ApplyInput extends Common {
  readonly live: DeepReadonly<KubeObject> | undefined
  readonly applied: DeepReadonly<KubeObject>
  readonly force: boolean
  /** What decoding found beyond the schema: apply refuses it. */
  readonly unknownFields?: readonly string[] | undefined
}

const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration'

/** Work in passes, each of which takes its time over a large object: the caller may do other work in between. */
type Steps<T> = Generator<undefined, T>

function finished<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Keeps managedFields of an object that is created, updated or patched (not applied). Sets `updated.metadata.managedFields`. */
export function trackUpdate(input: UpdateInput): void {
  finished(trackUpdateSteps(input))
}

/** {@link trackUpdate}, with pauses. The objects must not change meanwhile. */
export function* trackUpdateSteps(input: UpdateInput): Steps<void> {
  const { old, updated } = input
  const claims = startingClaims(old, updated, input.subresource !== undefined && input.subresource !== '')
  // An object that was never tracked stays untracked until someone applies.
  const isTracked = claims.length > 0 || old === undefined
  const next = isTracked ? capUpdateManagers(yield* updateClaims(claims, input)) : []
  yield
  if (next.length > 0) updated.metadata.managedFields = writeEntries(next)
  else delete updated.metadata.managedFields
}

/** A client may rewrite managedFields, or reset them with one empty entry; leaving them out keeps the live ones. */
function startingClaims(old: DeepReadonly<KubeObject> | undefined, updated: KubeObject, ignoreRequest: boolean): readonly Claim[] {
  const live = readEntries(old?.metadata.managedFields) ?? []
  const requested = updated.metadata.managedFields
  if (ignoreRequest || requested === undefined || requested.length === 0) return live
  if (requested.length === 1 && Object.keys(requested[0] ?? {}).length === 0) return []
  return readEntries(requested) ?? live
}

function compareOf(old: DeepReadonly<KubeObject> | undefined, updated: DeepReadonly<KubeObject>, schema: Schema | undefined): Comparison {
  return compareObjects(old as unknown as JsonObject | undefined, updated as unknown as JsonObject, schema)
}

function filtered(comparison: Comparison, resetFields: readonly string[] | undefined): Comparison {
  if (resetFields === undefined || resetFields.length === 0) return comparison
  const reset = setOfFields(resetFields)
  return { changed: differenceBelow(comparison.changed, reset), removed: differenceBelow(comparison.removed, reset) }
}

/** Both objects as Go shows them, without the members that they share: nothing can have changed there. Conversions to other versions want them whole. */
function comparedParts({ old, updated, otherVersion }: UpdateInput): { old: DeepReadonly<KubeObject> | undefined; updated: KubeObject } {
  if (!old || otherVersion) return { old: old && withNils(old), updated: withNils(updated) }
  const before = old as unknown as JsonObject
  const after = updated as unknown as JsonObject
  return {
    old: withNils(ownMembers(before, after)) as unknown as DeepReadonly<KubeObject>,
    updated: withNils(ownMembers(after, before)) as unknown as KubeObject,
  }
}

/** The members that are not the other's very own; what names the type stays. */
function ownMembers(object: JsonObject, other: JsonObject): JsonObject {
  const own: JsonObject = { apiVersion: object.apiVersion, kind: object.kind }
  for (const name of Object.keys(object)) if (object[name] !== other[name]) setOwn(own, name, object[name])
  return own
}

function* updateClaims(claims: readonly Claim[], input: UpdateInput): Steps<Claim[]> {
  yield
  const { old, updated } = comparedParts(input)
  const { changed, removed } = filtered(compareOf(old, updated, input.schema), input.resetFields)
  yield
  const self: Claim = {
    manager: input.manager === '' ? 'unknown' : input.manager,
    operation: 'Update',
    apiVersion: input.apiVersion,
    subresource: input.subresource ?? '',
    time: timeOf(input.nowMs),
    fields: changed,
  }
  const next = withoutFields(claims, lossesOf(input, old, updated, { changed, removed }))
  yield
  if (isEmpty(changed)) return next
  const at = next.findIndex((claim) => sameManager(claim, self))
  const previous = claims.find((claim) => sameManager(claim, self))
  // The manager's own claim loses only what was removed.
  const kept = previous === undefined ? {} : difference(previous.fields, removed)
  const claim = { ...self, fields: union(kept, changed) }
  if (at >= 0) next[at] = claim
  else next.push(claim)
  return next
}

interface Loss {
  readonly changed: FieldSet
  /** What other managers lose: the changed and the removed. */
  readonly gone: FieldSet
}

/** What a write changes, as each version shows it; undefined for versions that are gone. */
type Losses = (apiVersion: string) => Loss | undefined

function lossesOf(input: Common, old: DeepReadonly<KubeObject> | undefined, updated: DeepReadonly<KubeObject>, own: Comparison): Losses {
  const lossOf = ({ changed, removed }: Comparison): Loss => ({ changed, gone: union(changed, removed) })
  return perVersion(input, lossOf(own), ({ schema, show }) => lossOf(filtered(compareOf(old && show(old), show(updated), schema), input.resetFields)))
}

/** Everybody loses what was changed by another or removed; empty claims vanish. */
function withoutFields(claims: readonly Claim[], lossIn: Losses): Claim[] {
  const next: Claim[] = []
  for (const claim of claims) {
    const loss = lossIn(claim.apiVersion)
    if (!loss) continue
    const fields = isEmpty(loss.gone) ? claim.fields : difference(claim.fields, loss.gone)
    if (!isEmpty(fields)) next.push(fields === claim.fields ? claim : { ...claim, fields })
  }
  return next
}

/**
 * Server-side apply.
 * @returns the new object (the live one is not changed), with managedFields; equal to the live one when nothing changed.
 * @throws StatusError Conflict with FieldManagerConflict causes unless forced; BadRequest when the configuration holds managedFields.
 */
export function apply(input: ApplyInput): KubeObject {
  return finished(applySteps(input))
}

/** {@link apply}, with pauses. The objects must not change meanwhile. */
export function* applySteps(input: ApplyInput): Steps<KubeObject> {
  const { live, applied, schema } = input
  if (applied.metadata.managedFields !== undefined && applied.metadata.managedFields.length > 0) throw badRequest('metadata.managedFields must be nil')
  refuseFaults(input)
  yield
  const attempt = yield* applyOnce(input, input.force)
  yield
  if (attempt.conflicts.length === 0) return finish(input, attempt)
  // Moving from client-side apply: what the annotation says kubectl applied is kubectl's to take.
  if (input.manager === 'kubectl' && live !== undefined && allowedByLastApplied(live, attempt.conflicts, schema))
    return finish(input, yield* applyOnce(input, true))
  throw conflictError(attempt.conflicts)
}

interface Attempt {
  readonly object: KubeObject
  readonly claims: readonly Claim[]
  readonly unchanged: boolean
  readonly conflicts: readonly Conflict[]
}

interface Conflict {
  readonly claim: Claim
  readonly fields: FieldSet
}

function* applyOnce(input: ApplyInput, force: boolean): Steps<Attempt> {
  const { live, applied, schema } = input
  const before = claimsBeforeApply(input)
  yield
  const owned = ownSet(input)
  yield
  const self: Claim = {
    manager: input.manager,
    operation: 'Apply',
    apiVersion: input.apiVersion,
    subresource: input.subresource ?? '',
    time: timeOf(input.nowMs),
    fields: owned,
  }
  const last = before.find((claim) => sameManager(claim, self))
  const others = before.filter((claim) => claim !== last)
  const merged = mergeTyped(live, applied, schema) as KubeObject
  yield
  const object = last === undefined ? merged : prune(merged, last, [...others, self], input)
  object.apiVersion = applied.apiVersion
  object.kind = applied.kind
  yield
  const comparison = filtered(compareOf(live, object, schema), input.resetFields)
  yield
  const lossIn = lossesOf(input, live, object, comparison)
  const conflicts = force ? [] : conflictsOf(others, lossIn)
  yield
  const claims = [...withoutFields(others, lossIn), ...(isEmpty(owned) ? [] : [self])]
  yield
  const unchanged =
    live !== undefined &&
    isEmpty(comparison.changed) &&
    isEmpty(comparison.removed) &&
    (last === undefined ? isEmpty(owned) : last.apiVersion === self.apiVersion && equals(last.fields, owned)) &&
    sameBesidesManagedFields(live, object)
  return { object, claims, unchanged, conflicts }
}

/** An object that nobody applied yet gets one claim for all that is there. */
function claimsBeforeApply({ live, schema, nowMs }: ApplyInput): readonly Claim[] {
  if (live === undefined) return []
  const claims = readEntries(live.metadata.managedFields) ?? []
  if (claims.length > 0) return claims
  const { changed } = compareOf(undefined, live, schema)
  if (isEmpty(changed)) return []
  return [{ manager: 'before-first-apply', operation: 'Update', apiVersion: live.apiVersion, subresource: '', time: timeOf(nowMs), fields: changed }]
}

function ownSet({ applied, schema, resetFields }: ApplyInput): FieldSet {
  const set = withoutServerFields(fieldSetOf(applied, schema))
  return resetFields === undefined || resetFields.length === 0 ? set : differenceBelow(set, setOfFields(resetFields))
}

/** Takes out what this manager applied before, does not apply now, and nobody else owns. */
function prune(merged: KubeObject, last: Claim, claims: readonly Claim[], input: ApplyInput): KubeObject {
  const { apiVersion, schema, otherVersion } = input
  if (otherVersion && (last.apiVersion !== apiVersion || claims.some((claim) => claim.apiVersion !== apiVersion))) {
    return pruneAcrossVersions(merged, last, claims, input)
  }
  const owned = claims.reduce<FieldSet>((set, claim) => union(set, claim.fields), {})
  const doomed = difference(last.fields, withNamedParents(owned))
  return isEmpty(doomed) ? merged : (removeFields(merged, doomed, schema) as KubeObject)
}

function conflictsOf(others: readonly Claim[], lossIn: Losses): Conflict[] {
  return others
    .map((claim) => ({ claim, fields: intersection(claim.fields, lossIn(claim.apiVersion)?.changed ?? {}) }))
    .filter(({ fields }) => !isEmpty(fields))
}

function sameBesidesManagedFields(a: DeepReadonly<KubeObject>, b: DeepReadonly<KubeObject>): boolean {
  const strip = ({ metadata: { managedFields: _managedFields, ...metadata }, ...rest }: DeepReadonly<KubeObject>) => ({ ...rest, metadata })
  return jsonEqual(strip(a), strip(b))
}

function finish({ live, applied, manager }: ApplyInput, { object, claims, unchanged }: Attempt): KubeObject {
  const entries = live?.metadata.managedFields
  if (unchanged && entries !== undefined && entries.length > 0) return object
  object.metadata.managedFields = writeEntries(claims)
  // Who later goes back to client-side apply must find there what was applied last.
  const annotations = object.metadata.annotations
  if (manager === 'kubectl' && annotations?.[lastAppliedAnnotation] !== undefined) annotations[lastAppliedAnnotation] = `${JSON.stringify(applied)}\n`
  return object
}

function allowedByLastApplied(live: DeepReadonly<KubeObject>, conflicts: readonly Conflict[], schema: Schema | undefined): boolean {
  const annotation = live.metadata.annotations?.[lastAppliedAnnotation]
  if (annotation === undefined || annotation === '') return false
  let configuration: unknown
  try {
    configuration = JSON.parse(annotation)
  } catch {
    // Not what kubectl wrote: it proves nothing.
    return false
  }
  if (typeof configuration !== 'object' || configuration === null) return false
  const allowed = fieldSetOf(configuration, schema)
  return conflicts.every(({ fields }) => isEmpty(difference(fields, allowed)))
}

function refuseFaults({ applied, schema, unknownFields = [] }: ApplyInput): void {
  const faults = [...unknownFields.map((path) => `.${path}: field not declared in schema`), ...configurationFaults(applied, schema)]
  if (faults.length === 0) return
  const { namespace, name = '' } = applied.metadata
  const text = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`
  throw new StatusError(
    '',
    `failed to create typed patch object (${namespace ? `${namespace}/` : '/'}${name}; ${applied.apiVersion}, Kind=${applied.kind}): ${text}`,
  )
}

function conflictError(conflicts: readonly Conflict[]): StatusError {
  const lines = conflicts
    .map(({ claim, fields }) => ({ manager: printManager(claim), paths: pathsOf(fields) }))
    .sort((a, b) => (a.manager < b.manager ? -1 : 1))
  const count = lines.reduce((sum, { paths }) => sum + paths.length, 0)
  const message =
    count === 1
      ? `Apply failed with 1 conflict: conflict with ${lines[0]?.manager}: ${lines[0]?.paths[0]}`
      : `Apply failed with ${count} conflicts: ${lines.flatMap(({ manager, paths }) => [`conflicts with ${manager}:`, ...paths.map((path) => `- ${path}`)]).join('\n')}`
  const causes = lines.flatMap(({ manager, paths }) => paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${manager}`, field })))
  return new StatusError('Conflict', message, { details: { causes } })
}

function printManager({ manager, operation, apiVersion, subresource }: Claim): string {
  const name = `${JSON.stringify(manager)}${subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`}`
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}
