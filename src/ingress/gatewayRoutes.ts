/**
 * Keeps the table of the Gateways in step with the cluster (L3): handlers only note which Gateways and routes are concerned by a change, and one loop compiles
 * these again in short turns.
 */
import type { SecureContext } from 'node:tls'
import type { Secret, Service } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import { createWakeUp } from '#base/wakeUp'
import { namespaces, secrets, services } from '#client/builtIn'
import { namespaceIndex } from '#client/cache/indexer'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createPauses, deferred, followChanges, onEach } from './following.ts'
import { gatewayClasses, gateways, grpcRoutes, httpRoutes, referenceGrants } from './gatewayResources.ts'
import { type Attachment, attachmentsOf, gatewayKeyOf } from './model/gateway/attachments.ts'
import { serviceOf } from './model/gateway/backends.ts'
import { GatewayTable } from './model/gateway/gatewayTable.ts'
import { asHttpRoute } from './model/gateway/grpcRules.ts'
import { type CompiledRules, compileHttpRules } from './model/gateway/httpRules.ts'
import { type Filter, type Gateway, type GrpcRoute, gatewayControllerName, type HttpRoute } from './model/gateway/kinds.ts'
import { type CompiledListener, compileListeners } from './model/gateway/listeners.ts'
import type { ClusterView } from './model/gateway/view.ts'
import type { Asked, Route } from './model/route.ts'
import { createCertificateReader, tlsSecretType } from './proxy/certificates.ts'

export interface GatewayRoutesDeps {
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** The keys of what has another verdict, perhaps. */
export interface GatewayChanges {
  readonly gateways: Iterable<string>
  /** `KIND/namespace/name`. */
  readonly routes: Iterable<string>
}

export interface RouteVerdict {
  /** A GRPCRoute is read as an HTTPRoute. */
  readonly route: Frozen<HttpRoute>
  readonly attachments: readonly Attachment[]
  readonly rules: CompiledRules
}

export interface GatewayVerdict {
  readonly gateway: Frozen<Gateway>
  readonly listeners: readonly CompiledListener[]
}

export interface GatewayRoutes {
  readonly table: GatewayTable
  /** A status code: 404 without a route, 421 when the host belongs to another listener than the server name of the connection. */
  route(gateway: string, port: number, asked: Asked, serverName: string | undefined): Route | number
  /** The certificate for a server name; undefined: no listener has it. */
  certificateOf(gateway: string, port: number, serverName: string): SecureContext | undefined
  /** The Gateway that also gets what no Ingress takes of the ingress's own ports: the oldest one that listens on these only. */
  shared(): string | undefined
  /** Undefined: it is gone, or belongs to another controller. */
  verdictOnGateway(key: string): GatewayVerdict | undefined
  verdictOnRoute(key: string): RouteVerdict | undefined
  routeObject(key: string): Frozen<HttpRoute> | undefined
  /** The keys of all Gateways of this controller, and of all routes. */
  all(): GatewayChanges
  /** @returns a function that ends it */
  onChange(listener: (changes: GatewayChanges) => void): () => void
  /** Resolves when the table holds all that the cluster has at first. */
  readonly ready: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export function createGatewayRoutes({ informers, clock, random, log }: GatewayRoutesDeps): GatewayRoutes {
  const sources = sourcesOf(informers)
  const table = new GatewayTable()
  const reader = createCertificateReader()
  const view = viewOf(sources, (secret) => reader.load(secret).problem)
  const verdicts = { gateways: new Map<string, GatewayVerdict>(), routes: new Map<string, RouteVerdict>() }
  const dirty = { gateways: new Set<string>(), routes: new Set<string>() }
  const listeners = new Set<(changes: GatewayChanges) => void>()
  const { promise: ready, resolve: markReady } = deferred()
  const changes = createWakeUp()
  let shared: string | undefined
  const note = (what: Partial<GatewayChanges>) => {
    for (const key of what.gateways ?? []) dirty.gateways.add(key)
    for (const key of what.routes ?? []) dirty.routes.add(key)
    changes.ring()
  }

  async function takeGateway(key: string, pause: () => Promise<void> | undefined): Promise<void> {
    const gateway = sources.gateways.store.get(key)
    const isOurs = gateway && sources.classes.store.get(gateway.spec.gatewayClassName)?.spec.controllerName === gatewayControllerName
    if (!isOurs && !verdicts.gateways.has(key)) return
    // Read certificates are kept: a long list of them takes several turns.
    for (const secret of isOurs ? secretsOf(gateway) : []) {
      view.problemOfSecret(secret)
      await pause()
    }
    const compiled = isOurs ? compileListeners(gateway, view) : undefined
    if (compiled && isOurs) verdicts.gateways.set(key, { gateway, listeners: compiled })
    else verdicts.gateways.delete(key)
    table.setListeners(key, compiled)
    for (const route of sources.routes.byIndex('gateway', key)) dirty.routes.add(route)
  }

  /** @returns the Gateways whose count of routes may have changed */
  async function takeRoute(key: string, pause: () => Promise<void> | undefined): Promise<readonly string[]> {
    const route = sources.routes.get(key)
    const before = table.get(key)
    const verdict = route && judge(key, route, view, (gateway) => verdicts.gateways.get(gateway)?.listeners)
    if (verdict) verdicts.routes.set(key, verdict)
    else verdicts.routes.delete(key)
    const now = verdict && attachedOf(key, verdict)
    for (const _ of table.update(key, now)) await pause()
    return [...(before?.listeners.keys() ?? []), ...(now?.listeners.keys() ?? [])]
  }

  /** An object that cannot be read leaves the others to be taken. */
  async function take<T>(key: string, work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work()
    } catch (error) {
      log.error(error, 'A Gateway or route could not be taken over', { key })
      return otherwise
    }
  }

