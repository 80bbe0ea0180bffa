/**
 * Checks an AuthorizationConfiguration and compiles its match conditions (L3).
 * Upstream: apiserver/pkg/apis/apiserver/validation/validation.go ValidateAuthorizationConfiguration, LoadAndValidateData of
 * pkg/kubeapiserver/authorizer/config.go (v1.36).
 */
import path from 'node:path'
import { formatDuration } from '#api/machinery/duration'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain } from '#api/machinery/names'
import { aggregateReasons } from '../../core/reasons.ts'
import { compileMatchCondition, type MatchCondition } from '../matchConditions.ts'
import {
  type AuthorizationConfiguration,
  type AuthorizationMode,
  type AuthorizerConfiguration,
  authorizationModes,
  type WebhookConfiguration,
} from './types.ts'

/** An authorizer of the list, with compiled match conditions. */
export interface ValidatedAuthorizer {
  readonly type: AuthorizationMode
  readonly name: string
  readonly webhook?: WebhookConfiguration | undefined
  readonly conditions: readonly MatchCondition[]
}

export interface ValidationContext {
  /** The error of a kubeconfig file; undefined: none. */
  fileFault(name: string): string | undefined
  /** Types that cannot be removed, because the server started with them. */
  readonly required?: readonly string[] | undefined
}

/** @throws Error with every fault */
export function validateAuthorizationConfiguration({ authorizers }: AuthorizationConfiguration, context: ValidationContext): ValidatedAuthorizer[] {
  const root = FieldPath.of('authorizers')
  const faults: FieldError[] = []
  if (authorizers.length === 0) faults.push(fieldError.required(root, 'at least one authorization mode must be defined'))
  const validated = authorizers.flatMap((one, at) => validateAuthorizer(one, root.index(at), { before: authorizers.slice(0, at), context, faults }))
  if (faults.length > 0) throw new Error(aggregateReasons(faults.map(({ field, body }) => `${field}: ${body}`)))
  const others = validated.filter(({ type }) => type !== 'Webhook')
  const misnamed = others
    .filter(({ type, name }) => name !== nameOfMode(type))
    .map(({ type, name }) => `expected name ${nameOfMode(type)} for authorizer ${type} instead of ${name}`)
  const missing = (context.required ?? []).filter((type) => !others.some((one) => one.type === type)).sort()
  const more = missing.length > 0 ? [...misnamed, `missing required types: [${missing.join(' ')}]`] : misnamed
  if (more.length > 0) throw new Error(aggregateReasons(more))
  return validated
}

/** Authorizers other than webhooks are named after their mode. */
export function nameOfMode(mode: AuthorizationMode): string {
  return mode.toLowerCase()
}

interface Surroundings {
  readonly before: readonly AuthorizerConfiguration[]
  readonly context: ValidationContext
  readonly faults: FieldError[]
}

const isMode = (type: string): type is AuthorizationMode => (authorizationModes as readonly string[]).includes(type)

function validateAuthorizer({ type, name, webhook }: AuthorizerConfiguration, at: FieldPath, { before, context, faults }: Surroundings): ValidatedAuthorizer[] {
  if (type === '') faults.push(fieldError.required(at.child('type')))
  else if (!isMode(type)) faults.push(fieldError.notSupported(at.child('type'), type, [...authorizationModes].sort()))
  else if (type !== 'Webhook' && before.some((one) => one.type === type)) faults.push(fieldError.duplicate(at.child('type'), type))
  else {
    faults.push(...nameFaults(name, at.child('name'), before))
    if (type !== 'Webhook') {
      if (webhook) faults.push(fieldError.invalid(at.child('webhook'), 'non-null', 'may only be specified when type=Webhook'))
      return [{ type, name, conditions: [] }]
    }
    if (webhook) {
      faults.push(...webhookFaults(webhook, at), ...connectionFaults(webhook.connectionInfo, at.child('connectionInfo'), context))
      return [{ type, name, webhook, conditions: compileConditions(webhook, at.child('matchConditions'), faults) }]
    }
    faults.push(fieldError.required(at.child('webhook'), 'required when type=Webhook'))
  }
  return []
}

