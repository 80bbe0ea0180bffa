/** MutatingAdmissionPolicy and its binding (L1). Upstream: pkg/registry/admissionregistration, pkg/apis/admissionregistration/validation (v1.36). */
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import { applyConfigurationType, jsonPatchType } from '#api/cel/mutation'
import type { MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation } from '#api/gen/types/admissionregistration.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { listType } from '#cel/types'
import { ageColumn, integer, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'
import { checkConditions, checkWith } from './expressions.ts'
import { validateMatchConditions, validateMatchResources, validateParamRef } from './matchRules.ts'
import { admissionGroup as group, kindText, refText, setMatchDefaults, validatePolicyHead, validateVariables } from './policyFields.ts'

/** Nothing is left to change about what goes away. */
const operations = ['*', 'CONNECT', 'CREATE', 'UPDATE']
const patchFields = { ApplyConfiguration: 'applyConfiguration', JSONPatch: 'jsonPatch' } as const
const results = { ApplyConfiguration: [applyConfigurationType], JSONPatch: [listType(jsonPatchType)] }

export const mutatingAdmissionPolicy = defineKind<MutatingAdmissionPolicy>({
  group,
  kind: 'MutatingAdmissionPolicy',
  allowUnconditionalUpdate: false,
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
  allowUnconditionalUpdate: false,
  columns: [nameColumn, text('PolicyName', (obj) => obj.spec?.policyName ?? ''), text('ParamRef', (obj) => refText(obj.spec?.paramRef)), ageColumn],
  defaults: (obj) => setMatchDefaults(obj.spec?.matchResources),
  validate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => bindingFaults(obj, path.child('spec')),
})

function policyFaults({ spec }: MutatingAdmissionPolicy, old: Frozen<MutatingAdmissionPolicy> | undefined, path: FieldPath): FieldError[] {
  const hasParams = spec.paramKind !== undefined
  const compiler = new AdmissionCompiler({ hasParams }, true)
  const errors = [...validatePolicyHead(spec, path), ...operationFaults(spec.matchConstraints, path.child('matchConstraints'))]
  const sameConditions = old && semanticEqual(spec.paramKind, old.spec.paramKind) && semanticEqual(spec.matchConditions, old.spec.matchConditions)
  if (!sameConditions) errors.push(...validateMatchConditions(spec.matchConditions, checkConditions(hasParams), path.child('matchConditions')))
  errors.push(...validateVariables(spec.variables, compiler, path.child('variables')))
  if (!spec.mutations?.length) errors.push(fieldError.required(path.child('mutations'), 'mutations must contain at least one item'))
  for (const [i, mutation] of (spec.mutations ?? []).entries()) errors.push(...mutationFaults(mutation, compiler, path.child('mutations').index(i)))
  return [...errors, ...oneOf(spec.reinvocationPolicy, ['IfNeeded', 'Never'], path.child('reinvocationPolicy'))]
}

function operationFaults(match: MatchResources | undefined, path: FieldPath): FieldError[] {
  const given = (match?.resourceRules ?? []).flatMap((rule) => rule.operations ?? [])
  const wrong = given.filter((operation) => !operations.includes(operation))
  return wrong.map((operation) => fieldError.notSupported(path.child('resourceRules', 'operations'), operation, operations))
}

/** One way to change the object, and an expression for it. */
function mutationFaults(mutation: Mutation, compiler: AdmissionCompiler, path: FieldPath): FieldError[] {
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
  else errors.push(...checkWith(compiler, { results: results[patchType], hasPatchTypes: true })(expression.trim(), at.child('expression')))
  if (mutation[other]) errors.push(fieldError.invalid(path.child(other), `{${other}}`, `must not be specified when patchType is ${patchType}`))
  return errors
}

function bindingFaults({ spec }: MutatingAdmissionPolicyBinding, path: FieldPath): FieldError[] {
  const name = spec?.policyName
  return [
    ...(name ? faults(path.child('policyName'), name, nameIsDnsSubdomain(name, false)) : [fieldError.required(path.child('policyName'))]),
    ...validateParamRef(spec?.paramRef, path.child('paramRef')),
    ...validateMatchResources(spec?.matchResources, path.child('matchResources')),
    ...operationFaults(spec?.matchResources, path.child('matchResources')),
  ]
}
