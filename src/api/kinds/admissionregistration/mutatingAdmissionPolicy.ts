/** MutatingAdmissionPolicy and its binding (L1). Upstream: pkg/registry/admissionregistration, pkg/apis/admissionregistration/validation (v1.36). */
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation } from '#api/gen/types/admissionregistration.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { ageColumn, integer, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'
import { checkConditionUnless, checkUnless } from './expressions.ts'
import { type ExpressionCheck, validateMatchConditions, validateMatchResources, validateParamRef } from './matchRules.ts'
import { admissionGroup as group, kindText, refText, setMatchDefaults, validatePolicyHead, validateVariables } from './policyFields.ts'

/** Nothing is left to change about what goes away. */
const operations = ['*', 'CONNECT', 'CREATE', 'UPDATE']
const patchFields = { ApplyConfiguration: 'applyConfiguration', JSONPatch: 'jsonPatch' } as const

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
  validate: ({ obj, path }) => policyFaults(obj, undefined, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => policyFaults(obj, old, path.child('spec')),
})

export const mutatingAdmissionPolicyBinding = defineKind<MutatingAdmissionPolicyBinding>({
  group,
  kind: 'MutatingAdmissionPolicyBinding',
  columns: [nameColumn, text('PolicyName', (obj) => obj.spec?.policyName ?? ''), text('ParamRef', (obj) => refText(obj.spec?.paramRef)), ageColumn],
  defaults: (obj) => setMatchDefaults(obj.spec?.matchResources),
  validate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
})

function policyFaults({ spec }: MutatingAdmissionPolicy, old: Frozen<MutatingAdmissionPolicy> | undefined, path: FieldPath): FieldError[] {
  const known = expressionsOf(old)
  const check = checkUnless(known)
  const checkCondition = checkConditionUnless(known, spec.paramKind ? 'policyWithParams' : 'policy')
  const errors = validatePolicyHead(spec, path)
  for (const operation of (spec.matchConstraints?.resourceRules ?? []).flatMap((rule) => rule.operations ?? []))
    if (!operations.includes(operation))
      errors.push(fieldError.notSupported(path.child('matchConstraints', 'resourceRules', 'operations'), operation, operations))
  const sameConditions = old && semanticEqual(spec.paramKind, old.spec.paramKind) && semanticEqual(spec.matchConditions, old.spec.matchConditions)
  if (!sameConditions) errors.push(...validateMatchConditions(spec.matchConditions, checkCondition, path.child('matchConditions')))
  errors.push(...validateVariables(spec.variables, check, path.child('variables')))
  if (!spec.mutations?.length) errors.push(fieldError.required(path.child('mutations'), 'mutations must contain at least one item'))
  for (const [i, mutation] of (spec.mutations ?? []).entries()) errors.push(...mutationFaults(mutation, check, path.child('mutations').index(i)))
  return [...errors, ...oneOf(spec.reinvocationPolicy, ['IfNeeded', 'Never'], path.child('reinvocationPolicy'))]
}

function expressionsOf(old: Frozen<MutatingAdmissionPolicy> | undefined): (string | undefined)[] {
  const { matchConditions = [], variables = [], mutations = [] } = old?.spec ?? {}
  return [
    ...[...matchConditions, ...variables].map(({ expression }) => expression),
    ...mutations.flatMap(({ applyConfiguration, jsonPatch }) => [applyConfiguration?.expression, jsonPatch?.expression]),
  ]
}

/** One way to change the object, and an expression for it. */
function mutationFaults(mutation: Mutation, check: ExpressionCheck, path: FieldPath): FieldError[] {
  const { patchType } = mutation
  if (!patchType) return [fieldError.required(path.child('patchType'))]
  if (patchType !== 'ApplyConfiguration' && patchType !== 'JSONPatch')
    return [fieldError.notSupported(path.child('patchType'), patchType, ['ApplyConfiguration', 'JSONPatch'])]
  const wanted = patchFields[patchType]
  const other = patchFields[patchType === 'JSONPatch' ? 'ApplyConfiguration' : 'JSONPatch']
  const at = path.child(wanted)
  const expression = mutation[wanted]?.expression ?? ''
  const errors: FieldError[] = []
  if (!mutation[wanted]) errors.push(fieldError.required(at, `must be specified when patchType is ${patchType}`))
  else if (!expression.trim()) errors.push(fieldError.required(at.child('expression')))
  else errors.push(...check(expression.trim(), at.child('expression')))
  if (mutation[other]) errors.push(fieldError.invalid(path.child(other), `{${other}}`, `must not be specified when patchType is ${patchType}`))
  return errors
}

function bindingFaults({ spec }: MutatingAdmissionPolicyBinding, path: FieldPath): FieldError[] {
  const name = spec?.policyName
  return [
    ...(name ? faults(path.child('policyName'), name, nameIsDnsSubdomain(name, false)) : [fieldError.required(path.child('policyName'))]),
    ...validateParamRef(spec?.paramRef, path.child('paramRef')),
    ...validateMatchResources(spec?.matchResources, path.child('matchResources')),
  ]
}