function nameFaults(name: string, at: FieldPath, before: readonly AuthorizerConfiguration[]): FieldError[] {
  if (name === '') return [fieldError.required(at)]
  if (before.some((one) => one.name === name)) return [fieldError.duplicate(at, name)]
  const faults = isDns1123Subdomain(name)
  return faults.length > 0 ? [fieldError.invalid(at, name, `authorizer name is invalid: ${faults.join(', ')}`)] : []
}

const longestTimeoutMs = 30_000

function webhookFaults(webhook: WebhookConfiguration, at: FieldPath): FieldError[] {
  const { timeoutMs, subjectAccessReviewVersion, matchConditionSubjectAccessReviewVersion, matchConditions, failurePolicy } = webhook
  const faults: FieldError[] = []
  const isInvalid = (field: string, ms: number, why: string) => faults.push(fieldError.invalid(at.child(field), formatDuration(ms), why))
  if (timeoutMs === 0) faults.push(fieldError.required(at.child('timeout')))
  else if (timeoutMs < 0 || timeoutMs > longestTimeoutMs) isInvalid('timeout', timeoutMs, 'must be > 0s and <= 30s')
  if (webhook.authorizedTtlMs < 0) isInvalid('authorizedTTL', webhook.authorizedTtlMs, 'must be > 0s')
  if (webhook.unauthorizedTtlMs < 0) isInvalid('unauthorizedTTL', webhook.unauthorizedTtlMs, 'must be > 0s')
  faults.push(...oneOf(subjectAccessReviewVersion, ['v1', 'v1beta1'], at.child('subjectAccessReviewVersion')))
  const conditionVersion = at.child('matchConditionSubjectAccessReviewVersion')
  if (matchConditionSubjectAccessReviewVersion !== '') faults.push(...oneOf(matchConditionSubjectAccessReviewVersion, ['v1'], conditionVersion))
  else if (matchConditions.length > 0) faults.push(fieldError.required(conditionVersion, 'required if match conditions are specified'))
  faults.push(...oneOf(failurePolicy, ['NoOpinion', 'Deny'], at.child('failurePolicy')))
  return faults
}

function oneOf(value: string, known: readonly string[], at: FieldPath): FieldError[] {
  if (value === '') return [fieldError.required(at)]
  return known.includes(value) ? [] : [fieldError.notSupported(at, value, known)]
}

function connectionFaults({ type, kubeConfigFile }: WebhookConfiguration['connectionInfo'], at: FieldPath, { fileFault }: ValidationContext): FieldError[] {
  const file = at.child('kubeConfigFile')
  if (type === 'InClusterConfig') {
    return kubeConfigFile === undefined ? [] : [fieldError.invalid(file, kubeConfigFile, 'can only be set when type=KubeConfigFile')]
  }
  if (type !== 'KubeConfigFile') return oneOf(type, ['InClusterConfig', 'KubeConfigFile'], at.child('type'))
  if (!kubeConfigFile) return [fieldError.required(file)]
  const fault = path.isAbsolute(kubeConfigFile) ? fileFault(kubeConfigFile) : 'must be an absolute path'
  return fault === undefined ? [] : [fieldError.invalid(file, kubeConfigFile, fault)]
}

const mostConditions = 64

function compileConditions({ matchConditions }: WebhookConfiguration, at: FieldPath, faults: FieldError[]): MatchCondition[] {
  if (matchConditions.length > mostConditions) {
    faults.push(fieldError.tooMany(at, matchConditions.length, mostConditions))
    return []
  }
  return matchConditions.flatMap(({ expression }, index) => {
    const here = at.index(index).child('expression')
    if (expression.trim() === '') faults.push(fieldError.required(here))
    else if (matchConditions.slice(0, index).some((one) => one.expression === expression)) faults.push(fieldError.duplicate(here, expression))
    else {
      const compiled = compileMatchCondition(expression)
      if (!('fault' in compiled)) return [compiled]
      faults.push(fieldError.invalid(here, expression, compiled.fault))
    }
    return []
  })
}
