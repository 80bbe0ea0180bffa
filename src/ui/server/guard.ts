/**
 * What the front refuses before it looks at anything else (L4): names of other hosts (DNS rebinding), other origins, and targets that are not the API's.
 * Pure: throws a StatusError for a request to refuse.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { StatusError } from '#api/machinery/status'
import { keyProtocol, plainProtocol, tableProtocol } from '../model/protocols.ts'

export interface RequestHead {
  readonly method: string
  readonly target: string
  readonly headers: IncomingHttpHeaders
  /** Whether it asks for a WebSocket, whose requests browsers send to any origin. */
  readonly isUpgrade: boolean
}

/** @throws StatusError Forbidden or BadRequest */
export function checkHead({ method, target, headers, isUpgrade }: RequestHead, port: number): void {
  const { host, origin } = headers
  const own = [`127.0.0.1:${port}`, `localhost:${port}`]
  if (host === undefined || !own.includes(host)) throw new StatusError('Forbidden', `this page is not served for the host ${host ?? ''}`)
  if (origin !== undefined && origin !== `http://${host}`) throw new StatusError('Forbidden', `requests of the origin ${origin} are refused`)
  const isRead = (method === 'GET' || method === 'HEAD') && !isUpgrade
  if (!isRead && origin === undefined) throw new StatusError('Forbidden', 'a request that is no GET must name its origin')
  const site = headers['sec-fetch-site']
  // A link on another site may open the page, and nothing else.
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && isRead && !needsSession(target)
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isNavigation) throw new StatusError('Forbidden', `requests from ${site} are refused`)
  if (!isPlain(target)) throw new StatusError('BadRequest', 'the path is not in its normal form')
}

/** Letters, digits, `-`, `.`, `_` and `~` need no encoding: encoded, they hide what a path names. */
const encodedPlain = /%(?:2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/i

/** Starts at the root, and no proxy reads it as another path: no empty, `.` or `..` segments, encoded or not, and no backslash. */
function isPlain(target: string): boolean {
  const [path = ''] = target.split('?', 1)
  const segments = path.replace(/%2e/gi, '.').split('/').slice(1)
  const isNormal = segments.every((segment, at) => segment !== '.' && segment !== '..' && (segment !== '' || at === segments.length - 1))
  return path.startsWith('/') && isNormal && !/\\|%2f|%5c|%00|[^\x21-\x7e]/i.test(path) && !encodedPlain.test(path)
}

const roots = /^\/(api|apis|openapi|version|healthz|livez|readyz|metrics|debug\/scheduling|skiff|front)([/?]|$)/
/** Content of pods and nodes would be shown in the name of this page. */
const foreign = /^\/api\/v1\/(namespaces\/[^/]+\/)?(pods|services|nodes)\/[^/]+\/proxy([/?]|$)/

/** Whether a session is needed: for everything but the page's own files and the login. */
export const needsSession = (target: string): boolean => roots.test(target) && !/^\/front\/login(\?|$)/.test(target)

/** @throws StatusError Forbidden */
export function checkApiTarget(target: string): void {
  if (foreign.test(target)) throw new StatusError('Forbidden', 'the page passes no requests on to pods, Services and nodes: use kubectl port-forward')
}

export const cookieName = (port: number): string => `skiff-ui-${port}`

export function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of header?.split(';') ?? []) {
    const [key, value] = part.trim().split('=', 2)
    if (key === name) return value
  }
  return undefined
}

export interface OfferedProtocols {
  readonly key: string | undefined
  readonly wantsTable: boolean
  /** For the server. */
  readonly others: readonly string[]
}

export function offeredProtocols(header: string | undefined): OfferedProtocols {
  const offered = (header ?? '').split(',').map((one) => one.trim())
  const key = offered.find((one) => one.startsWith(keyProtocol))?.slice(keyProtocol.length)
  const others = offered.filter((one) => one !== '' && one !== plainProtocol && !one.startsWith(`${plainProtocol}.`))
  return { key, wantsTable: offered.includes(tableProtocol), others }
}

const passedRequestHeaders = ['accept', 'content-type', 'if-none-match'] as const

/** Headers for the server; none that names the caller. */
export function headersForServer(headers: IncomingHttpHeaders): Record<string, string> {
  const named = passedRequestHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]))
  return { ...Object.fromEntries(named), 'user-agent': 'skiff-ui' }
}

const passedAnswerHeaders = ['content-type', 'warning', 'retry-after', 'audit-id', 'etag'] as const

/** The headers that the page gets. Answers of the API are data: no browser shows them as a page, or keeps them. */
export function headersForPage(headers: Readonly<Record<string, string | readonly string[] | undefined>>): Record<string, string | string[]> {
  const named = passedAnswerHeaders.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [[name, typeof value === 'string' ? value : [...value]] as const]
  })
  return { ...Object.fromEntries(named), ...dataHeaders }
}

const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

export const dataHeaders = { ...commonHeaders, 'cache-control': 'no-store', 'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox" }

/** The terminal and the editor write style sheets of their own; scripts come from files alone. */
export const pageHeaders = {
  ...commonHeaders,
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
}
