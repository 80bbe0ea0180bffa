/**
 * `skiff net nginx` (L4): Ingresses as a configuration of nginx, with servers, locations and upstreams, to read or to run. Rendering is pure. Skiff's own ingress does
 * not use it.
 */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { HTTPIngressPath, Ingress, IngressBackend } from '#api/gen/types/networking.v1'
import { hostPort } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { endpointsOf } from './endpoints.ts'
import { namedObject, paths, type Reader, required, slicesOf } from './reader.ts'

/** A backend that some path names. */
interface Upstream {
  readonly name: string
  /** HOST:PORT of the ready endpoints. */
  readonly servers: readonly string[]
  /** Why there are none. */
  readonly problem?: string | undefined
}

interface Location {
  readonly path: string
  readonly pathType: string
  readonly upstream: Upstream
}

interface Server {
  /** Empty: all hosts that no other server has. */
  readonly host: string
  readonly locations: Location[]
  isTls: boolean
}

export interface FoundIngresses {
  readonly ingresses: readonly string[]
  /** Lines: a line break within a text that is shown is escaped. */
  readonly configuration: readonly string[]
}

/** Where the certificates of the hosts are. */
export const defaultSslDirectory = '/etc/nginx/ssl'

/** @param named an Ingress, as NAME or NAMESPACE/NAME; absent: all that the caller may list */
export async function findNginx(reader: Reader, namespace: string, named: string | undefined, sslDirectory: string): Promise<FoundIngresses> {
  const ingresses = named === undefined ? await allIngresses(reader) : [await oneIngress(reader, namedObject(named, /^ing(ress(es)?)?\//, namespace))]
  const upstreams = new Map<string, Upstream>()
  for (const ingress of ingresses) {
    const of = ingress.metadata.namespace ?? ''
    for (const backend of backendsOf(ingress)) {
      const key = upstreamKey(of, backend)
      if (!upstreams.has(key)) upstreams.set(key, await upstreamOf(reader, of, backend))
    }
  }
  return {
    ingresses: ingresses.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
    configuration: renderNginx(ingresses, upstreams, sslDirectory).split('\n'),
  }
}

export const describeNginx = ({ configuration }: FoundIngresses): string => configuration.join('\n')

async function allIngresses(reader: Reader): Promise<readonly Frozen<Ingress>[]> {
  return required(await reader.list<Ingress>(paths.ingresses), 'list of Ingresses')
}

async function oneIngress(reader: Reader, { namespace, name }: { readonly namespace: string; readonly name: string }): Promise<Frozen<Ingress>> {
  return required(await reader.get<Ingress>(paths.ingress(namespace, name)), `Ingress ${namespace}/${name}`)
}

function backendsOf({ spec }: Frozen<Ingress>): Frozen<IngressBackend>[] {
  const ofPaths = (spec?.rules ?? []).flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend))
  return [...ofPaths, ...(spec?.defaultBackend ? [spec.defaultBackend] : [])]
}

/** `NAMESPACE_SERVICE_PORT`, which is the name in the configuration, too. */
export function upstreamKey(namespace: string, { service, resource }: Frozen<IngressBackend>): string {
  if (!service) return `${namespace}_${resource?.kind ?? 'resource'}_${resource?.name ?? ''}`
  return `${namespace}_${service.name}_${service.port?.number ?? service.port?.name ?? ''}`
}

async function upstreamOf(reader: Reader, namespace: string, backend: Frozen<IngressBackend>): Promise<Upstream> {
  const name = upstreamKey(namespace, backend)
  const without = (problem: string): Upstream => ({ name, servers: [], problem })
  const { service } = backend
  if (!service) return without('the backend is a resource, not a Service')
  const { found, notShown } = await reader.get<Service>(paths.service(namespace, service.name))
  if (!found) return without(notShown ?? `there is no Service ${namespace}/${service.name}`)
  const port = (found.spec.ports ?? []).find((one: Frozen<ServicePort>) =>
    service.port?.name ? one.name === service.port.name : one.port === service.port?.number,
  )
  if (!port) return without(`Service ${namespace}/${service.name} has no port ${service.port?.number ?? service.port?.name}`)
  if (found.spec.type === 'ExternalName') return { name, servers: [`${found.spec.externalName}:${port.port}`] }
  const slices = await slicesOf<EndpointSlice>(reader, namespace, service.name)
  const ready = endpointsOf(slices.found ?? [], port).filter((one) => one.ready)
  if (ready.length === 0) return without(slices.notShown ?? `Service ${namespace}/${service.name} has no ready endpoint`)
  return { name, servers: ready.map(({ address, port: to }) => hostPort(address, to)) }
}

/** @param upstreams by their keys */
export function renderNginx(ingresses: readonly Frozen<Ingress>[], upstreams: ReadonlyMap<string, Upstream>, sslDirectory: string): string {
  const servers = serversOf(ingresses, upstreams)
  const used = [...upstreams.values()].filter(({ servers }) => servers.length > 0)
  const blocks = [
    ...used.map(({ name, servers }) =>
      block(
        `upstream ${name}`,
        servers.map((server) => `server ${server};`),
      ),
    ),
    ...servers.map((server) => block('server', serverLines(server, sslDirectory))),
  ]
  return [
    ...block('events', []),
    '',
    ...block(
      'http',
      blocks.flatMap((lines, i) => (i === 0 ? lines : ['', ...lines])),
    ),
    '',
  ].join('\n')
}

const block = (head: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [`${head} {}`] : [`${head} {`, ...lines.map((line) => (line === '' ? '' : `  ${line}`)), '}']

/** One server for each host; the hosts' rules may be those of several Ingresses, of which the first has a path. */
function serversOf(ingresses: readonly Frozen<Ingress>[], upstreams: ReadonlyMap<string, Upstream>): readonly Server[] {
  const servers = new Map<string, Server>()
  const serverOf = (host: string): Server => {
    const server = servers.get(host) ?? { host, locations: [], isTls: false }
    servers.set(host, server)
    return server
  }
  const add = (server: Server, namespace: string, { path = '/', pathType, backend }: Frozen<HTTPIngressPath>) => {
    const upstream = upstreams.get(upstreamKey(namespace, backend))
    if (!upstream || server.locations.some((one) => one.path === path && one.pathType === pathType)) return
    server.locations.push({ path, pathType, upstream })
  }
  for (const { metadata, spec } of ingresses) {
    const namespace = metadata.namespace ?? ''
    for (const { host = '', http } of spec?.rules ?? []) {
      const server = serverOf(host)
      server.isTls ||= host !== '' && (spec?.tls ?? []).some(({ hosts }) => hosts?.includes(host))
      for (const path of http?.paths ?? []) add(server, namespace, path)
    }
    if (spec?.defaultBackend) add(serverOf(''), namespace, { path: '/', pathType: 'Prefix', backend: spec.defaultBackend })
  }
  return [...servers.values()]
}

function serverLines({ host, locations, isTls }: Server, sslDirectory: string): string[] {
  const isDefault = host === '' ? ' default_server' : ''
  const file = host.replace('*', 'wildcard')
  return [
    `listen 80${isDefault};`,
    ...(isTls
      ? ['listen 443 ssl;', `ssl_certificate ${quoted(`${sslDirectory}/${file}.crt`)};`, `ssl_certificate_key ${quoted(`${sslDirectory}/${file}.key`)};`]
      : []),
    `server_name ${serverName(host)};`,
    ...locations.flatMap((location) => ['', ...locationLines(location)]),
    ...(locations.some(({ path, pathType }) => path === '/' && pathType !== 'Exact') ? [] : ['', ...block('location /', ['return 404;'])]),
  ]
}

/** A wildcard of an Ingress is one label, one of nginx any number of them. */
function serverName(host: string): string {
  if (host === '') return '_'
  return host.startsWith('*.') ? quoted(`~^[^.]+${host.slice(1).replaceAll('.', '\\.')}$`) : host
}

function locationLines({ path, pathType, upstream }: Location): string[] {
  // Line breaks and the like have no form in nginx's files.
  if (/\p{Cc}/u.test(path)) return ['# a path with control characters is left out']
  const lines =
    upstream.servers.length > 0
      ? [`proxy_pass http://${upstream.name};`, 'proxy_set_header Host $host;', 'proxy_set_header X-Real-IP $remote_addr;']
      : [`# ${upstream.problem?.replace(/\s+/g, ' ')}`, 'return 503;']
  return matchesOf(path, pathType).flatMap((match, i) => (i === 0 ? block(`location ${match}`, lines) : ['', ...block(`location ${match}`, lines)]))
}

/** Prefix is of whole segments: /a is for /a and /a/b, not for /ab. */
function matchesOf(path: string, pathType: string): string[] {
  if (pathType === 'Exact') return [`= ${quoted(path)}`]
  const bare = path.replace(/\/+$/, '')
  if (pathType !== 'Prefix' || bare === '') return [quoted(path)]
  return [`= ${quoted(bare)}`, quoted(`${bare}/`)]
}

/** As nginx reads a word: in quotes where it has characters that end words. */
function quoted(text: string): string {
  return /^[\w./%~:@!&=,+*()-]+$/.test(text) ? text : `"${text.replace(/[\\"]/g, '\\$&')}"`
}