  async function takeChanges(): Promise<void> {
    const pause = createPauses(clock)
    const told = { gateways: new Set<string>(), routes: new Set<string>() }
    for (const key of dirty.gateways) {
      dirty.gateways.delete(key)
      told.gateways.add(key)
      await take(key, () => takeGateway(key, pause), undefined)
      await pause()
    }
    for (const key of dirty.routes) {
      dirty.routes.delete(key)
      told.routes.add(key)
      for (const gateway of await take(key, () => takeRoute(key, pause), [])) told.gateways.add(gateway)
      await pause()
    }
    const before = shared
    shared = sharedGateway([...verdicts.gateways.values()])
    if (before !== shared) for (const key of [before, shared]) if (key !== undefined) told.gateways.add(key)
    for (const listener of listeners) listener(told)
  }

  return {
    table,
    ready,
    route(gateway, port, asked, serverName) {
      const listener = table.listenerOf(gateway, port, asked.host)
      if (serverName !== undefined && table.listenerOf(gateway, port, serverName) !== listener) return 421
      return (listener && table.route(gateway, listener.name, asked, () => random.next())) ?? 404
    },
    certificateOf(gateway, port, serverName) {
      const secret = sources.secrets.store.get(table.listenerOf(gateway, port, serverName.toLowerCase())?.secret ?? '')
      return secret && reader.load(secret).context
    },
    shared: () => shared,
    verdictOnGateway: (key) => verdicts.gateways.get(key),
    verdictOnRoute: (key) => verdicts.routes.get(key),
    routeObject: (key) => sources.routes.get(key),
    all: () => ({ gateways: [...verdicts.gateways.keys()], routes: sources.routes.keys() }),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    run(signal) {
      const failure = 'Changes of Gateways could not be taken over'
      return followChanges({ sources, changes, takeChanges, markReady, log, failure, stop: follow(sources, note) }, signal)
    },
  }
}

const publicPorts: Readonly<Record<number, string>> = { 80: 'HTTP', 443: 'HTTPS' }

function sharedGateway(all: readonly GatewayVerdict[]): string | undefined {
  const fitting = all.filter(({ listeners }) => {
    const served = listeners.filter(({ isServed }) => isServed)
    return served.length > 0 && served.every(({ port, protocol }) => publicPorts[port] === protocol)
  })
  const ages = fitting.map(({ gateway }) => [`${gateway.metadata.creationTimestamp} ${keyOf(gateway)}`, keyOf(gateway)] as const)
  return ages.sort(([a], [b]) => (a < b ? -1 : 1))[0]?.[1]
}

/** Undefined: no parent is a Gateway of this controller. */
function judge(
  key: string,
  route: Frozen<HttpRoute>,
  view: ClusterView,
  listenersOf: (gateway: string) => readonly CompiledListener[] | undefined,
): RouteVerdict | undefined {
  const { metadata, spec } = route
  const kind = kindOf(key)
  const attachments = attachmentsOf({ kind, namespace: metadata.namespace ?? '', hosts: hostsOf(route) }, spec.parentRefs ?? [], listenersOf)
  return attachments.length > 0 ? { route, attachments, rules: compileHttpRules(route, view, kind) } : undefined
}

function hostsOf({ spec }: Frozen<HttpRoute>): readonly string[] {
  return spec.hostnames?.length ? spec.hostnames.map((host) => host.toLowerCase()) : ['']
}

function attachedOf(key: string, { route, attachments, rules }: RouteVerdict) {
  const listeners = new Map<string, Set<string>>()
  for (const { gateway, listeners: names } of attachments) {
    if (names.length > 0) listeners.set(gateway, new Set([...(listeners.get(gateway) ?? []), ...names]))
  }
  return { key, hosts: hostsOf(route), matches: rules.matches, listeners }
}

function sourcesOf(informers: SharedInformerFactory) {
  const ofGateways = informers.of(gateways)
  ofGateways.addIndexers({ secret: secretsOf, secretNamespace: (gateway) => [...new Set(secretsOf(gateway).map(namespaceOf))] })
  return {
    classes: informers.of(gatewayClasses),
    gateways: ofGateways,
    routes: routeSource(informers),
    grants: informers.of(referenceGrants),
    namespaces: informers.of(namespaces),
    services: informers.of(services),
    secrets: informers.of(secrets, { fieldSelector: `type=${tlsSecretType}` }),
  }
}

type AnyRoute = HttpRoute | GrpcRoute

const routeIndexers = {
  gateway: gatewaysOf,
  service: servicesOf,
  serviceNamespace: (route: Frozen<AnyRoute>) => [...new Set(servicesOf(route).map(namespaceOf))],
}

/** The routes of all kinds as one source. Keys begin with the kind. */
function routeSource(informers: SharedInformerFactory) {
  const ofKinds = new Map<string, SharedInformer<AnyRoute>>([
    ['HTTPRoute', informers.of(httpRoutes) as SharedInformer<AnyRoute>],
    ['GRPCRoute', informers.of(grpcRoutes) as SharedInformer<AnyRoute>],
  ])
  for (const informer of ofKinds.values()) informer.addIndexers(routeIndexers)
  const each = <T>(take: (kind: string, informer: SharedInformer<AnyRoute>) => T[]) => [...ofKinds].flatMap(([kind, informer]) => take(kind, informer))
  return {
    get: (key: string): Frozen<HttpRoute> | undefined => {
      const route = ofKinds.get(kindOf(key))?.store.get(key.slice(key.indexOf('/') + 1))
      return route && (kindOf(key) === 'GRPCRoute' ? asHttpRoute(route as Frozen<GrpcRoute>) : (route as Frozen<HttpRoute>))
    },
    keys: () => each((kind, { store }) => [...store.keys()].map((key) => `${kind}/${key}`)),
    byIndex: (index: string, value: string) => each((kind, { store }) => store.byIndex(index, value).map((route) => `${kind}/${keyOf(route)}`)),
    onChange: (take: (key: string) => void) => each((kind, informer) => [informer.addHandler(onEach((route) => take(`${kind}/${keyOf(route)}`)))]),
    synced: (signal: AbortSignal) => Promise.all(each((_, informer) => [informer.synced(signal)])).then(() => {}),
  }
}

const kindOf = (key: string) => key.split('/')[0] ?? ''

const namespaceOf = (key: string) => key.split('/')[0] ?? ''

function secretsOf({ metadata, spec }: Frozen<Gateway>): string[] {
  const refs = (spec.listeners ?? []).flatMap(({ tls }) => tls?.certificateRefs ?? [])
  return [...new Set(refs.map(({ namespace = metadata.namespace, name }) => `${namespace}/${name}`))]
}

function gatewaysOf({ metadata, spec }: Frozen<AnyRoute>): string[] {
  const keys = (spec.parentRefs ?? []).flatMap((ref) => gatewayKeyOf(ref, metadata.namespace ?? '') ?? [])
  return [...new Set(keys)]
}

function servicesOf({ metadata, spec }: Frozen<AnyRoute>): string[] {
  const mirrors = (filters: Frozen<Filter>[]) => filters.flatMap(({ requestMirror }) => requestMirror?.backendRef ?? [])
  const refs = (spec.rules ?? []).flatMap(({ backendRefs = [], filters = [] }) => [
    ...backendRefs,
    ...mirrors([...filters, ...backendRefs.flatMap((ref) => ref.filters ?? [])]),
  ])
  return [...new Set(refs.map((ref) => serviceOf(ref, metadata.namespace ?? '')))]
}

function viewOf(
  { grants, namespaces: spaces, services: all, secrets: pairs }: ReturnType<typeof sourcesOf>,
  problemOf: (secret: Frozen<Secret>) => string | undefined,
): ClusterView {
  return {
    service: (key) => all.store.get(key),
    problemOfSecret: (key) => {
      const secret = pairs.store.get(key)
      return secret ? problemOf(secret) : `there is no Secret of type ${tlsSecretType} with this name`
    },
    namespaceLabels: (namespace) => spaces.store.get(namespace)?.metadata.labels ?? {},
    grantsIn: (namespace) => grants.store.byIndex(namespaceIndex, namespace),
  }
}

/** @returns a function that ends it */
function follow(sources: ReturnType<typeof sourcesOf>, note: (what: Partial<GatewayChanges>) => void): () => void {
  const { classes, gateways: all, routes, grants, namespaces: spaces, services: ofServices, secrets: pairs } = sources
  const routesOf = routes.byIndex
  const noteService = (service: Frozen<Service>) => note({ routes: routesOf('service', keyOf(service)) })
  const noteNamespace = (namespace: string) => note({ routes: routesOf(namespaceIndex, namespace) })
  const registrations = [
    classes.addHandler(onEach(() => note({ gateways: all.store.keys() }))),
    all.addHandler(onEach((gateway) => note({ gateways: [keyOf(gateway)] }))),
    ...routes.onChange((key) => note({ routes: [key] })),
    grants.addHandler(
      onEach(({ metadata: { namespace = '' } }) =>
        note({ gateways: all.store.byIndex('secretNamespace', namespace).map(keyOf), routes: routesOf('serviceNamespace', namespace) }),
      ),
    ),
    spaces.addHandler({
      onAdd: ({ metadata }) => noteNamespace(metadata.name ?? ''),
      onUpdate: (old, { metadata }) => {
        if (!semanticEqual(old.metadata.labels, metadata.labels)) noteNamespace(metadata.name ?? '')
      },
    }),
    ofServices.addHandler({
      onAdd: noteService,
      onUpdate: (old, service) => {
        if (!semanticEqual(old.spec, service.spec)) noteService(service)
      },
      onDelete: noteService,
    }),
    pairs.addHandler(onEach((secret) => note({ gateways: all.store.byIndex('secret', keyOf(secret)).map(keyOf) }))),
  ]
  return () => {
    for (const registration of registrations) registration.remove()
  }
}
