/** ValidatingAdmissionPolicy and its binding (L1). Upstream: pkg/registry/admissionregistration, pkg/apis/admissionregistration/validation (v1.36). */
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type {
  AuditAnnotation,
  ExpressionWarning,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
  Validation,
} from '#api/gen/types/admissionregistration.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isQualifiedName, nameIsDnsSubdomain } from '#api/machinery/names'
import { boolType, nullType, stringType } from '#cel/types'
import { ageColumn, integer, nameColumn, text } from '../columns.ts'
import { utf8Length } from '../core/data.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { checkConditions, checkWith, expressionFaults } from './expressions.ts'
import { optionalWord, validateMatchConditions, validateMatchResources, validateParamRef } from './matchRules.ts'
import { admissionGroup as group, kindText, refText, setMatchDefaults, validatePolicyHead, validateVariables } from './policyFields.ts'

const maxAuditAnnotations = 20
const maxValueExpressionBytes = 5 * 1024
const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']
const actions = ['Audit', 'Deny', 'Warn']

export const validatingAdmissionPolicy = defineKind<ValidatingAdmissionPolicy>({
  group,
  kind: 'ValidatingAdmissionPolicy',
  allowUnconditionalUpdate: false,
  columns: [nameColumn, integer('Validations', (obj) => obj.spec?.validations?.length), text('ParamKind', (obj) => kindText(obj.spec?.paramKind)), ageColumn],
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.spec.failurePolicy ??= 'Fail'
    setMatchDefaults(obj.spec.matchConstraints)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => policyFaults(obj, undefined, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => policyFaults(obj, old, path.child('spec')),
  status: statusStrategy<ValidatingAdmissionPolicy>({
    keepMetadata: resetMetadata,
    validateUpdate: ({ obj, path }) =>
      (obj.status?.typeChecking?.expressionWarnings ?? []).flatMap((warning, i) =>
        warningFaults(warning, path.child('status', 'typeChecking', 'expressionWarnings').index(i)),
      ),
  }),
})

export const validatingAdmissionPolicyBinding = defineKind<ValidatingAdmissionPolicyBinding>({
  group,
  kind: 'ValidatingAdmissionPolicyBinding',
  allowUnconditionalUpdate: false,
  columns: [nameColumn, text('PolicyName', (obj) => obj.spec?.policyName ?? ''), text('ParamRef', (obj) => refText(obj.spec?.paramRef)), ageColumn],
  defaults: (obj) => setMatchDefaults(obj.spec?.matchResources),
  validate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
})

function policyFaults({ spec, metadata }: ValidatingAdmissionPolicy, old: Frozen<ValidatingAdmissionPolicy> | undefined, path: FieldPath): FieldError[] {
  const hasParams = spec.paramKind !== undefined
  // A policy without variables declares no `variables`, so its expressions cannot refer to them.
  const compiler = new AdmissionCompiler({ hasParams }, (spec.variables ?? []).length > 0)
  const errors = validatePolicyHead(spec, path)
  const sameConditions = old && semanticEqual(spec.paramKind, old.spec.paramKind) && semanticEqual(spec.matchConditions, old.spec.matchConditions)
  if (!sameConditions) errors.push(...validateMatchConditions(spec.matchConditions, checkConditions(hasParams), path.child('matchConditions')))
  errors.push(...validateVariables(spec.variables, compiler, path.child('variables')))
  const { validations = [], auditAnnotations = [] } = spec
  if (validations.length === 0 && auditAnnotations.length === 0) {
    const none = 'validations or auditAnnotations must contain at least one item'
    return [...errors, fieldError.required(path.child('validations'), none), fieldError.required(path.child('auditAnnotations'), none)]
  }
  for (const [i, validation] of validations.entries()) errors.push(...validationFaults(validation, compiler, path.child('validations').index(i)))
  const at = path.child('auditAnnotations')
  if (auditAnnotations.length > maxAuditAnnotations)
    errors.push(fieldError.invalid(at, auditAnnotations, `must not have more than ${maxAuditAnnotations} auditAnnotations`))
  const keys = new Set<string>()
  for (const [i, annotation] of auditAnnotations.entries()) {
    errors.push(...annotationFaults(annotation, metadata.name ?? '', compiler, at.index(i)))
    if (keys.has(annotation.key)) errors.push(fieldError.duplicate(at.index(i).child('key'), annotation.key))
    keys.add(annotation.key)
  }
  return errors
}

function validationFaults({ expression, message, messageExpression, reason }: Validation, compiler: AdmissionCompiler, path: FieldPath): FieldError[] {
  const errors = expression?.trim()
    ? checkWith(compiler, { results: [boolType] })(expression, path.child('expression'))
    : [fieldError.required(path.child('expression'), 'expression is not specified')]
  if (messageExpression && !messageExpression.trim())
    errors.push(fieldError.invalid(path.child('messageExpression'), messageExpression, 'must be non-empty if specified'))
  else if (messageExpression)
    errors.push(...checkWith(compiler, { results: [stringType], hasAuthorizer: false })(messageExpression, path.child('messageExpression')))
  if (message && !message.trim()) errors.push(fieldError.invalid(path.child('message'), message, 'must be non-empty if specified'))
  else if (message && /[\n\r]/.test(message.trim())) errors.push(fieldError.invalid(path.child('message'), message, 'must not contain line breaks'))
  return [...errors, ...optionalWord(reason, reasons, path.child('reason'))]
}

function annotationFaults({ key, valueExpression }: AuditAnnotation, policy: string, compiler: AdmissionCompiler, path: FieldPath): FieldError[] {
  const at = path.child('key')
  const errors = policy
    ? faults(at, `${policy}/${key}`, isQualifiedName(`${policy}/${key}`))
    : [fieldError.invalid(at, key, 'requires metadata.name be non-empty')]
  const value = path.child('valueExpression')
  const trimmed = valueExpression.trim()
  if (!trimmed) return [...errors, fieldError.required(value, 'valueExpression is not specified')]
  if (utf8Length(trimmed) > maxValueExpressionBytes)
    return [...errors, fieldError.required(value, `must not exceed ${maxValueExpressionBytes} bytes in length`)]
  return [...errors, ...expressionFaults(valueExpression, compiler.compile(trimmed, { results: [stringType, nullType] }), value)]
}

function bindingFaults({ spec }: ValidatingAdmissionPolicyBinding, path: FieldPath): FieldError[] {
  const name = spec?.policyName
  return [
    ...(name ? faults(path.child('policyName'), name, nameIsDnsSubdomain(name, false)) : [fieldError.required(path.child('policyName'))]),
    ...validateParamRef(spec?.paramRef, path.child('paramRef')),
    ...validateMatchResources(spec?.matchResources, path.child('matchResources')),
    ...actionsFaults(spec?.validationActions ?? [], path.child('validationActions')),
  ]
}

function actionsFaults(given: readonly string[], path: FieldPath): FieldError[] {
  if (given.length === 0) return [fieldError.required(path, 'at least one validation action is required')]
  const repeated = repeatedAt(given)
  const errors = given.flatMap((action, i) => [
    ...optionalWord(action, actions, path.index(i)),
    ...(repeated.has(i) ? [fieldError.duplicate(path.index(i), action)] : []),
  ])
  const twice = 'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)'
  return given.includes('Deny') && given.includes('Warn') ? [...errors, fieldError.invalid(path, given, twice)] : errors
}

function warningFaults({ warning, fieldRef }: ExpressionWarning, path: FieldPath): FieldError[] {
  return [...(warning ? [] : [fieldError.required(path.child('warning'))]), ...(fieldRef?.trim() ? [] : [fieldError.required(path.child('fieldRef'))])]
}
