/**
 * The headers in which a front proxy passes its user, written and read (L3): X-Remote-User, -Uid, -Group and -Extra-.
 * Upstream: client-go/transport (SetAuthProxyHeaders), apiserver/pkg/authentication/request/headerrequest.
 */
import { badRequest } from '#api/machinery/status'
import { emptyMap } from '#base/bareMap'
import type { UserInfo } from './request.ts'

export const identityHeaderNames = { user: 'x-remote-user', uid: 'x-remote-uid', group: 'x-remote-group', extraPrefix: 'x-remote-extra-' } as const

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** @throws BadRequest for a name that no header can carry */
export function identityHeaders(user: UserInfo): Record<string, readonly string[]> {
  const headers: Record<string, readonly string[]> = { [identityHeaderNames.user]: [headerValue(user.name)] }
  if (user.uid) headers[identityHeaderNames.uid] = [headerValue(user.uid)]
  if (user.groups.length > 0) headers[identityHeaderNames.group] = user.groups.map(headerValue)
  for (const [key, values] of Object.entries(user.extra ?? {})) {
    headers[`${identityHeaderNames.extraPrefix}${escapeKey(key)}`] = values.map(headerValue)
  }
  return headers
}

/** Which headers to read, in lower case. Of names and uids the first header with a value counts, of groups and extra values all. */
export interface IdentityHeaderNames {
  readonly usernameHeaders: readonly string[]
  readonly uidHeaders: readonly string[]
  readonly groupHeaders: readonly string[]
  readonly extraHeaderPrefixes: readonly string[]
}

/** The names in lower case, as in parsed headers. */
export function inLowerCase({ usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes }: IdentityHeaderNames): IdentityHeaderNames {
  const lower = (names: readonly string[]) => names.map((name) => name.toLowerCase())
  return {
    usernameHeaders: lower(usernameHeaders),
    uidHeaders: lower(uidHeaders),
    groupHeaders: lower(groupHeaders),
    extraHeaderPrefixes: lower(extraHeaderPrefixes),
  }
}

/** The user that the headers name; undefined when they name none. */
export function userOfHeaders(headers: Headers, names: IdentityHeaderNames): UserInfo | undefined {
  const first = (of: readonly string[]) => of.map((name) => headerTexts(headers, name)[0] ?? '').find((value) => value !== '')
  const name = first(names.usernameHeaders)
  if (name === undefined) return undefined
  const uid = first(names.uidHeaders)
  const groups = names.groupHeaders.flatMap((header) => headerTexts(headers, header)).filter((group) => group !== '')
  const extra: Record<string, readonly string[]> = emptyMap()
  for (const prefix of names.extraHeaderPrefixes) {
    for (const header of Object.keys(headers)) {
      if (!header.startsWith(prefix)) continue
      const key = unescapeKey(header.slice(prefix.length))
      extra[key] = [...(extra[key] ?? []), ...headerTexts(headers, header)]
    }
  }
  return { name, groups, ...(uid ? { uid } : {}), ...(Object.keys(extra).length > 0 ? { extra: { ...extra } } : {}) }
}

/** The text's UTF-8 bytes, one per character, since header values are bytes. */
function headerValue(text: string): string {
  if (Array.from(text).some((character) => character < ' ' || character === '\u007f'))
    throw badRequest('a name with control characters cannot be passed on to an aggregated API server')
  return Buffer.from(text).toString('latin1')
}

/** The values of a header, which are bytes of UTF-8. */
export function headerTexts(headers: Headers, name: string): readonly string[] {
  return [headers[name] ?? []].flat().map((value) => Buffer.from(value, 'latin1').toString())
}

/** Percent-encodes what header names cannot hold, byte by byte. */
function escapeKey(key: string): string {
  return Array.from(Buffer.from(key.toLowerCase()), (byte) => {
    const character = String.fromCharCode(byte)
    return /[\w!#$&'*+.^`|~-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')
}

/** Decodes percent-encoding; an invalid sequence leaves the key unchanged. */
export function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
