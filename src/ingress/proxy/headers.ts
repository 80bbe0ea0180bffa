/**
 * Headers on their way through the proxy (L3, pure): those of one hop are removed, and those that say where a request came from are the proxy's own,
 * whatever the client sent. RFC 9110 section 7.6.1; ingress-nginx' names.
 */

import { namedByConnection, ofOneHop } from '#http/hopByHop'
import type { HeaderChanges } from '../model/route.ts'

/** Names and values in turn, as node:http has them. */
export type RawHeaders = readonly string[]

/** Set by the proxy, or read by some server as if the proxy had set them. */
const ours: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'expect',
  // CGI programs read it as the proxy of their own requests.
  'proxy',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-original-forwarded-for',
  'x-real-ip',
  'x-scheme',
  'cdn-loop',
])

/** RFC 8586: a request that comes back to the proxy again and again is recognized. */
const loopToken = 'skiff-ingress'
export const maxPasses = 4

export interface Origin {
  readonly remoteAddress: string
  /** Perhaps with a port. */
  readonly authority: string
  /** As the client wrote it. */
  readonly askedAuthority: string
  readonly scheme: 'http' | 'https'
  /** The port that clients connect to, which is not the one that the proxy listens on. */
  readonly port: number
}

/** How the body is framed towards the backend. */
export type Framing = { readonly length: string } | 'chunked' | 'none'

export function requestHeaders(raw: RawHeaders, origin: Origin, framing: Framing, changes: readonly HeaderChanges[] = []): string[] {
  const named = namedIn(raw)
  const headers = ['Host', origin.authority]
  const cookies: string[] = []
  let loops = ''
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    if (name.startsWith(':')) continue
    const lower = name.toLowerCase()
    // Some servers read an underscore in a name as a hyphen.
    const asRead = lower.includes('_') ? lower.replaceAll('_', '-') : lower
    if (asRead === 'cdn-loop') loops += `${value}, `
    if (ofOneHop.has(asRead) || ours.has(asRead) || named?.has(lower)) continue
    // HTTP/2 may split cookies, HTTP/1.1 may not.
    if (lower === 'cookie') cookies.push(value)
    else headers.push(name, value)
  }
  if (cookies.length > 0) headers.push('Cookie', cookies.join('; '))
  const changed = withChanges(headers, changes)
  if (framing === 'chunked') changed.push('Transfer-Encoding', 'chunked')
  else if (framing !== 'none') changed.push('Content-Length', framing.length)
  const { remoteAddress, askedAuthority, scheme, port } = origin
  changed.push('X-Real-IP', remoteAddress, 'X-Forwarded-For', remoteAddress, 'X-Forwarded-Host', askedAuthority)
  changed.push('X-Forwarded-Port', String(port), 'X-Forwarded-Proto', scheme, 'CDN-Loop', `${loops}${loopToken}`)
  return changed
}

/** The headers of a backend's answer that the client gets. */
export function responseHeaders(raw: RawHeaders, changes: readonly HeaderChanges[] = []): string[] {
  const named = namedIn(raw)
  const headers: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string
    const lower = name.toLowerCase()
    if (!ofOneHop.has(lower) && !named?.has(lower)) headers.push(name, raw[i + 1] as string)
  }
  return withChanges(headers, changes)
}

/** What a route sets, adds and removes. Headers that frame the message or belong to one hop stay as they are, and so do those of the proxy. */
function withChanges(headers: string[], changes: readonly HeaderChanges[]): string[] {
  let changed = headers
  for (const { set, add, remove } of changes) {
    const mayChange = (name: string) => !ofOneHop.has(name) && !ours.has(name)
    const replaced = new Set([...remove, ...set.map(([name]) => name.toLowerCase())].filter(mayChange))
    const kept: string[] = []
    for (let i = 0; i + 1 < changed.length; i += 2) {
      if (!replaced.has((changed[i] as string).toLowerCase())) kept.push(changed[i] as string, changed[i + 1] as string)
    }
    for (const [name, value] of set) if (mayChange(name.toLowerCase())) kept.push(name, value)
    for (const [name, value] of add) if (mayChange(name.toLowerCase())) append(kept, name, value)
    changed = kept
  }
  return changed
}

/** A value of a header that is there already is appended to it. */
function append(headers: string[], name: string, value: string): void {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if ((headers[i] as string).toLowerCase() !== name.toLowerCase()) continue
    headers[i + 1] = `${headers[i + 1]},${value}`
    return
  }
  headers.push(name, value)
}

/** How often a request has come through proxies like this one. */
export function passesOf(loops: string | readonly string[] | undefined): number {
  return loops === undefined ? 0 : String(loops).split(loopToken).length - 1
}

function namedIn(raw: RawHeaders): ReadonlySet<string> | undefined {
  const values = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'connection')
  if (values.length === 0) return undefined
  const named = namedByConnection(values)
  // The length of a body is not the client's to take away.
  named.delete('content-length')
  return named
}

export function countOf(raw: RawHeaders, wanted: string): number {
  let count = 0
  for (let i = 0; i < raw.length; i += 2) if ((raw[i] as string).toLowerCase() === wanted) count++
  return count
}

/** By lower-case name, for HTTP/2. */
export function asObject(raw: RawHeaders): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : [...[before].flat(), value]
  }
  return headers
}
