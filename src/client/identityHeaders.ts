/** Headers that identify the caller of a request (L2): credentials and impersonation. Upstream: client-go/transport/round_trippers.go (v1.36). */

/** The user to impersonate. Upstream: ImpersonationConfig. */
export interface Impersonate {
  readonly user: string
  readonly uid?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

export interface Identity {
  readonly token?: string | undefined
  readonly basicAuth?: { readonly username: string; readonly password: string } | undefined
  readonly impersonate?: Impersonate | undefined
}

/** A header a value: servers take a comma for a part of a group's name. */
export function identityHeaders({ token, basicAuth, impersonate }: Identity): Record<string, string | readonly string[]> {
  return {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(basicAuth ? { authorization: `Basic ${Buffer.from(`${basicAuth.username}:${basicAuth.password}`).toString('base64')}` } : {}),
    ...(impersonate ? impersonationHeaders(impersonate) : {}),
  }
}

function impersonationHeaders({ user, uid, groups, extra }: Impersonate): Record<string, string | readonly string[]> {
  const extraHeaders = Object.entries(extra ?? {}).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`, values] as const)
  return {
    'impersonate-user': user,
    ...(uid ? { 'impersonate-uid': uid } : {}),
    ...(groups?.length ? { 'impersonate-group': groups } : {}),
    ...Object.fromEntries(extraHeaders),
  }
}
