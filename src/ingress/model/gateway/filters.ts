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
    if (filter.type === 'RequestHeaderModifier') requestHeaders.push(headerChanges(filter.requestHeaderModifier))
    else if (filter.type === 'ResponseHeaderModifier') responseHeaders.push(headerChanges(filter.responseHeaderModifier))
    else if (filter.type === 'RequestRedirect') {
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
  return path.type === 'ReplacePrefixMatch'
    ? { replaces: 'prefix', path: path.replacePrefixMatch ?? '' }
    : { replaces: 'path', path: path.replaceFullPath || '/' }
}
