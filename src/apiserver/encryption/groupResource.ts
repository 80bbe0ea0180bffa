/** Names of resources as an EncryptionConfiguration writes them (L3, pure): `secrets`, `deployments.apps`, `*.apps`, `*.`, `*.*`. */

export interface GroupResource {
  readonly group: string
  readonly resource: string
}

export const anyGroupAnyResource: GroupResource = { group: '*', resource: '*' }

/** Upstream: schema.ParseGroupResource. */
export function parseGroupResource(text: string): GroupResource {
  const at = text.indexOf('.')
  return at < 0 ? { group: '', resource: text } : { group: text.slice(at + 1), resource: text.slice(0, at) }
}

/** Upstream: schema.GroupResource.String. */
export function formatGroupResource({ group, resource }: GroupResource): string {
  return group === '' ? resource : `${resource}.${group}`
}
