/** Service accounts as users (L3): their names and groups. Upstream: apiserver/pkg/authentication/serviceaccount/util.go. */
import { isDns1123Label, isDns1123Subdomain } from '#api/machinery/names'
import type { UserInfo } from '../core/request.ts'

const prefix = 'system:serviceaccount:'

export function serviceAccountGroups(namespace: string): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

export function serviceAccountUser(
  namespace: string,
  { name, uid }: { readonly name: string; readonly uid: string },
  extra: Readonly<Record<string, readonly string[]>> = {},
): UserInfo {
  const groups = [...serviceAccountGroups(namespace), 'system:authenticated']
  return { name: `${prefix}${namespace}:${name}`, uid, groups, ...(Object.keys(extra).length > 0 ? { extra } : {}) }
}

/** The account in a user's name; undefined for other names. */
export function splitServiceAccountName(user: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(prefix)) return undefined
  const parts = user.slice(prefix.length).split(':')
  const [namespace = '', name = ''] = parts
  if (parts.length !== 2 || isDns1123Label(namespace).length > 0 || isDns1123Subdomain(name).length > 0) return undefined
  return { namespace, name }
}
