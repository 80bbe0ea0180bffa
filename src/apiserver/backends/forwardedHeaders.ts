/**
 * Filters the headers of proxied requests and answers (L3): no hop-by-hop headers, no credentials of the client, no identity headers but ours.
 * Upstream: net/http/httputil.ReverseProxy, apimachinery/pkg/util/proxy/transport.go, apiserver/pkg/endpoints/filters/authentication.go.
 */
import { bareMap, emptyMap } from '#base/bareMap'
import { namedByConnection, ofOneHop } from '#http/hopByHop'
import { offeredProtocols } from '#streaming/offeredProtocols'
import { authority, type Backend, type ForwardedRequest } from './backend.ts'
import { escapePath } from './backendPath.ts'

export type HeaderMap = Record<string, string | string[]>

/** The client's headers that are for this server alone. */
const ours: ReadonlySet<string> = new Set(['host', 'authorization', 'expect', 'x-remote-user', 'x-remote-uid', 'x-remote-group'])
const oursByPrefix = ['impersonate-', 'x-remote-extra-']
/** CORS headers of a backend are removed: they would apply to this server's origin. */
const crossOrigin: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
])

/** The headers of a request that is not upgraded. */
export function requestHeaders(request: ForwardedRequest, backend: Backend): HeaderMap {
  const headers = commonHeaders(request, backend)
  headers['x-forwarded-uri'] = escapePath(request.path)
  return headers
}

/** The headers of an upgrade request. */
export function upgradeHeaders(request: ForwardedRequest, backend: Backend): HeaderMap {
  const { 'content-length': _, 'sec-websocket-protocol': offered, ...headers } = commonHeaders(request, backend)
  // A token that browsers smuggle in as a subprotocol is for this server, not for the backend.
  const kept = offeredProtocols(offered).join(', ')
  return { ...headers, ...(kept === '' ? {} : { 'sec-websocket-protocol': kept }), connection: 'Upgrade', upgrade: String(request.headers.upgrade) }
}

function commonHeaders(request: ForwardedRequest, backend: Backend): HeaderMap {
  const { headers: sent, remoteAddress } = request
  const named = namedByConnection([sent.connection ?? []].flat())
  const headers: HeaderMap = bareMap({ host: backend.hostHeader ?? first(sent.host) ?? authority(backend) })
  for (const [name, value] of Object.entries(sent)) {
    // Some servers read an underscore in a header's name as a hyphen.
    const asRead = name.includes('_') ? name.replaceAll('_', '-') : name
    if (value === undefined || ofOneHop.has(asRead) || ours.has(asRead) || named.has(name)) continue
    if (oursByPrefix.some((prefix) => asRead.startsWith(prefix))) continue
    if (backend.identityHeaders?.some((one) => (one.endsWith('-') ? asRead.startsWith(one) : asRead === one))) continue
    headers[name] = typeof value === 'string' ? value : [...value]
  }
  const hops = [...[sent['x-forwarded-for'] ?? []].flat(), ...(remoteAddress === '' ? [] : [remoteAddress])]
  if (hops.length > 0) headers['x-forwarded-for'] = hops.join(', ')
  for (const [name, value] of Object.entries(backend.headers ?? {})) headers[name] = typeof value === 'string' ? value : [...value]
  return headers
}

/** The headers of a backend's answer that go back to the client. */
export function responseHeaders(received: Readonly<Record<string, string | readonly string[] | undefined>>): HeaderMap {
  const named = namedByConnection([received.connection ?? []].flat())
  const headers: HeaderMap = emptyMap()
  for (const [name, value] of Object.entries(received)) {
    if (value === undefined || ofOneHop.has(name) || crossOrigin.has(name) || named.has(name)) continue
    headers[name] = typeof value === 'string' ? value : [...value]
  }
  return headers
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
