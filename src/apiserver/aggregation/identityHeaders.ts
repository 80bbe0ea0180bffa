/**
 * How the front proxy says for whom it asks (L3), and how an API server behind one reads it: X-Remote-User, -Uid, -Group and -Extra-.
 * Upstream: client-go/transport (SetAuthProxyHeaders), apiserver/pkg/authentication/request/headerrequest.
 */
import { badRequest } from '#api/machinery/status'
import type { UserInfo } from '../request.ts'

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

/** The user whom the headers name; undefined when they name none. */
export function userOfHeaders(headers: Headers): UserInfo | undefined {
  const name = valuesOf(headers, identityHeaderNames.user).find((value) => value !== '')
  if (name === undefined) return undefined
  const uid = valuesOf(headers, identityHeaderNames.uid)[0]
  const extra: Record<string, readonly string[]> = {}
  for (const header of Object.keys(headers)) {
    if (header.startsWith(identityHeaderNames.extraPrefix)) extra[unescapeKey(header.slice(identityHeaderNames.extraPrefix.length))] = valuesOf(headers, header)
  }
  return {
    name,
    groups: valuesOf(headers, identityHeaderNames.group),
    ...(uid ? { uid } : {}),
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  }
}

/** Headers are bytes: UTF-8 travels as such. */
function headerValue(text: string): string {
  if (Array.from(text).some((character) => character < ' ' || character === '\u007f'))
    throw badRequest('a name with control characters cannot be passed on to an aggregated API server')
  return Buffer.from(text).toString('latin1')
}

function valuesOf(headers: Headers, name: string): readonly string[] {
  return [headers[name] ?? []].flat().map((value) => Buffer.from(value, 'latin1').toString())
}

/** Percent-encodes what header names cannot hold, byte by byte. */
function escapeKey(key: string): string {
  return Array.from(Buffer.from(key.toLowerCase()), (byte) => {
    const character = String.fromCharCode(byte)
    return /[\w!#$&'*+.^`|~-]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }).join('')
}

function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}
