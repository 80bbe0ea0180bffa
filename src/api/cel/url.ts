/**
 * CEL's library for URLs (L1), read by Go's rules rather than the platform's: nothing is normalized but the scheme.
 * Upstream: apiserver/pkg/cel/library/urls.go, pkg/cel/url.go (v1.36) with Go's net/url.
 */
import type { Library } from '#cel/declarations'
import { declare, member, overload } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import { ArrayList, EvaluationError, HashMap, OpaqueValue } from '#cel/values'

interface ParsedUrl {
  readonly scheme: string
  /** With the port, without user and password. */
  readonly host: string
  readonly escapedPath: string
  readonly query: string
}

export class UrlValue extends OpaqueValue {
  readonly typeName = 'kubernetes.URL'
  readonly url: ParsedUrl
  readonly text: string

  constructor(url: ParsedUrl, text: string) {
    super()
    this.url = url
    this.text = text
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && this.text === other.text
  }
}

/** Why a text is no URL, in Go's words. */
class UrlFault extends Error {}

const hasControlCharacter = (text: string): boolean => [...text].some((character) => character < ' ' || character === '\x7f')
const badEscape = /%(?![0-9a-fA-F]{2})/

/** What follows a percent sign that begins no escape, as Go quotes it. */
function checkEscapes(text: string): void {
  const at = text.search(badEscape)
  if (at >= 0) throw new UrlFault(`invalid URL escape ${JSON.stringify(text.slice(at, at + 3))}`)
}

/** @param isRequest whether the text must be a whole URI or an absolute path, in which # has no meaning. @throws UrlFault */
function parseUrl(text: string, isRequest: boolean): ParsedUrl {
  if (hasControlCharacter(text)) throw new UrlFault('net/url: invalid control character in URL')
  if (text === '' && isRequest) throw new UrlFault('empty url')
  if (text.startsWith(':')) throw new UrlFault('missing protocol scheme')
  const hash = isRequest ? -1 : text.indexOf('#')
  const whole = hash < 0 ? text : text.slice(0, hash)
  if (whole === '*') return { scheme: '', host: '', escapedPath: '*', query: '' }
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(whole)?.[1] ?? ''
  const afterScheme = scheme === '' ? whole : whole.slice(scheme.length + 1)
  const mark = afterScheme.indexOf('?')
  const rest = mark < 0 ? afterScheme : afterScheme.slice(0, mark)
  const query = mark < 0 ? '' : afterScheme.slice(mark + 1)
  const parsed = { scheme: scheme.toLowerCase(), query }
  if (!rest.startsWith('/')) {
    if (scheme !== '') return { ...parsed, host: '', escapedPath: '' }
    if (isRequest) throw new UrlFault('invalid URI for request')
    if (rest.split('/')[0]!.includes(':')) throw new UrlFault('first path segment in URL cannot contain colon')
  }
  const hasAuthority = rest.startsWith('//') && (scheme !== '' || (!isRequest && !rest.startsWith('///')))
  const pathStart = hasAuthority ? rest.indexOf('/', 2) : 0
  const authority = hasAuthority ? rest.slice(2, pathStart < 0 ? undefined : pathStart) : ''
  return { ...parsed, host: hostOf(authority), escapedPath: escapedPath(pathStart < 0 ? '' : rest.slice(pathStart)) }
}

