/** Authorization's contract (L3). Upstream: apiserver/pkg/authorization/authorizer/interfaces.go. */
import type { FieldTerm } from '#api/machinery/fieldSelector'
import type { UserInfo } from '../request.ts'

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
  /** What the field selector of a list, watch or deletecollection narrows it to; absent: nothing, or a selector that does not parse. */
  readonly fieldSelector?: readonly FieldTerm[] | undefined
}

export interface AuthorizationDecision {
  readonly decision: 'allow' | 'deny' | 'noOpinion'
  /** Upstream's text, shown in 403 messages and access reviews. */
  readonly reason: string
}

export interface PolicyRuleInfo {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
  readonly resourceNames?: readonly string[] | undefined
  readonly nonResourceURLs?: readonly string[] | undefined
}

export interface Authorizer {
  readonly name: string
  authorize(attributes: AuthorizationAttributes): Promise<AuthorizationDecision> | AuthorizationDecision
  /** For SelfSubjectRulesReview. */
  rulesFor?(user: UserInfo, namespace: string): { rules: readonly PolicyRuleInfo[]; incomplete: boolean; error?: string }
}
