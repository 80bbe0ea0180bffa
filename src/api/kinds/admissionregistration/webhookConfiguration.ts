/**
 * The two webhook configurations (L1). What an old one already had wrong may stay.
 * Upstream: pkg/registry/admissionregistration, pkg/apis/admissionregistration/{v1/defaults,validation} (v1.36).
 */
import type { MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration } from '#api/gen/types/admissionregistration.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateFullyQualifiedName } from '#api/machinery/formats'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label } from '#api/machinery/names'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { checkConditions } from './expressions.ts'
import {
  failurePolicies,
  matchPolicies,
  optionalWord,
  validateMatchConditions,
  validateRule,
  validateWebhookService,
  validateWebhookUrl,
} from './matchRules.ts'

const group = 'admissionregistration.k8s.io'
const knownReviews = ['v1', 'v1beta1']
const harmless = ['None', 'NoneOnDryRun']
const anyEffects = ['None', 'NoneOnDryRun', 'Some', 'Unknown']

type Webhook = MutatingWebhook | ValidatingWebhook

export const mutatingWebhookConfiguration = defineKind<MutatingWebhookConfiguration>({
  group,
  kind: 'MutatingWebhookConfiguration',
  allowUnconditionalUpdate: false,
  columns: [nameColumn, integer('Webhooks', (obj) => obj.webhooks?.length), ageColumn],
  defaults(obj) {
    for (const webhook of obj.webhooks ?? []) {
      setWebhookDefaults(webhook)
      webhook.reinvocationPolicy ??= 'Never'
    }
  },
  validate: ({ obj, path }) => webhooksFaults(obj.webhooks, undefined, path.child('webhooks')),
  validateUpdate: ({ obj, old, path }) => webhooksFaults(obj.webhooks, old.webhooks ?? [], path.child('webhooks')),
})

export const validatingWebhookConfiguration = defineKind<ValidatingWebhookConfiguration>({
  group,
  kind: 'ValidatingWebhookConfiguration',
  allowUnconditionalUpdate: false,
  columns: [nameColumn, integer('Webhooks', (obj) => obj.webhooks?.length), ageColumn],
  defaults(obj) {
    for (const webhook of obj.webhooks ?? []) setWebhookDefaults(webhook)
  },
  validate: ({ obj, path }) => webhooksFaults(obj.webhooks, undefined, path.child('webhooks')),
  validateUpdate: ({ obj, old, path }) => webhooksFaults(obj.webhooks, old.webhooks ?? [], path.child('webhooks')),
})

function setWebhookDefaults(webhook: Webhook): void {
  webhook.failurePolicy ??= 'Fail'
  webhook.matchPolicy ??= 'Equivalent'
  webhook.namespaceSelector ??= {}
  webhook.objectSelector ??= {}
  webhook.timeoutSeconds ??= 10
  if (webhook.clientConfig.service) webhook.clientConfig.service.port ??= 443
  for (const rule of webhook.rules ?? []) rule.scope ??= '*'
}

/** What the old webhooks were already allowed. */
interface Leniency {
  readonly anyReviews: boolean
  readonly anyEffects: boolean
  readonly repeatedNames: boolean
  readonly sameConditions: boolean
}

function leniencyOf(old: readonly Frozen<Webhook>[] | undefined, webhooks: readonly Webhook[]): Leniency {
  const before = old ?? []
  return {
    anyReviews: before.some(({ admissionReviewVersions: versions = [] }) => versions.length > 0 && !versions.some((version) => knownReviews.includes(version))),
    anyEffects: before.some(({ sideEffects }) => !harmless.includes(sideEffects)),
    repeatedNames: new Set(before.map(({ name }) => name)).size < before.length,
    sameConditions:
      old !== undefined &&
      old.length === webhooks.length &&
      old.every(({ matchConditions }, i) => semanticEqual(matchConditions, webhooks[i]?.matchConditions)),
  }
}

function webhooksFaults(webhooks: readonly Webhook[] = [], old: readonly Frozen<Webhook>[] | undefined, path: FieldPath): FieldError[] {
  const leniency = leniencyOf(old, webhooks)
  const names = new Set<string>()
  return webhooks.flatMap((webhook, i) => {
    const at = path.index(i)
    const errors = [...webhookFaults(webhook, leniency, at), ...reviewFaults(webhook, leniency, at.child('admissionReviewVersions'))]
    if (webhook.name && names.has(webhook.name) && !leniency.repeatedNames) errors.push(fieldError.duplicate(at.child('name'), webhook.name))
    names.add(webhook.name)
    return errors
  })
}

function webhookFaults(webhook: Webhook, leniency: Leniency, path: FieldPath): FieldError[] {
  const errors = validateFullyQualifiedName(webhook.name, path.child('name'))
  for (const [i, rule] of (webhook.rules ?? []).entries()) errors.push(...validateRule(rule, path.child('rules').index(i)))
  errors.push(
    ...optionalWord(webhook.failurePolicy, failurePolicies, path.child('failurePolicy')),
    ...optionalWord(webhook.matchPolicy, matchPolicies, path.child('matchPolicy')),
  )
  const effects = leniency.anyEffects ? anyEffects : harmless
  if (!webhook.sideEffects) errors.push(fieldError.required(path.child('sideEffects'), `must specify one of ${effects.join(', ')}`))
  else errors.push(...optionalWord(webhook.sideEffects, effects, path.child('sideEffects')))
  const timeout = webhook.timeoutSeconds
  if (timeout !== undefined && (timeout < 1 || timeout > 30))
    errors.push(fieldError.invalid(path.child('timeoutSeconds'), timeout, 'the timeout value must be between 1 and 30 seconds'))
  errors.push(
    ...validateLabelSelector(webhook.namespaceSelector, path.child('namespaceSelector')),
    ...validateLabelSelector(webhook.objectSelector, path.child('objectSelector')),
  )
  if ('reinvocationPolicy' in webhook) errors.push(...optionalWord(webhook.reinvocationPolicy, ['IfNeeded', 'Never'], path.child('reinvocationPolicy')))
  errors.push(...clientFaults(webhook, path.child('clientConfig')))
  if (leniency.sameConditions) return errors
  return [...errors, ...validateMatchConditions(webhook.matchConditions, checkConditions(false), path.child('matchConditions'))]
}

function clientFaults({ clientConfig }: Webhook, path: FieldPath): FieldError[] {
  const { url, service } = clientConfig ?? {}
  if ((url === undefined) === (service === undefined)) return [fieldError.required(path, 'exactly one of url or service is required')]
  if (url !== undefined) return validateWebhookUrl(url, path.child('url'))
  return service ? validateWebhookService(service, path.child('service')) : []
}

function reviewFaults({ admissionReviewVersions: versions = [] }: Webhook, { anyReviews }: Leniency, path: FieldPath): FieldError[] {
  if (versions.length === 0) return [fieldError.required(path, `must specify one of ${knownReviews.join(', ')}`)]
  const repeated = repeatedAt(versions)
  const errors = versions.flatMap((version, i) =>
    repeated.has(i) ? [fieldError.invalid(path.index(i), version, 'duplicate version')] : faults(path.index(i), version, isDns1035Label(version)),
  )
  if (!anyReviews && !versions.some((version) => knownReviews.includes(version)))
    errors.push(fieldError.invalid(path, versions, `must include at least one of ${knownReviews.join(', ')}`))
  return errors
}
