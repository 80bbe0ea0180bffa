/** Authorization's contract (L3). Upstream: apiserver/pkg/authorization/authorizer/interfaces.go. */
import type { FieldTerm } from '#api/machinery/fieldSelector'
import type { LabelRequirement } from '#api/machinery/labelSelector'
import type { UserInfo } from '../core/request.ts'

export interface AuthorizationAttributes {
  readonly user: UserInfo
  readonly verb: string
  readonly isResourceRequest: boolean
  /** For non-resource requests. */
  readonly path: string
  readonly namespace: string
  readonly apiGroup: string
  readonly apiVersion: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** Terms of the field selector of a list, watch or deletecollection; absent: none, or a selector that does not parse. */
  readonly fieldSelector?: readonly FieldTerm[] | undefined
  /** The label selector of the request: as text, since few authorizers need it parsed, or parsed. */
  readonly labelSelector?: string | readonly LabelRequirement[] | undefined
}

export interface AuthorizationDecision {
  readonly decision: 'allow' | 'deny' | 'noOpinion'
  /** Upstream's text, shown in 403 messages and access reviews. */
  readonly reason: string
  /** An error during the decision: a request that is not allowed gets it instead of a refusal. */
  readonly error?: string | undefined
}

export interface PolicyRuleInfo {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
  readonly resourceNames?: readonly string[] | undefined
  readonly nonResourceURLs?: readonly string[] | undefined
}

export interface RulesAnswer {
  readonly rules: readonly PolicyRuleInfo[]
  /** The authorizer may allow more than its rules show. */
  readonly incomplete: boolean
  readonly error?: string | undefined
}

/** How the user's rules miss a request, by the authorizer's own rules. */
export interface NearestRules {
  /** How many bindings name the user or a group of theirs. */
  readonly bindings: number
  /** The closest rule: `RoleBinding a/dev (Role reader) lacks verb create`. Undefined: no rule is about it. */
  readonly nearest?: string | undefined
}

export interface Authorizer {
  readonly name: string
  authorize(attributes: AuthorizationAttributes): Promise<AuthorizationDecision> | AuthorizationDecision
  /** For SelfSubjectRulesReview. */
  rulesFor?(user: UserInfo, namespace: string): RulesAnswer
  /** For the explanation of a refusal. */
  nearest?(attributes: AuthorizationAttributes): NearestRules | undefined
}
