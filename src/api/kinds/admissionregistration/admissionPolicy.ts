/** Admission policies written in CEL, and their bindings (L1). Upstream: pkg/registry/admissionregistration, v1/defaults.go, printers (v1.36). */
import type {
  MatchResources,
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
  ParamKind,
  ParamRef,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from '#api/gen/types/admissionregistration.v1'
import { type FieldError, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { ageColumn, integer, nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

const group = 'admissionregistration.k8s.io'

export const validatingAdmissionPolicy = defineKind<ValidatingAdmissionPolicy>({
  group,
  kind: 'ValidatingAdmissionPolicy',
  columns: [nameColumn, integer('Validations', (obj) => obj.spec?.validations?.length), text('ParamKind', (obj) => kindText(obj.spec?.paramKind)), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.spec.failurePolicy ??= 'Fail'
    setMatchDefaults(obj.spec.matchConstraints)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate({ obj, path }) {
    const errors: FieldError[] = []
    if (!obj.spec.validations?.length && !obj.spec.auditAnnotations?.length)
      errors.push(fieldError.required(path.child('spec', 'validations'), 'validations or auditAnnotations must contain at least one item'))
    if (!obj.spec.matchConstraints) errors.push(fieldError.required(path.child('spec', 'matchConstraints')))
    return errors
  },
  status: statusStrategy<ValidatingAdmissionPolicy>(),
})

export const validatingAdmissionPolicyBinding = defineKind<ValidatingAdmissionPolicyBinding>({
  group,
  kind: 'ValidatingAdmissionPolicyBinding',
  columns: [nameColumn, text('PolicyName', (obj) => obj.spec?.policyName ?? ''), text('ParamRef', (obj) => refText(obj.spec?.paramRef)), ageColumn],
  defaults: (obj) => setMatchDefaults(obj.spec?.matchResources),
  validate({ obj, path }) {
    const errors: FieldError[] = []
    if (!obj.spec?.policyName) errors.push(fieldError.required(path.child('spec', 'policyName')))
    if (!obj.spec?.validationActions?.length)
      errors.push(fieldError.required(path.child('spec', 'validationActions'), 'at least one validation action is required'))
    return errors
  },
})

export const mutatingAdmissionPolicy = defineKind<MutatingAdmissionPolicy>({
  group,
  kind: 'MutatingAdmissionPolicy',
  columns: [nameColumn, integer('Mutations', (obj) => obj.spec?.mutations?.length), text('ParamKind', (obj) => kindText(obj.spec?.paramKind)), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    obj.spec.failurePolicy ??= 'Fail'
    obj.spec.reinvocationPolicy ??= 'Never'
    setMatchDefaults(obj.spec.matchConstraints)
  },
  validate: ({ obj, path }) =>
    obj.spec.mutations?.length ? [] : [fieldError.required(path.child('spec', 'mutations'), 'mutations must contain at least one item')],
})

export const mutatingAdmissionPolicyBinding = defineKind<MutatingAdmissionPolicyBinding>({
  group,
  kind: 'MutatingAdmissionPolicyBinding',
  columns: [nameColumn, text('PolicyName', (obj) => obj.spec?.policyName ?? ''), text('ParamRef', (obj) => refText(obj.spec?.paramRef)), ageColumn],
  defaults: (obj) => setMatchDefaults(obj.spec?.matchResources),
  validate: ({ obj, path }) => (obj.spec?.policyName ? [] : [fieldError.required(path.child('spec', 'policyName'))]),
})

function setMatchDefaults(match: MatchResources | undefined): void {
  if (!match) return
  match.matchPolicy ??= 'Equivalent'
  match.namespaceSelector ??= {}
  match.objectSelector ??= {}
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) rule.scope ??= '*'
}

function kindText(kind: Frozen<ParamKind> | undefined): string {
  return kind ? `${kind.apiVersion}/${kind.kind}` : unset
}

function refText(ref: Frozen<ParamRef> | undefined): string {
  if (!ref) return unset
  if (ref.name) return ref.namespace ? `${ref.namespace}/${ref.name}` : `*/${ref.name}`
  return unset
}
