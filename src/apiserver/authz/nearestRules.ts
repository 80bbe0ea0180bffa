/** How far a user's rules are from allowing a request (L3, pure), for the explanation of a refusal. */
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import type { Frozen } from '#api/machinery/meta'
import type { AuthorizationAttributes } from './authorizer.ts'
import { ruleAllows } from './rules.ts'

type Rule = Frozen<PolicyRule>

/** What a rule lacks; the smaller the distance, the closer it is. Undefined: the rule is about something else. */
export interface Lack {
  readonly text: string
  readonly distance: number
}

export function lackOf(attributes: AuthorizationAttributes, rule: Rule): Lack | undefined {
  if (!attributes.isResourceRequest) return lackOfPath(attributes, rule)
  const { verb, apiGroup, resource, subresource, name } = attributes
  const whole = subresource === '' ? resource : `${resource}/${subresource}`
  const allows = (change: Partial<Rule>) => ruleAllows(attributes, { ...rule, ...change })
  if (allows({ verbs: ['*'] })) return { text: `lacks verb ${verb}`, distance: 1 }
  if (allows({ resourceNames: [] }))
    return { text: `is limited to the names ${shortList(rule.resourceNames)}, not ${name || 'a request without a name'}`, distance: 1 }
  if (allows({ apiGroups: ['*'] })) return { text: `has ${whole} of API group ${shortList(rule.apiGroups)}, not ${JSON.stringify(apiGroup)}`, distance: 2 }
  if (subresource !== '' && allows({ resources: ['*'] }) && rule.resources?.includes(resource))
    return { text: `has ${resource}, not the subresource ${whole}`, distance: 2 }
  if (allows({ verbs: ['*'], resourceNames: [] }))
    return { text: `lacks verb ${verb}, and is limited to the names ${shortList(rule.resourceNames)}`, distance: 3 }
  return undefined
}

function lackOfPath(attributes: AuthorizationAttributes, rule: Rule): Lack | undefined {
  return ruleAllows(attributes, { ...rule, verbs: ['*'] }) ? { text: `lacks verb ${attributes.verb}`, distance: 1 } : undefined
}

const mostNames = 3

function shortList(values: readonly string[] = []): string {
  const shown = values.slice(0, mostNames).map((value) => value || '""')
  return values.length > mostNames ? `${shown.join(', ')}, … (${values.length})` : shown.join(', ')
}
