/** Allows every request, or denies every request (L3). Upstream: apiserver/pkg/authorization/authorizerfactory/builtin.go. */
import type { Authorizer } from './authorizer.ts'

export const alwaysAllowAuthorizer: Authorizer = {
  name: 'AlwaysAllow',
  authorize: () => ({ decision: 'allow', reason: '' }),
  rulesFor: () => ({
    rules: [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
    incomplete: false,
  }),
}

export const alwaysDenyAuthorizer: Authorizer = {
  name: 'AlwaysDeny',
  authorize: () => ({ decision: 'noOpinion', reason: 'Everything is forbidden.' }),
  rulesFor: () => ({ rules: [], incomplete: false }),
}
