/**
 * Converts an authorization request to a SubjectAccessReview's spec (L3, pure), for webhooks and their match conditions.
 * Upstream: resourceAttributesFrom of apiserver/plugin/pkg/authorizer/webhook/webhook.go (v1.36).
 */
import type { SubjectAccessReviewSpec } from '#api/gen/types/authorization.v1'
import type { FieldSelectorRequirement, LabelSelectorRequirement } from '#api/gen/types/meta.v1'
import type { FieldTerm } from '#api/machinery/fieldSelector'
import { type LabelRequirement, parseLabelSelector, type SelectorOperator } from '#api/machinery/labelSelector'
import type { AuthorizationAttributes } from './authorizer.ts'

/** Empty fields are omitted, as in Go's encoding. */
export function accessReviewSpec(attributes: AuthorizationAttributes): SubjectAccessReviewSpec {
  const { user, verb, isResourceRequest, path } = attributes
  return {
    ...(isResourceRequest ? { resourceAttributes: resourceAttributes(attributes) } : { nonResourceAttributes: filled({ path, verb }) }),
    ...filled({ user: user.name }),
    ...(user.groups.length > 0 ? { groups: [...user.groups] } : {}),
    ...(user.extra && Object.keys(user.extra).length > 0 ? { extra: user.extra as Record<string, string[]> } : {}),
    ...filled({ uid: user.uid }),
  }
}

function resourceAttributes(attributes: AuthorizationAttributes): SubjectAccessReviewSpec['resourceAttributes'] {
  const { namespace, verb, apiGroup, apiVersion, resource, subresource, name, fieldSelector = [], labelSelector } = attributes
  const labels = labelRequirements(labelSelector)
  return {
    ...filled({ namespace, verb, group: apiGroup, version: apiVersion, resource, subresource, name }),
    ...(fieldSelector.length > 0 ? { fieldSelector: { requirements: fieldSelector.map(fieldRequirement) } } : {}),
    ...(labels.length > 0 ? { labelSelector: { requirements: labels } } : {}),
  }
}

function filled(texts: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''))
}

function fieldRequirement({ field, operator, value }: FieldTerm): FieldSelectorRequirement {
  return { key: field, operator: operator === '=' ? 'In' : 'NotIn', values: [value] }
}

const operators: Readonly<Partial<Record<SelectorOperator, string>>> = {
  '=': 'In',
  '==': 'In',
  in: 'In',
  '!=': 'NotIn',
  notin: 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
}

/** Requirements that the API cannot express are left out: the question then is wider, never narrower. */
function labelRequirements(selector: AuthorizationAttributes['labelSelector']): LabelSelectorRequirement[] {
  const requirements = typeof selector === 'string' ? parsed(selector) : (selector ?? [])
  return requirements.flatMap(({ key, operator, values }) => {
    const known = operators[operator]
    return known ? [{ key, operator: known, ...(values.length > 0 ? { values: [...values] } : {}) }] : []
  })
}

function parsed(text: string): readonly LabelRequirement[] {
  try {
    return parseLabelSelector(text).requirements
  } catch {
    return []
  }
}
