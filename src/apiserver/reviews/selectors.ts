/**
 * Parses the selectors of an access review for authorizers (L3, pure). Invalid requirements are left out and reported: the question then is wider,
 * never narrower. Upstream: ResourceAttributesFrom and BuildEvaluationError of pkg/registry/authorization/util/helpers.go (v1.36).
 */
import type { FieldSelectorAttributes, LabelSelectorAttributes, ResourceAttributes } from '#api/gen/types/authorization.v1'
import { type FieldTerm, parseFieldSelector } from '#api/machinery/fieldSelector'
import { type LabelRequirement, parseLabelSelector, selectorOf } from '#api/machinery/labelSelector'

/** The valid requirements; `partly`: others were left out. */
export interface UnderstoodSelector<T> {
  readonly terms: readonly T[]
  readonly partly: boolean
}

const nothing = { terms: [], partly: false }

export function fieldTermsOf(selector: FieldSelectorAttributes | undefined): UnderstoodSelector<FieldTerm> {
  if (selector?.rawSelector) return parsed(selector.rawSelector, (text) => parseFieldSelector(text).terms)
  return understood(selector?.requirements, ({ key, operator, values = [] }) => {
    const [value] = values
    if (value === undefined || values.length !== 1 || (operator !== 'In' && operator !== 'NotIn')) return []
    return [{ field: key, operator: operator === 'In' ? '=' : '!=', value }]
  })
}

export function labelRequirementsOf(selector: LabelSelectorAttributes | undefined): UnderstoodSelector<LabelRequirement> {
  if (selector?.rawSelector) return parsed(selector.rawSelector, (text) => parseLabelSelector(text).requirements)
  return understood(selector?.requirements, (requirement) => {
    try {
      return selectorOf({ matchExpressions: [requirement] }).requirements
    } catch {
      return []
    }
  })
}

function parsed<T>(text: string, parse: (text: string) => readonly T[]): UnderstoodSelector<T> {
  try {
    return { terms: parse(text), partly: false }
  } catch {
    return { terms: [], partly: true }
  }
}

function understood<T, U>(requirements: readonly T[] | undefined, read: (requirement: T) => readonly U[]): UnderstoodSelector<U> {
  if (!requirements) return nothing
  const terms = requirements.map(read)
  return { terms: terms.flat(), partly: terms.some((one) => one.length === 0) }
}

/** The evaluation error: the authorizer's error and the selectors that were ignored as invalid; empty when there is none. */
export function evaluationError(error: string | undefined, asked: ResourceAttributes | undefined): string {
  const ignored = (field: string, { terms, partly }: UnderstoodSelector<unknown>) =>
    partly ? [`spec.resourceAttributes.${field} ${terms.length > 0 ? 'partially ' : ''}ignored due to parse error`] : []
  return [
    ...(error === undefined ? [] : [error]),
    ...ignored('fieldSelector', fieldTermsOf(asked?.fieldSelector)),
    ...ignored('labelSelector', labelRequirementsOf(asked?.labelSelector)),
  ].join('; ')
}
