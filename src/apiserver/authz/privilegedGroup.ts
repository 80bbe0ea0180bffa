/**
 * Allows every request of system:masters (L3). As upstream, rule reviews do not list these permissions.
 * Upstream: apiserver/pkg/authorization/authorizerfactory NewPrivilegedGroups.
 */
import type { AuthorizationDecision, Authorizer } from './authorizer.ts'

export const privilegedGroup = 'system:masters'

const allowed: AuthorizationDecision = { decision: 'allow', reason: '' }
const other: AuthorizationDecision = { decision: 'noOpinion', reason: '' }

export const privilegedGroupAuthorizer: Authorizer = {
  name: 'privilegedGroup',
  authorize: ({ user }) => (user.groups.includes(privilegedGroup) ? allowed : other),
}
