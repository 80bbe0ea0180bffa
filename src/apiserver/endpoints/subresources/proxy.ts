/**
 * The proxy subresource of nodes, pods and services (L3): `[scheme:]name[:port]` in the path, the rest of the path goes to the backend.
 * Upstream: NodeREST/PodREST/ServiceREST ProxyREST and their ResourceLocation functions.
 */
import type { Pod, Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, notFound, StatusError } from '#api/machinery/status'
import type { Answer } from '../../answer.ts'
import type { Scope } from '../scope.ts'
import { type Backend, isUpgrade, proxyPlain, tunnel } from './backend.ts'
import { nodeBackend } from './node.ts'
import type { StreamDeps } from './podStreams.ts'

type Locate = (deps: StreamDeps, scope: Scope, named: Named, path: string) => Backend

interface Named {
  readonly scheme: string
  readonly name: string
  readonly port: string
}

export function proxyHandlers(deps: StreamDeps) {
  const handler = (locate: Locate) => ({
    connect: (scope: Scope): Promise<Answer> | Answer => {
      const backend = locate(deps, scope, parseName(scope.info.name), backendPath(scope))
      return isUpgrade(scope.request) ? tunnel(scope.request, backend) : proxyPlain(scope.request, backend)
    },
  })
  return { nodes: handler(locateNode), pods: handler(locatePod), services: handler(locateService) }
}

/** Upstream: net.SplitSchemeNamePort. */
function parseName(text: string): Named {
  const parts = text.split(':')
  const [a = '', b = '', c = ''] = parts
  if (parts.length === 1 && a) return { scheme: '', name: a, port: '' }
  if (parts.length === 2 && a) return { scheme: '', name: a, port: b }
  if (parts.length === 3 && b && (a === 'http' || a === 'https' || a === '')) return { scheme: a, name: b, port: c }
  throw badRequest(`invalid proxy request ${JSON.stringify(text)}`)
}

/** What follows `/proxy` in the path, with the query. */
function backendPath({ request, info }: Scope): string {
  const marker = `/${info.resource}/${info.name}/proxy`
  const rest = request.path.slice(request.path.indexOf(marker) + marker.length)
  const query = request.query.toString()
  return `${encodeURI(rest.startsWith('/') ? rest : `/${rest}`)}${query === '' ? '' : `?${query}`}`
}

function locateNode(deps: StreamDeps, scope: Scope, named: Named, path: string): Backend {
  const { reader } = scope.deps.registry
  const backend = nodeBackend(reader, named.name, path, deps.kubelet)
  if (!backend) {
    if (!reader.get({ group: '', resource: 'nodes' }, '', named.name)) throw notFound({ group: '', resource: 'nodes' }, named.name)
    throw new StatusError('ServiceUnavailable', `no address of node ${JSON.stringify(named.name)} is known`)
  }
  if (named.port === '' || Number(named.port) === backend.port) return backend
  return { ...backend, port: Number(named.port), tls: named.scheme === 'https' ? {} : undefined }
}

function locatePod(_deps: StreamDeps, scope: Scope, named: Named, path: string): Backend {
  const pods = { group: '', resource: 'pods' }
  const pod = scope.deps.registry.reader.get<KubeObject>(pods, scope.info.namespace, named.name) as Frozen<Pod> | undefined
  if (!pod) throw notFound(pods, named.name)
  const host = pod.status?.podIP
  if (!host) throw badRequest('address not allowed')
  const first = pod.spec?.containers.flatMap((container) => container.ports ?? [])[0]?.containerPort
  return { host, port: named.port === '' ? (first ?? (named.scheme === 'https' ? 443 : 80)) : Number(named.port), ...secure(named), path }
}

/** A ready endpoint of the service, chosen by chance. */
function locateService(_deps: StreamDeps, scope: Scope, named: Named, path: string): Backend {
  const { registry, writer } = scope.deps
  const { namespace } = scope.info
  const services = { group: '', resource: 'services' }
  const service = registry.reader.get<KubeObject>(services, namespace, named.name) as Frozen<Service> | undefined
  if (!service) throw notFound(services, named.name)
  const wanted = portOf(service, named)
  const slices = registry.reader.list<KubeObject>(
    { group: 'discovery.k8s.io', resource: 'endpointslices' },
    namespace,
  ) as unknown as readonly Frozen<EndpointSlice>[]
  const found: { host: string; port: number }[] = []
  for (const slice of slices) {
    if (slice.metadata.labels?.['kubernetes.io/service-name'] !== named.name) continue
    const port = slice.ports?.find((one) => (one.name ?? '') === wanted)?.port
    if (port === undefined) continue
    for (const endpoint of slice.endpoints ?? []) {
      if (endpoint.conditions?.ready !== false && endpoint.addresses[0]) found.push({ host: endpoint.addresses[0], port })
    }
  }
  const chosen = found[writer.random.int(found.length || 1)]
  if (!chosen) throw new StatusError('ServiceUnavailable', `no endpoints available for service ${JSON.stringify(scope.info.name)}`)
  return { ...chosen, ...secure(named), path }
}

/** The name of the service's port that was asked for by name or number. */
function portOf(service: Frozen<Service>, named: Named): string {
  const ports = service.spec?.ports ?? []
  if (named.port === '') return ports.find((one) => !one.name || ports.length === 1)?.name ?? ''
  const port = ports.find((one) => one.name === named.port || String(one.port) === named.port)
  if (!port) throw new StatusError('ServiceUnavailable', `no service port ${JSON.stringify(named.port)} found for service ${JSON.stringify(named.name)}`)
  return port.name ?? ''
}

function secure(named: Named): { tls?: Backend['tls'] } {
  return named.scheme === 'https' ? { tls: {} } : {}
}
