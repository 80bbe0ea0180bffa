/**
 * The proxy subresource of nodes, pods and services (L3): `[scheme:]name[:port]` in the path, the rest of the path goes to the backend.
 * Upstream: pkg/registry/core/{node,pod,service}/rest (ProxyREST) and their ResourceLocation functions.
 */
import type { ObjectReference, Pod, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, notFound, StatusError } from '#api/machinery/status'
import { type Backend, isUpgrade } from '../../backends/backend.ts'
import { escapePath, querySuffix } from '../../backends/backendPath.ts'
import { proxyPlain } from '../../backends/plainProxy.ts'
import { checkProxyable, isProxyableAddress } from '../../backends/proxyableAddress.ts'
import { tunnel } from '../../backends/tunnel.ts'
import type { Answer } from '../../core/answer.ts'
import { methodNotAllowed } from '../router.ts'
import type { Scope } from '../scope.ts'
import { connectAdmission } from './connectAdmission.ts'
import { nodeBackend } from './node.ts'
import type { StreamDeps } from './podStreams.ts'

type Place = Pick<Backend, 'host' | 'port' | 'tls' | 'hostHeader' | 'mayDial'>
type Locate = (deps: StreamDeps, scope: Scope, named: Named) => Place | Promise<Place>

interface Named {
  readonly scheme: string
  readonly name: string
  readonly port: string
}

const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])
const pods = { group: '', resource: 'pods' }
const services = { group: '', resource: 'services' }
const endpoints = { group: '', resource: 'endpoints' }
const endpointSlices = { group: 'discovery.k8s.io', resource: 'endpointslices' }

export function proxyHandlers(deps: StreamDeps) {
  const handler = (locate: Locate, kind: string) => ({ connect: (scope: Scope) => proxy(deps, scope, locate, kind) })
  return { nodes: handler(locateNode, 'node'), pods: handler(locatePod, 'pod'), services: handler(locateService, 'service') }
}

async function proxy(deps: StreamDeps, scope: Scope, locate: Locate, kind: string): Promise<Answer> {
  const { request, info } = scope
  if (!methods.has(request.method)) throw methodNotAllowed()
  await connectAdmission(scope)
  await scope.deps.registry.cacher.waitUntilCurrent(request.cancellation)
  const place = await locate(deps, scope, parseName(info.name, kind))
  const [prefix, rest] = splitPath(scope)
  const query = querySuffix(request)
  const mayDial = place.mayDial ?? ((address) => isProxyableAddress(address) && !deps.ownEndpoints.has(address, place.port))
  const backend: Backend = { ...place, mayDial, reach: deps.reach, path: `${escapePath(rest === '' ? '/' : rest)}${query}`, prefix }
  if (isUpgrade(request)) return tunnel(request, backend)
  // Relative links of a page at the bare path would lead out of the proxy.
  if (rest === '' && (request.method === 'GET' || request.method === 'HEAD')) return movedTo(`${escapePath(request.path.replace(/^\/+/, '/'))}/${query}`)
  return proxyPlain(request, backend)
}

function movedTo(location: string): Answer {
  return { type: 'bytes', status: 301, contentType: 'text/plain; charset=utf-8', bytes: Buffer.alloc(0), headers: { location } }
}

/** Upstream: net.SplitSchemeNamePort. */
function parseName(text: string, kind: string): Named {
  const parts = text.split(':')
  const [a = '', b = '', c = ''] = parts
  if (parts.length === 1 && a) return { scheme: '', name: a, port: '' }
  if (parts.length === 2 && a) return { scheme: '', name: a, port: b }
  if (parts.length === 3 && b && (a === 'http' || a === 'https' || a === '')) return { scheme: a, name: b, port: c }
  throw badRequest(`invalid ${kind} request ${JSON.stringify(text)}`)
}

/** The path up to and with `/proxy`, and what follows it. */
function splitPath({ request, info }: Scope): [prefix: string, rest: string] {
  const { path } = request
  // /api/v1[/namespaces/<namespace>]/<resource>/<name>/proxy
  let slashes = info.namespace === '' ? 5 : 7
  let at = path.search(/[^/]/) - 1
  for (; slashes > 0 && at >= 0; slashes--) at = path.indexOf('/', at + 1)
  return at < 0 ? [path, ''] : [path.slice(0, at), path.slice(at)]
}

