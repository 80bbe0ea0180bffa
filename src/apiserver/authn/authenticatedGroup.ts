/** The group of everybody who is known (L3). Upstream: apiserver/pkg/authentication/group/authenticated_group_adder.go. */
import type { UserInfo } from '../core/request.ts'

const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'

/** The user with the group, unless the groups say already whether somebody is known. */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.name === 'system:anonymous' || user.groups.includes(authenticated) || user.groups.includes(unauthenticated)) return user
  return { ...user, groups: [...user.groups, authenticated] }
}
