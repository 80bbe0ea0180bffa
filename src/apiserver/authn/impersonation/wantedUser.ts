/** Reads the user to impersonate from the headers (L3). Upstream: processImpersonationHeaders of apiserver/pkg/endpoints/filters/impersonation. */
import { badRequest } from '#api/machinery/status'
import { emptyMap } from '#base/bareMap'
import { headerTexts, unescapeKey } from '../../core/identityHeaders.ts'
import type { ServerRequest, UserInfo } from '../../core/request.ts'

/** The fields in the headers, without implied groups. */
export interface WantedUser {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

const extraPrefix = 'impersonate-extra-'

/** Undefined: the request is its sender's own. @throws Status BadRequest for groups, uids or extra values without a name */
export function wantedUser({ headers }: ServerRequest): WantedUser | undefined {
  if (!isAsked(headers)) return undefined
  const extra: Record<string, readonly string[]> = emptyMap()
  for (const header of Object.keys(headers)) {
    if (!header.startsWith(extraPrefix)) continue
    const key = unescapeKey(header.slice(extraPrefix.length))
    extra[key] = [...(extra[key] ?? []), ...headerTexts(headers, header)]
  }
  const wanted: WantedUser = {
    name: headerTexts(headers, 'impersonate-user')[0] ?? '',
    uid: headerTexts(headers, 'impersonate-uid')[0] ?? '',
    groups: headerTexts(headers, 'impersonate-group'),
    extra: { ...extra },
  }
  if (wanted.name !== '') return wanted
  if (wanted.uid === '' && wanted.groups.length === 0 && Object.keys(extra).length === 0) return undefined
  throw badRequest(`requested ${goSyntax(wanted)} without impersonating a user name`)
}

function isAsked(headers: ServerRequest['headers']): boolean {
  for (const header in headers) if (header.startsWith('impersonate-')) return true
  return false
}

/** Go's %#v of the user. */
function goSyntax({ name, uid, groups, extra }: WantedUser): string {
  const list = (texts: readonly string[]) => `[]string{${texts.map((text) => JSON.stringify(text)).join(', ')}}`
  const keys = Object.keys(extra).sort()
  const map =
    keys.length > 0 ? `map[string][]string{${keys.map((key) => `${JSON.stringify(key)}:${list(extra[key] ?? [])}`).join(', ')}}` : 'map[string][]string(nil)'
  const shownGroups = groups.length > 0 ? list(groups) : '[]string(nil)'
  return `&user.DefaultInfo{Name:${JSON.stringify(name)}, UID:${JSON.stringify(uid)}, Groups:${shownGroups}, Extra:${map}}`
}

/** True when only the name is given: the API server derives the other fields of service accounts and nodes itself. */
export function onlyNamed({ uid, groups, extra }: WantedUser): boolean {
  return uid === '' && groups.length === 0 && Object.keys(extra).length === 0
}

export function asUser({ name, uid, groups, extra }: WantedUser, impliedGroups: readonly string[] = groups): UserInfo {
  return { name, groups: withImplied(name, impliedGroups), ...(uid ? { uid } : {}), ...(Object.keys(extra).length > 0 ? { extra } : {}) }
}

const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'

function withImplied(name: string, groups: readonly string[]): readonly string[] {
  const implied = name === 'system:anonymous' ? unauthenticated : groups.includes(unauthenticated) ? undefined : authenticated
  return implied === undefined || groups.includes(implied) ? groups : [...groups, implied]
}
