/** Reads where a request wants to go (L3): the host and the path that routes are compared with. Ambiguous requests are refused, not guessed at. */
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { corsChanges, preflightOf } from '../model/cors.ts'
import { hostOf } from '../model/hostName.ts'
import { comparablePath } from '../model/requestPath.ts'
import type { Asked, BackendTls, Route } from '../model/route.ts'
import type { Backend } from './backend.ts'
import { countOf, maxPasses, passesOf, type RawHeaders } from './headers.ts'
import type { Entrance, ProxyDeps } from './proxyDeps.ts'
import { locationOf, rewritten, type Target } from './rewrite.ts'

export type ClientRequest = IncomingMessage | Http2ServerRequest

export interface Destination {
  readonly target: Target
  readonly route: Route
  readonly backend: Backend
  /** Undefined: the backend is asked in clear text. */
  readonly tls: BackendTls | undefined
}

/** The proxy's own answer. */
export interface Refusal {
  readonly status: number
  readonly headers?: RawHeaders | undefined
}

const refusedMethods: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

/** A route that cannot be followed, which no API server lets pass, fails its own requests only. */
export function destinationOf(request: ClientRequest, entrance: Entrance, deps: ProxyDeps): Destination | Refusal {
  try {
    return follow(request, entrance, deps)
  } catch (error) {
    deps.log.error(error, 'A request could not be routed', { host: request.headers[':authority'] ?? request.headers.host, gateway: entrance.gateway })
    return { status: 500 }
  }
}

function follow(request: ClientRequest, entrance: Entrance, { router, limits }: ProxyDeps): Destination | Refusal {
  if (refusedMethods.has(request.method ?? '')) return { status: 405 }
  if (passesOf(request.headers['cdn-loop']) >= maxPasses) return { status: 508 }
  const asked = askedOf(request)
  if (!asked) return { status: 400 }
  const route = router.route(asked, entrance, serverNameOf(request))
  if (typeof route === 'number') return { status: route }
  const preflight = route.cors && preflightOf(route.cors, asked)
  if (preflight) return { status: 204, headers: preflight.flat() }
  if (route.redirect) return { status: route.redirect.status, headers: ['Location', locationOf(route.redirect, route.pattern, asked, entrance)] }
  const tls = route.backend?.tls
  if (!route.backend || tls === 'unverifiable') return { status: 500 }
  const backend = router.backendOf(route.backend)
  if (backend.size === 0 || backend.inFlight >= limits.maxInFlight) return { status: 503 }
  const responseHeaders = route.cors ? [...(route.responseHeaders ?? []), corsChanges(route.cors, asked)] : route.responseHeaders
  return { target: rewritten(route, asked), route: { ...route, responseHeaders }, backend, tls }
}

function serverNameOf(request: ClientRequest): string | undefined {
  const socket = 'stream' in request ? request.stream.session?.socket : request.socket
  const name = (socket as { servername?: string | false } | undefined)?.servername
  return typeof name === 'string' ? name.toLowerCase() : undefined
}

function askedOf(request: ClientRequest): (Asked & { readonly authority: string }) | undefined {
  const authorities = authoritiesOf(request)
  let url = request.url ?? ''
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url)
  if (absolute) {
    // RFC 9112 section 3.2.2: the target wins over the header; a client that sends two different ones means harm.
    if (authorities.some((one) => one.toLowerCase() !== absolute[1]?.toLowerCase())) return undefined
    url = absolute[2]?.startsWith('/') ? absolute[2] : `/${absolute[2]}`
  }
  const authority = absolute?.[1] ?? authorities[0] ?? ''
  if (authorities.length > 1 && new Set(authorities).size > 1) return undefined
  // HTTP/1.0 has requests without a host.
  const host = authority === '' ? '' : hostOf(authority)
  const query = url.indexOf('?')
  const path = comparablePath(query < 0 ? url : url.slice(0, query))
  if (host === undefined || path === undefined || url.includes('#')) return undefined
  return { authority, host, url, path, method: request.method ?? '', headers: request.headers }
}

function authoritiesOf(request: ClientRequest): string[] {
  if ('stream' in request) {
    const { ':authority': authority, host } = request.headers
    return [authority, host].filter((one) => one !== undefined)
  }
  // Node keeps the first of several.
  if (countOf(request.rawHeaders, 'host') > 1) return ['a', 'b']
  return request.headers.host === undefined ? [] : [request.headers.host]
}
