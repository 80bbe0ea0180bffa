/** Adds the group of all authenticated users (L3). Upstream: apiserver/pkg/authentication/group/authenticated_group_adder.go. */
import type { UserInfo } from '../core/request.ts'

const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'

/** The user with the group, unless the groups already contain it or system:unauthenticated. */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.name === 'system:anonymous' || user.groups.includes(authenticated) || user.groups.includes(unauthenticated)) return user
  return { ...user, groups: [...user.groups, authenticated] }
}
