/** Reads the filters of a rule or of a backend into what the proxy does (L3, pure). Upstream: apis/v1/httproute_types.go (v1.6.3). */
import type { Frozen } from '#api/machinery/meta'
import type { BackendRef, Cors, HeaderChanges, Mirror, PathChange, Route } from '../route.ts'
import type { Filter, HeaderFilter, ObjectReference, PathModifier } from './kinds.ts'

export type Changes = Pick<Route, 'requestHeaders' | 'responseHeaders' | 'redirect' | 'rewrite' | 'mirrors' | 'cors'>

const hundred = 100
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** @param resolve finds the backend of a mirror; undefined: it cannot be used @returns a text when a filter is not supported */
export function changesOf(filters: readonly Frozen<Filter>[], resolve: (ref: Frozen<ObjectReference>) => BackendRef | undefined): Changes | string {
  const requestHeaders: HeaderChanges[] = []
  const responseHeaders: HeaderChanges[] = []
  const mirrors: Mirror[] = []
  let { redirect, rewrite, cors }: Changes = {}
  for (const filter of filters) {
    if (filter.type === 'RequestHeaderModifier' || filter.type === 'ResponseHeaderModifier') {
      const isRequest = filter.type === 'RequestHeaderModifier'
      const changes = headerChanges(isRequest ? filter.requestHeaderModifier : filter.responseHeaderModifier)
      const unusable = [...changes.set, ...changes.add].find(([name, value]) => !isHeader(name, value))
      if (unusable) return `the value of the header ${unusable[0]}, which has characters that HTTP does not allow`
      ;(isRequest ? requestHeaders : responseHeaders).push(changes)
    } else if (filter.type === 'RequestRedirect') {
      const { scheme, hostname, port, statusCode = 302, path } = filter.requestRedirect ?? {}
      if (!redirectStatuses.has(statusCode)) return `a redirect with the status ${statusCode}`
      redirect = { status: statusCode, scheme, host: hostname, port, path: pathChange(path) }
    } else if (filter.type === 'URLRewrite') {
      const { hostname, path } = filter.urlRewrite ?? {}
      rewrite = { host: hostname, path: pathChange(path) }
    } else if (filter.type === 'RequestMirror' && filter.requestMirror) {
      const backend = resolve(filter.requestMirror.backendRef)
      if (backend?.protocol) return 'a mirror that speaks HTTP/2'
      if (backend) mirrors.push({ backend, share: shareOf(filter.requestMirror) })
    } else if (filter.type === 'CORS') cors = corsOf(filter.cors)
    else return `the filter ${filter.type}`
  }
  return {
    ...(requestHeaders.length > 0 ? { requestHeaders } : {}),
    ...(responseHeaders.length > 0 ? { responseHeaders } : {}),
    ...(redirect ? { redirect } : {}),
    ...(rewrite ? { rewrite } : {}),
    ...(mirrors.length > 0 ? { mirrors } : {}),
    ...(cors ? { cors } : {}),
  }
}

function shareOf({ percent, fraction }: NonNullable<Frozen<Filter>['requestMirror']>): number {
  if (fraction) return fraction.numerator / (fraction.denominator || hundred)
  return (percent ?? hundred) / hundred
}

function corsOf(filter: Frozen<Filter>['cors'] = {}): Cors {
  const { allowOrigins = [], allowMethods = [], allowHeaders = [], exposeHeaders = [], allowCredentials = false, maxAge = 5 } = filter
  return {
    origins: allowOrigins,
    methods: allowMethods,
    headers: allowHeaders,
    exposed: exposeHeaders,
    withCredentials: allowCredentials,
    maxAgeSeconds: maxAge,
  }
}

function headerChanges({ set = [], add = [], remove = [] }: Frozen<HeaderFilter> = {}): HeaderChanges {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) => list.map(({ name, value }) => [name, value] as const)
  return { set: pairs(set), add: pairs(add), remove: new Set(remove.map((name) => name.toLowerCase())) }
}

function pathChange(path: Frozen<PathModifier> | undefined): PathChange | undefined {
  if (!path) return undefined
  if (path.type === 'ReplacePrefixMatch') return { replaces: 'prefix', path: escaped(path.replacePrefixMatch ?? '') }
  return { replaces: 'path', path: escaped((path.replaceFullPath ?? '').replace(/^\/?/, '/')) }
}

/** With percent signs for what a request line and a Location cannot hold: a tenant writes the path. */
function escaped(path: string): string {
  return path.replace(/[^\x21\x24-\x7e]/gu, (one) => [...Buffer.from(one)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''))
}

/** RFC 9110 sections 5.1 and 5.5, as Node checks them. */
const isHeader = (name: string, value: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\t -~\x80-\xff]*$/.test(value)
