/** What both kinds of admission policy share (L1): defaults, cells, variables. Upstream: v1/defaults.go, validation, printers (v1.36). */
import type { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type { MatchResources, ParamKind, ParamRef, Variable } from '#api/gen/types/admissionregistration.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { unset } from '../columns.ts'
import { expressionFaults } from './expressions.ts'
import { failurePolicies, isCelIdentifier, validateMatchResources, validateParamKind } from './matchRules.ts'

export const admissionGroup = 'admissionregistration.k8s.io'

export function setMatchDefaults(match: MatchResources | undefined): void {
  if (!match) return
  match.matchPolicy ??= 'Equivalent'
  match.namespaceSelector ??= {}
  match.objectSelector ??= {}
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) rule.scope ??= '*'
}

export function kindText(kind: Frozen<ParamKind> | undefined): string {
  return kind ? `${kind.apiVersion}/${kind.kind}` : unset
}

export function refText(ref: Frozen<ParamRef> | undefined): string {
  if (!ref?.name) return unset
  return ref.namespace ? `${ref.namespace}/${ref.name}` : `*/${ref.name}`
}

interface PolicyHead {
  readonly failurePolicy?: string | undefined
  readonly paramKind?: ParamKind | undefined
  readonly matchConstraints?: MatchResources | undefined
}

/** Failure policy, parameters, and what the policy is about: at least one rule. */
export function validatePolicyHead({ failurePolicy, paramKind, matchConstraints }: PolicyHead, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!failurePolicy) errors.push(fieldError.required(path.child('failurePolicy')))
  else if (!failurePolicies.includes(failurePolicy)) errors.push(fieldError.notSupported(path.child('failurePolicy'), failurePolicy, failurePolicies))
  if (paramKind) errors.push(...validateParamKind(paramKind, path.child('paramKind')))
  const at = path.child('matchConstraints')
  if (!matchConstraints) return [...errors, fieldError.required(at)]
  errors.push(...validateMatchResources(matchConstraints, at))
  return matchConstraints.resourceRules?.length ? errors : [...errors, fieldError.required(at.child('resourceRules'))]
}

/** Each may use those before it, and everything after them all: `compiler` knows them then. */
export function validateVariables(variables: readonly Variable[] | undefined, compiler: AdmissionCompiler, path: FieldPath): FieldError[] {
  return (variables ?? []).flatMap(({ name, expression }, i) => {
    const at = path.index(i)
    const errors: FieldError[] = []
    if (!name?.trim()) errors.push(fieldError.required(at.child('name'), 'name is not specified'))
    else if (!isCelIdentifier(name)) errors.push(fieldError.invalid(at.child('name'), name, 'must be a valid CEL identifier'))
    if (!expression?.trim()) return [...errors, fieldError.required(at.child('expression'), 'expression is not specified')]
    return [...errors, ...expressionFaults(expression, compiler.addVariable(name, expression), at.child('expression'))]
  })
}
