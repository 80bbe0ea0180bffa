/** Answers of a route to requests of other origins (L3, pure): RFC 6454, and the protocol of https://fetch.spec.whatwg.org. */
import type { Asked, Cors, HeaderChanges } from './route.ts'

const origin = 'Access-Control-Allow-Origin'
const credentials = 'Access-Control-Allow-Credentials'
const methods = 'Access-Control-Allow-Methods'
const headers = 'Access-Control-Allow-Headers'
const exposed = 'Access-Control-Expose-Headers'
const maxAge = 'Access-Control-Max-Age'
const ofBackend = new Set([origin, credentials, methods, headers, exposed, maxAge].map((name) => name.toLowerCase()))

type Pairs = (readonly [name: string, value: string])[]

/** The headers of the answer to a preflight request; undefined: it is none. */
export function preflightOf(cors: Cors, asked: Asked): Pairs | undefined {
  const wanted = single(asked, 'access-control-request-method')
  if (asked.method !== 'OPTIONS' || single(asked, 'origin') === undefined || wanted === undefined) return undefined
  const common = commonHeaders(cors, asked)
  if (common.length === 0) return [['Vary', 'Origin']]
  const wantedHeaders = single(asked, 'access-control-request-headers')
  return [
    ...common,
    ...listed(methods, cors.methods, wanted),
    ...(wantedHeaders === undefined ? [] : listed(headers, cors.headers, wantedHeaders)),
    [maxAge, String(cors.maxAgeSeconds)],
  ]
}

/** What a request's answer says instead of what the backend says. */
export function corsChanges(cors: Cors, asked: Asked): HeaderChanges {
  return { set: commonHeaders(cors, asked), add: [], remove: ofBackend }
}

function commonHeaders(cors: Cors, asked: Asked): Pairs {
  const from = single(asked, 'origin')
  if (from === undefined || !cors.origins.some((pattern) => isMatch(pattern, from))) return []
  const shown = cors.exposed.filter((name) => name !== '*' || !cors.withCredentials)
  return [
    [origin, from],
    ['Vary', 'Origin'],
    ...(cors.withCredentials ? [[credentials, 'true'] as const] : []),
    ...(shown.length > 0 ? [[exposed, shown.join(', ')] as const] : []),
  ]
}

/** A wildcard allows what the client asks for. */
function listed(name: string, allowed: readonly string[], asked: string): Pairs {
  if (allowed.length === 0) return []
  return [[name, allowed.includes('*') ? asked : allowed.join(', ')]]
}

/** A star stands for any characters of the host but those that end it. */
function isMatch(pattern: string, from: string): boolean {
  if (pattern === '*') return true
  const star = pattern.indexOf('*')
  if (star < 0) return pattern.toLowerCase() === from.toLowerCase()
  const [start, end] = [pattern.slice(0, star).toLowerCase(), pattern.slice(star + 1).toLowerCase()]
  const lower = from.toLowerCase()
  if (lower.length <= start.length + end.length || !lower.startsWith(start) || !lower.endsWith(end)) return false
  // A port that the pattern does not name is the one of the scheme, which browsers leave out.
  return !/[/:@]/.test(lower.slice(start.length, lower.length - end.length))
}

function single({ headers: all }: Asked, name: string): string | undefined {
  const value = all[name]
  return value === undefined ? undefined : String(value)
}
