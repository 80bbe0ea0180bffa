/** The two webhook configurations (L1). Upstream: pkg/registry/admissionregistration, pkg/apis/admissionregistration/{v1/defaults,validation} (v1.36). */
import type { MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration } from '#api/gen/types/admissionregistration.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { isDns1123Subdomain } from '#api/machinery/names'
import { ageColumn, integer, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { faults, oneOf } from '../rules.ts'

const group = 'admissionregistration.k8s.io'
const knownReviews = ['v1', 'v1beta1']

export const mutatingWebhookConfiguration = defineKind<MutatingWebhookConfiguration>({
  group,
  kind: 'MutatingWebhookConfiguration',
  columns: [nameColumn, integer('Webhooks', (obj) => obj.webhooks?.length), ageColumn],
  defaults(obj) {
    for (const webhook of obj.webhooks ?? []) {
      setWebhookDefaults(webhook)
      webhook.reinvocationPolicy ??= 'Never'
    }
  },
  validate: ({ obj, path }) => webhooksFaults(obj.webhooks, path.child('webhooks')),
  validateUpdate: ({ obj, path }) => webhooksFaults(obj.webhooks, path.child('webhooks')),
})

export const validatingWebhookConfiguration = defineKind<ValidatingWebhookConfiguration>({
  group,
  kind: 'ValidatingWebhookConfiguration',
  columns: [nameColumn, integer('Webhooks', (obj) => obj.webhooks?.length), ageColumn],
  defaults(obj) {
    for (const webhook of obj.webhooks ?? []) setWebhookDefaults(webhook)
  },
  validate: ({ obj, path }) => webhooksFaults(obj.webhooks, path.child('webhooks')),
  validateUpdate: ({ obj, path }) => webhooksFaults(obj.webhooks, path.child('webhooks')),
})

function setWebhookDefaults(webhook: MutatingWebhook | ValidatingWebhook): void {
  webhook.failurePolicy ??= 'Fail'
  webhook.matchPolicy ??= 'Equivalent'
  webhook.namespaceSelector ??= {}
  webhook.objectSelector ??= {}
  webhook.timeoutSeconds ??= 10
  if (webhook.clientConfig?.service) webhook.clientConfig.service.port ??= 443
  for (const rule of webhook.rules ?? []) rule.scope ??= '*'
}

function webhooksFaults(webhooks: readonly (MutatingWebhook | ValidatingWebhook)[] | undefined, path: FieldPath): FieldError[] {
  const names = new Set<string>()
  return (webhooks ?? []).flatMap((webhook, i) => {
    const at = path.index(i)
    const errors = webhookFaults(webhook, at)
    if (names.has(webhook.name)) errors.push(fieldError.duplicate(at.child('name'), webhook.name))
    names.add(webhook.name)
    return errors
  })
}

function webhookFaults(webhook: MutatingWebhook | ValidatingWebhook, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!webhook.name) errors.push(fieldError.required(path.child('name')))
  else if (isDns1123Subdomain(webhook.name).length > 0) errors.push(...faults(path.child('name'), webhook.name, isDns1123Subdomain(webhook.name)))
  else if (webhook.name.split('.').length < 3)
    errors.push(fieldError.invalid(path.child('name'), webhook.name, 'should be a domain with at least three segments separated by dots'))
  const reviews = path.child('admissionReviewVersions')
  if (!webhook.admissionReviewVersions?.length) errors.push(fieldError.required(reviews, `must specify one of ${knownReviews.join(', ')}`))
  else if (!webhook.admissionReviewVersions.some((version) => knownReviews.includes(version)))
    errors.push(fieldError.invalid(reviews, webhook.admissionReviewVersions, `must include at least one of ${knownReviews.join(', ')}`))
  if (webhook.failurePolicy !== undefined) errors.push(...oneOf(webhook.failurePolicy, ['Fail', 'Ignore'], path.child('failurePolicy')))
  if (webhook.matchPolicy !== undefined) errors.push(...oneOf(webhook.matchPolicy, ['Equivalent', 'Exact'], path.child('matchPolicy')))
  errors.push(...oneOf(webhook.sideEffects, ['None', 'NoneOnDryRun'], path.child('sideEffects')))
  const timeout = webhook.timeoutSeconds
  if (timeout !== undefined && (timeout < 1 || timeout > 30))
    errors.push(fieldError.invalid(path.child('timeoutSeconds'), timeout, 'the timeout value must be between 1 and 30 seconds'))
  errors.push(
    ...validateLabelSelector(webhook.namespaceSelector, path.child('namespaceSelector')),
    ...validateLabelSelector(webhook.objectSelector, path.child('objectSelector')),
  )
  const { url, service } = webhook.clientConfig ?? {}
  const client = path.child('clientConfig')
  if (Boolean(url) === Boolean(service)) errors.push(fieldError.required(client, 'exactly one of url or service is required'))
  if (url && !url.startsWith('https://')) errors.push(fieldError.invalid(client.child('url'), url, "'https' is the only allowed URL scheme"))
  if (service) for (const field of ['namespace', 'name'] as const) if (!service[field]) errors.push(fieldError.required(client.child('service', field)))
  for (const [i, rule] of (webhook.rules ?? []).entries()) {
    for (const field of ['operations', 'apiGroups', 'apiVersions', 'resources'] as const)
      if (!rule[field]?.length) errors.push(fieldError.required(path.child('rules').index(i).child(field)))
  }
  return errors
}
