/** system:masters may do everything (L3). Upstream: apiserver/pkg/authorization/authorizerfactory NewPrivilegedGroups. */
import type { Authorizer } from './authorizer.ts'

export const privilegedGroupAuthorizer: Authorizer = {
  name: 'privilegedGroup',
  authorize: ({ user }) => (user.groups.includes('system:masters') ? { decision: 'allow', reason: '' } : { decision: 'noOpinion', reason: '' }),
  rulesFor: (user) => ({
    rules: user.groups.includes('system:masters')
      ? [
          { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
          { verbs: ['*'], nonResourceURLs: ['*'] },
        ]
      : [],
    incomplete: false,
  }),
}
