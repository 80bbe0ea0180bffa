/**
 * Match conditions of a webhook authorizer (L3): CEL over the SubjectAccessReview's spec, in its v1 form. A false condition decides; errors count
 * only if no condition is false. Upstream: apiserver/pkg/authorization/cel (v1.36).
 */
import { kubernetesEnvironment, perCallLimit } from '#api/cel/environment'
import type { SubjectAccessReviewSpec } from '#api/gen/types/authorization.v1'
import type { Environment, Program } from '#cel/environment'
import { dynamicValue } from '#cel/json'
import { formatType, listType, mapType, type ObjectType, objectType, stringType } from '#cel/types'
import { aggregateReasons } from '../core/reasons.ts'

export interface MatchCondition {
  readonly expression: string
  readonly program: Program
}

const texts = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, stringType]))

const requirement = objectType('kubernetes.SelectorRequirement', { ...texts('key', 'operator'), values: listType(stringType) })
const selector = (kind: string) => objectType(`kubernetes.${kind}SelectorAttributes`, { ...texts('rawSelector'), requirements: listType(requirement) })
const fieldSelector = selector('Field')
const labelSelector = selector('Label')
const resourceAttributes = objectType('kubernetes.ResourceAttributes', {
  ...texts('namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'),
  fieldSelector,
  labelSelector,
})
const nonResourceAttributes = objectType('kubernetes.NonResourceAttributes', texts('path', 'verb'))
const request: ObjectType = objectType('kubernetes.SubjectAccessReviewSpec', {
  resourceAttributes,
  nonResourceAttributes,
  ...texts('user', 'uid'),
  groups: listType(stringType),
  extra: mapType(stringType, listType(stringType)),
})
const environment: Environment = kubernetesEnvironment.extend({
  variables: { request },
  types: [request, resourceAttributes, nonResourceAttributes, fieldSelector, labelSelector, requirement],
})

/** The compiled condition, or its error. */
export function compileMatchCondition(expression: string): MatchCondition | { readonly fault: string } {
  const compiled = environment.compile(expression)
  if (!compiled.ok) return { fault: `compilation failed: ${compiled.message}` }
  const { resultType } = compiled.checked
  return resultType.kind === 'bool' ? { expression, program: compiled.program } : { fault: `must evaluate to bool but got ${formatType(resultType)}` }
}

/** True: all conditions are true; false: one is false. Otherwise the error. */
export function matchConditions(conditions: readonly MatchCondition[], spec: SubjectAccessReviewSpec): boolean | { readonly error: string } {
  const variables = new Map([['request', dynamicValue(visible(spec))]])
  const errors: string[] = []
  for (const { expression, program } of conditions) {
    const result = program.evaluate(variables, { costLimit: perCallLimit })
    if (result.error) errors.push(`cel evaluation error: expression '${expression}' resulted in error: ${result.error.message}`)
    else if (result.value !== true) return false
  }
  return errors.length === 0 || { error: aggregateReasons(errors) }
}

const none = Object.fromEntries(['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'].map((name) => [name, '']))

/** The spec with empty texts for absent fields, so that conditions need no has(). */
function visible({
  resourceAttributes: resource,
  nonResourceAttributes: other,
  user = '',
  groups = [],
  uid = '',
  extra = {},
}: SubjectAccessReviewSpec): object {
  return {
    user,
    groups,
    uid,
    extra,
    ...(resource ? { resourceAttributes: { ...none, ...resource } } : {}),
    ...(other ? { nonResourceAttributes: { path: '', verb: '', ...other } } : {}),
  }
}
