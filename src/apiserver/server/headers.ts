/**
 * Headers of an HTTP/1.1 request as plain values (L3). Node joins repeated headers with commas; where values are separate, as with the groups of
 * an impersonated user, they are read from the raw headers.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { emptyMap } from '#base/bareMap'
import type { ServerRequest } from '../core/request.ts'
import type { HeaderMap } from './respond.ts'

/** @param raw names and values in turn, as sent */
export function plainHeaders(headers: IncomingHttpHeaders, raw: readonly string[]): ServerRequest['headers'] {
  const plain: HeaderMap = emptyMap()
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    plain[name] = isListedHeader(name) ? valuesOf(name, raw) : value
  }
  return plain
}

/** True for headers whose repeated values are separate. */
export function isListedHeader(name: string): boolean {
  return name.startsWith('impersonate-') || name.startsWith('x-remote-')
}

function valuesOf(name: string, raw: readonly string[]): readonly string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) if (raw[i]?.toLowerCase() === name) values.push(raw[i + 1] ?? '')
  return values
}

/** A request with two Host headers is ambiguous: two servers could each use another one. */
export function repeatsHost(raw: readonly string[]): boolean {
  let isThere = false
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue
    if (isThere) return true
    isThere = true
  }
  return false
}
