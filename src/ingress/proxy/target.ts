/** Reads where a request wants to go (L3): the host and the path that routes are compared with. Ambiguous requests are refused, not guessed at. */
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { hostOf } from '../model/hostName.ts'
import { comparablePath } from '../model/requestPath.ts'
import type { Route } from '../model/routingTable.ts'
import type { Backend } from './backend.ts'
import { countOf, maxPasses, passesOf } from './headers.ts'
import type { ProxyDeps } from './proxyDeps.ts'

export type ClientRequest = IncomingMessage | Http2ServerRequest

export interface Target {
  /** As the client wrote it. */
  readonly authority: string
  readonly host: string
  /** With the query, as the client wrote it. */
  readonly url: string
  readonly path: string
}

export interface Destination {
  readonly target: Target
  readonly route: Route
  readonly backend: Backend
}

/** A status code: the request is answered with it. */
export type Refusal = number

const refusedMethods: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

export function destinationOf(request: ClientRequest, { router, limits }: ProxyDeps): Destination | Refusal {
  if (refusedMethods.has(request.method ?? '')) return 405
  if (passesOf(request.headers['cdn-loop']) >= maxPasses) return 508
  const target = targetOf(request)
  if (!target) return 400
  const route = router.route(target.host, target.path)
  if (!route) return 404
  const backend = router.backendOf(route)
  if (backend.size === 0 || backend.inFlight >= limits.maxInFlight) return 503
  return { target, route, backend }
}

function targetOf(request: ClientRequest): Target | undefined {
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
  return host === undefined || path === undefined || url.includes('#') ? undefined : { authority, host, url, path }
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
