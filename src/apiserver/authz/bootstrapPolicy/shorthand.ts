/** The short notation of the bootstrap policy (L3, pure): one tuple per rule, words separated by blanks. '-' is the core group. */
import type { PolicyRule } from '#api/gen/types/rbac.v1'

/** [verbs, groups, resources, names?], or [verbs, non-resource URLs]. */
export type ShortRule = readonly [verbs: string, groups: string, resources: string, names?: string] | readonly [verbs: string, urls: string]

export type ShortRoles = Readonly<Record<string, readonly ShortRule[]>>

export const read = 'get list watch'
export const write = 'create delete deletecollection patch update'
export const readWrite = 'create delete deletecollection get list patch update watch'
export const events: ShortRule = ['create patch update', '- events.k8s.io', 'events']

const words = (text: string) => text.split(' ').map((word) => (word === '-' ? '' : word))

export function expandRule([verbs, where, resources, names]: ShortRule): PolicyRule {
  if (resources === undefined) return { verbs: words(verbs), nonResourceURLs: words(where) }
  return { verbs: words(verbs), apiGroups: words(where), resources: words(resources), ...(names ? { resourceNames: words(names) } : {}) }
}
