/** authentication.k8s.io UserInfo in admission reviews and expressions (L3). */
import type { UserInfo } from '../../core/request.ts'

export function userInfoOf({ name, uid, groups, extra }: UserInfo): object {
  return {
    ...(name ? { username: name } : {}),
    ...(uid ? { uid } : {}),
    ...(groups.length > 0 ? { groups } : {}),
    ...(extra && Object.keys(extra).length > 0 ? { extra } : {}),
  }
}