async function locateNode(deps: StreamDeps, scope: Scope, named: Named): Promise<Place> {
  const { host, port, tls, hostHeader, mayDial, ...backend } = nodeBackend(scope.deps.registry.reader, named.name, '/', deps)
  const isKubelet = named.port === '' || named.port === String(port)
  const isOwn = isKubelet && backend.isOwn
  if (!isOwn) await checkProxyable(host)
  if (!isKubelet) return { host, port: portNumber(named.port), ...secure(named) }
  return { host, port, tls, hostHeader, mayDial: isOwn ? mayDial : (address) => isProxyableAddress(address) && mayDial?.(address) !== false }
}

function locatePod(_deps: StreamDeps, scope: Scope, named: Named): Place {
  const pod = scope.deps.registry.reader.get<KubeObject>(pods, scope.info.namespace, named.name) as Frozen<Pod> | undefined
  if (!pod) throw notFound(pods, named.name)
  const host = pod.status?.podIPs?.[0]?.ip ?? ''
  if (!isProxyableAddress(host)) throw badRequest('address not allowed')
  const first = pod.spec?.containers.find((container) => container.ports?.length)?.ports?.[0]?.containerPort
  const unnamed = first ?? (named.scheme === 'https' ? 443 : 80)
  return { host, port: named.port === '' ? unnamed : portNumber(named.port), ...secure(named) }
}

/** A random ready endpoint of the service whose address belongs to its pod. */
function locateService(_deps: StreamDeps, scope: Scope, named: Named): Place {
  const { registry, writer } = scope.deps
  const { namespace } = scope.info
  const service = registry.reader.get<KubeObject>(services, namespace, named.name) as Frozen<Service> | undefined
  if (!service) throw notFound(isNumber(named.port) ? services : endpoints, named.name)
  const portName = portNameOf(service, named)
  const slices = registry.reader.list<KubeObject>(endpointSlices, namespace) as unknown as readonly Frozen<EndpointSlice>[]
  const found: Place[] = []
  for (const slice of slices) {
    if (slice.metadata.labels?.['kubernetes.io/service-name'] !== named.name) continue
    const port = slice.ports?.find((one) => (one.name ?? '') === portName)?.port
    if (port === undefined) continue
    for (const endpoint of slice.endpoints ?? []) {
      const [host] = endpoint.addresses
      if (host && endpoint.conditions?.ready !== false && isOfPod(scope, endpoint.targetRef, host)) found.push({ host, port })
    }
  }
  const chosen = found[writer.random.int(found.length || 1)]
  if (!chosen) throw new StatusError('ServiceUnavailable', `no endpoints available for service ${JSON.stringify(scope.info.name)}`)
  return { ...chosen, ...secure(named) }
}

/** Endpoints may name any address: the proxy connects only to those of pods in the namespace. Upstream: isValidAddress. */
function isOfPod(scope: Scope, target: ObjectReference | undefined, host: string): boolean {
  const { namespace } = scope.info
  if (!target?.name || target.namespace !== namespace || !isProxyableAddress(host)) return false
  const pod = scope.deps.registry.reader.get<KubeObject>(pods, namespace, target.name) as Frozen<Pod> | undefined
  return pod?.status?.podIPs?.some(({ ip }) => ip === host) ?? false
}

/** A port given by number is looked up by the name it has in the service. */
function portNameOf(service: Frozen<Service>, named: Named): string {
  if (!isNumber(named.port)) return named.port
  const port = service.spec?.ports?.find((one) => one.port === Number(named.port))
  if (!port) throw new StatusError('ServiceUnavailable', `no service port ${named.port} found for service ${JSON.stringify(named.name)}`)
  return port.name ?? ''
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text)
}

function portNumber(text: string): number {
  const port = isNumber(text) ? Number(text) : 0
  if (port >= 1 && port <= 65_535) return port
  throw new StatusError(
    'ServiceUnavailable',
    `error trying to reach service: dial tcp: ${isNumber(text) ? `address ${text}: invalid port` : `lookup tcp/${text}: unknown port`}`,
  )
}

function secure(named: Named): { tls?: Backend['tls'] } {
  return named.scheme === 'https' ? { tls: {} } : {}
}
