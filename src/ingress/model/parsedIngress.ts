/**
 * Reads one Ingress into the rules that the routing table is made of (L3, pure). Whatever the object holds, this does not throw: what cannot be served is a
 * problem of the Ingress, and the rest of it is served. Upstream: networking.k8s.io/v1 (v1.36).
 */
import type { HTTPIngressPath, Ingress, IngressBackend, IngressTLS } from '#api/gen/types/networking.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { wildcardOf } from './hostName.ts'
import { maxElements, type PathPattern } from './hostRoutes.ts'
import { comparablePath } from './requestPath.ts'
import type { BackendRef } from './route.ts'

export interface PathRule extends PathPattern {
  readonly backend: BackendRef
}

export interface CertificateOf {
  /** `namespace/name` of the Secret. */
  readonly secret: string
  /** A rule of the Ingress serves the host, too. */
  readonly isRouted: boolean
}

export interface ParsedIngress {
  readonly key: string
  /** Orders Ingresses by age: creation time, then namespace and name. */
  readonly age: string
  /** By the host that rules name, perhaps with a leading `*.`; empty: all hosts. Those without paths are there too. */
  readonly hosts: ReadonlyMap<string, readonly PathRule[]>
  readonly defaultBackend: BackendRef | undefined
  /** By the host, perhaps with a leading `*.`. */
  readonly certificates: ReadonlyMap<string, CertificateOf>
  /** `namespace/name` of each Secret with a certificate. */
  readonly secrets: ReadonlySet<string>
  /** Why parts of it are not served. */
  readonly problems: readonly string[]
}

/** Names of one kind of problem in a message. */
const maxNamed = 3
/** The most characters of a tenant's text in a message. */
const maxShown = 100

/** Reads the whole object; parts that cannot be served are left out and become problems. */
export function parseIngress(ingress: Frozen<Ingress>): ParsedIngress {
  const problems: string[] = []
  const namespace = ingress.metadata.namespace ?? ''
  const read = (backend: Frozen<IngressBackend> | undefined, where: string) => {
    const ref = backendRef(backend, namespace)
    if (!ref) problems.push(backend?.resource ? `${where}: resource backends are not supported` : `${where}: it names no port of a Service`)
    return ref
  }
  const { rules, tls, defaultBackend } = ingress.spec ?? {}
  const hosts = new Map<string, PathRule[]>()
  const seen = new Set<string>()
  for (const rule of list(rules)) {
    const host = text(rule?.host).toLowerCase()
    const paths = hosts.get(host) ?? []
    hosts.set(host, paths)
    for (const path of list(rule?.http?.paths)) {
      const pattern = patternOf(path)
      if (pattern === undefined) problems.push(`path ${JSON.stringify(text(path?.path).slice(0, maxShown))} of host "${host}" cannot be matched`)
      const backend = read(path?.backend, `path ${text(path?.path).slice(0, maxShown)} of host "${host}"`)
      if (pattern === undefined || !backend) continue
      const place = `${host} ${pattern.isExact} ${pattern.path}`
      if (seen.has(place)) problems.push(`path ${shownPath(pattern)} of host "${host}" is there twice`)
      else paths.push({ ...pattern, backend })
      seen.add(place)
    }
  }
  const certificates = certificatesOf(list(tls), namespace, hosts)
  return {
    key: keyOf(ingress),
    age: `${ingress.metadata.creationTimestamp ?? ''} ${keyOf(ingress)}`,
    hosts,
    defaultBackend: defaultBackend && read(defaultBackend, 'the default backend'),
    certificates,
    secrets: new Set([...certificates.values()].map(({ secret }) => secret)),
    problems: shortened(problems),
  }
}

/** Undefined when no path matches it. */
export function patternOf(path: Pick<Frozen<HTTPIngressPath>, 'path' | 'pathType'> | undefined): PathPattern | undefined {
  const comparable = comparablePath(text(path?.path) || '/')
  if (comparable === undefined) return undefined
  if (path?.pathType === 'Exact') return { isExact: true, path: comparable }
  const prefix = comparable.replace(/\/+$/, '')
  return prefix.split('/', maxElements + 2).length - 1 > maxElements ? undefined : { isExact: false, path: prefix }
}

/** The path as messages show it. */
export function shownPath({ path }: PathPattern): string {
  return path.slice(0, maxShown) || '/'
}

function backendRef(backend: Frozen<IngressBackend> | undefined, namespace: string): BackendRef | undefined {
  const { name, port } = backend?.service ?? {}
  const wanted = text(port?.name) || port?.number
  return text(name) && wanted ? { service: `${namespace}/${name}`, port: wanted } : undefined
}

/** A certificate without hosts is for the hosts of the rules; one of a wildcard also for those that it covers. */
function certificatesOf(tls: readonly Frozen<IngressTLS>[], namespace: string, ruleHosts: ReadonlyMap<string, unknown>): Map<string, CertificateOf> {
  const certificates = new Map<string, CertificateOf>()
  for (const one of tls) {
    if (!text(one?.secretName)) continue
    for (const given of list(one.hosts).length > 0 ? list(one.hosts) : ruleHosts.keys()) {
      const host = text(given).toLowerCase()
      const isRouted = ruleHosts.has(host) || ruleHosts.has(wildcardOf(host) ?? host)
      if (host !== '' && !certificates.has(host)) certificates.set(host, { secret: `${namespace}/${one.secretName}`, isRouted })
    }
  }
  for (const host of ruleHosts.keys()) {
    const covering = certificates.get(wildcardOf(host) ?? '')
    if (covering && !certificates.has(host)) certificates.set(host, { ...covering, isRouted: true })
  }
  return certificates
}

/** The API server checks types, but this reads what a server of another version let pass, too. */
const text = (value: unknown) => (typeof value === 'string' ? value : '')
const list = <T>(value: readonly T[] | undefined): readonly T[] => (Array.isArray(value) ? value : [])

/** The first of them, and how many more there are. */
export function shortened(problems: readonly string[]): string[] {
  if (problems.length <= maxNamed) return [...problems]
  return [...problems.slice(0, maxNamed), `and ${problems.length - maxNamed} more`]
}