function hostOf(authority: string): string {
  const at = authority.lastIndexOf('@')
  if (at >= 0 && !/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(authority.slice(0, at))) throw new UrlFault('net/url: invalid userinfo')
  const host = authority.slice(at + 1)
  const bracket = host.lastIndexOf(']')
  if (host.startsWith('[') && bracket < 0) throw new UrlFault("missing ']' in host")
  const colon = host.startsWith('[') ? bracket + 1 : host.lastIndexOf(':')
  const port = colon < 0 ? '' : host.slice(colon)
  if (!/^(:\d*)?$/.test(port)) throw new UrlFault(`invalid port ${JSON.stringify(port)} after host`)
  const bad = /[\s\\^`{}|]/.exec(host)?.[0]
  if (bad !== undefined) throw new UrlFault(`invalid character ${JSON.stringify(bad)} in host name`)
  checkEscapes(host)
  return host
}

/** The path as written if it is well formed, otherwise encoded again. */
function escapedPath(path: string): string {
  checkEscapes(path)
  if (/^[A-Za-z0-9\-._~!$&'()*+,;=:@[\]%/]*$/.test(path)) return path
  return path.replace(/%[0-9a-fA-F]{2}|[\s\S]/gu, (part) => (/^(%..|[A-Za-z0-9\-._~$&+,/:;=@])$/.test(part) ? part : encodeByte(part)))
}

const encodeByte = (text: string): string =>
  Array.from(new TextEncoder().encode(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

function isUrl(text: string): boolean {
  try {
    parseUrl(text, true)
    return true
  } catch (error) {
    if (error instanceof UrlFault) return false
    throw error
  }
}

/** Go's error for text that is not a request URI; undefined when it is one. */
export function urlFault(text: string): string | undefined {
  try {
    parseUrl(text, true)
    return undefined
  } catch (error) {
    if (error instanceof UrlFault) return `parse ${JSON.stringify(text)}: ${error.message}`
    throw error
  }
}

function toUrl(text: string): UrlValue {
  try {
    parseUrl(text, true)
    const url = parseUrl(text, false)
    return new UrlValue(url, url.scheme + text.slice(url.scheme.length))
  } catch (error) {
    if (error instanceof UrlFault) throw new EvaluationError(`URL parse error during conversion from string: parse ${JSON.stringify(text)}: ${error.message}`)
    throw error
  }
}

const hostname = ({ url }: UrlValue): string => {
  const bracketed = /^\[(.*)\]/.exec(url.host)
  return bracketed ? bracketed[1]! : url.host.replace(/:\d*$/, '')
}
const port = ({ url }: UrlValue): string => /:(\d*)$/.exec(url.host.replace(/^\[.*\]/, ''))?.[1] ?? ''

/** Pairs that are badly written are left out, as in Go. */
function queryOf({ url }: UrlValue): HashMap {
  const lists = new Map<string, string[]>()
  for (const pair of url.query.split('&')) {
    if (pair === '' || pair.includes(';')) continue
    const equals = pair.indexOf('=')
    const key = unescapeQuery(equals < 0 ? pair : pair.slice(0, equals))
    const value = unescapeQuery(equals < 0 ? '' : pair.slice(equals + 1))
    if (key === undefined || value === undefined) continue
    const list = lists.get(key)
    if (list) list.push(value)
    else lists.set(key, [value])
  }
  const map = new HashMap()
  for (const [key, values] of lists) map.set(key, new ArrayList(values))
  return map
}

function unescapeQuery(text: string): string | undefined {
  if (badEscape.test(text)) return undefined
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  const bytes = [...spaced.matchAll(/%([0-9a-fA-F]{2})|[^%]+/g)].flatMap(([part, hex]) =>
    hex === undefined ? [...new TextEncoder().encode(part)] : [Number.parseInt(hex, 16)],
  )
  return new TextDecoder().decode(Uint8Array.from(bytes))
}

const type = 'kubernetes.URL'

export const urlLibrary: Library = {
  typeNames: [opaqueType(type)],
  functions: [
    declare('url', overload('string_to_url', `(string) -> ${type}`, toUrl)),
    declare(
      'getScheme',
      member('url_get_scheme', `(${type}) -> string`, ({ url }: UrlValue) => url.scheme),
    ),
    declare(
      'getHost',
      member('url_get_host', `(${type}) -> string`, ({ url }: UrlValue) => url.host),
    ),
    declare('getHostname', member('url_get_hostname', `(${type}) -> string`, hostname)),
    declare('getPort', member('url_get_port', `(${type}) -> string`, port)),
    declare(
      'getEscapedPath',
      member('url_get_escaped_path', `(${type}) -> string`, ({ url }: UrlValue) => url.escapedPath),
    ),
    declare('getQuery', member('url_get_query', `(${type}) -> map(string, list(string))`, queryOf)),
    declare('isURL', overload('is_url_string', '(string) -> bool', isUrl)),
  ],
}
