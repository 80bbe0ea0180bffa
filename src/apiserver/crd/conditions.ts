/**
 * Computes the status of a CustomResourceDefinition (L3, pure): the accepted names and the conditions.
 * Upstream: apiextensions-apiserver/pkg/controller/{status,establish,nonstructuralschema,apiapproval}.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionCondition, CustomResourceDefinitionNames } from '#api/gen/types/apiextensions.v1'
import { approvalOf, isProtectedGroup } from '#api/kinds/apiextensions/approval'
import { isCaBundle } from '#api/kinds/apiextensions/conversion'
import { findCondition } from '#api/machinery/conditions'
import { jsonEqual } from '#api/machinery/objects'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { type Definition, hasCondition } from './definitions.ts'

type Status = CustomResourceDefinition['status']
type Condition = CustomResourceDefinitionCondition

/**
 * The status that a definition should have, given the others of its group; undefined when it has this status.
 * @param violations the message of the NonStructuralSchema condition; undefined when all schemas are structural
 */
export function plannedStatus(definition: Definition, others: readonly Definition[], nowMs: number, violations: string | undefined): Status | undefined {
  const status = deepCopy<Status>(definition.status)
  acceptNames(definition, others, status, nowMs)
  establish(definition, status, nowMs)
  if (violations) setDefinitionCondition(status, { type: 'NonStructuralSchema', status: 'True', reason: 'Violations', message: violations }, nowMs)
  else status.conditions = status.conditions?.filter(({ type }) => type !== 'NonStructuralSchema')
  approve(definition, status, nowMs)
  return jsonEqual(status, { ...definition.status, conditions: definition.status.conditions }) ? undefined : status
}

/** Sets a condition; lastTransitionTime changes only with the status. */
export function setDefinitionCondition(status: Status, wanted: Condition, nowMs: number): void {
  status.conditions ??= []
  const existing = findCondition(status.conditions, wanted.type)
  if (!existing) status.conditions.push({ lastTransitionTime: formatTime(nowMs), ...wanted })
  else {
    if (existing.status !== wanted.status || !existing.lastTransitionTime) existing.lastTransitionTime = formatTime(nowMs)
    existing.status = wanted.status
    existing.reason = wanted.reason
    existing.message = wanted.message
  }
}

function acceptNames(definition: Definition, others: readonly Definition[], status: Status, nowMs: number): void {
  const wanted = deepCopy<CustomResourceDefinitionNames>(definition.spec.names)
  const accepted = status.acceptedNames ?? { kind: '', plural: '' }
  if (jsonEqual(wanted, accepted)) return
  const { names, conflict } = chooseNames(wanted, accepted, claimedNames(definition, others))
  status.acceptedNames = names
  const condition = conflict ?? { status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
  setDefinitionCondition(status, { type: 'NamesAccepted', ...condition }, nowMs)
  const established = findCondition(status.conditions, 'Established')
  if (established?.status === 'True') return
  const waiting = conflict
    ? { reason: 'NotAccepted', message: 'not all names are accepted' }
    : { reason: 'Installing', message: 'the initial names have been accepted' }
  if (!conflict || !established) setDefinitionCondition(status, { type: 'Established', status: 'False', ...waiting }, nowMs)
}

interface Claimed {
  readonly resources: ReadonlySet<string>
  readonly kinds: ReadonlySet<string>
}

function claimedNames(definition: Definition, others: readonly Definition[]): Claimed {
  const group = [definition, ...others].map(({ status }) => status.acceptedNames)
  const text = (names: readonly (string | undefined)[]) => new Set(names.filter((name): name is string => Boolean(name)))
  return {
    resources: text(group.flatMap((names) => [names?.plural, names?.singular, ...(names?.shortNames ?? [])])),
    kinds: text(group.flatMap((names) => [names?.kind, names?.listKind])),
  }
}

type Conflict = Pick<Condition, 'status' | 'reason' | 'message'>

/** Accepts every wanted name that no other definition has. The condition reports the last conflict. */
function chooseNames(wanted: CustomResourceDefinitionNames, accepted: CustomResourceDefinitionNames, claimed: Claimed) {
  const names: CustomResourceDefinitionNames = { ...accepted }
  let conflict: Conflict | undefined
  const inUse = (name: string | undefined, own: string | undefined, used: ReadonlySet<string>) => name !== own && name !== undefined && used.has(name)
  const refuse = (reason: string, taken: readonly (string | undefined)[]) => {
    const texts = taken.map((name) => `${JSON.stringify(name)} is already in use`)
    conflict = { status: 'False', reason, message: texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? '') }
  }
  if (inUse(wanted.plural, accepted.plural, claimed.resources)) refuse('PluralConflict', [wanted.plural])
  else names.plural = wanted.plural
  if (inUse(wanted.singular, accepted.singular, claimed.resources)) refuse('SingularConflict', [wanted.singular])
  else assign(names, 'singular', wanted.singular)
  const taken = (wanted.shortNames ?? []).filter((name) => !accepted.shortNames?.includes(name) && claimed.resources.has(name))
  if (taken.length > 0) refuse('ShortNamesConflict', taken)
  else assign(names, 'shortNames', wanted.shortNames)
  if (inUse(wanted.kind, accepted.kind, claimed.kinds)) refuse('KindConflict', [wanted.kind])
  else names.kind = wanted.kind
  if (inUse(wanted.listKind, accepted.listKind, claimed.kinds)) refuse('ListKindConflict', [wanted.listKind])
  else assign(names, 'listKind', wanted.listKind)
  assign(names, 'categories', wanted.categories)
  return { names, conflict }
}

function assign<K extends keyof CustomResourceDefinitionNames>(names: CustomResourceDefinitionNames, key: K, value: CustomResourceDefinitionNames[K]): void {
  if (value === undefined) delete names[key]
  else names[key] = value
}

function establish(definition: Definition, status: Status, nowMs: number): void {
  if (findCondition(status.conditions, 'NamesAccepted')?.status !== 'True' || hasCondition(definition, 'Established')) return
  const bundle = definition.spec.conversion?.webhook?.clientConfig?.caBundle
  const condition =
    bundle && !isCaBundle(bundle)
      ? { status: 'False', reason: 'InvalidCABundle', message: 'The conversion webhook CABundle is invalid' }
      : { status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' }
  setDefinitionCondition(status, { type: 'Established', ...condition }, nowMs)
}

const approvalReasons = { approved: 'ApprovedAnnotation', bypassed: 'UnapprovedAnnotation', missing: 'MissingAnnotation', invalid: 'InvalidAnnotation' }

function approve({ spec, metadata }: Definition, status: Status, nowMs: number): void {
  if (!isProtectedGroup(spec.group)) return
  const { state, reason } = approvalOf(metadata.annotations)
  const condition = { status: state === 'approved' ? 'True' : 'False', reason: approvalReasons[state], message: reason }
  setDefinitionCondition(status, { type: 'KubernetesAPIApprovalPolicyConformant', ...condition }, nowMs)
}
