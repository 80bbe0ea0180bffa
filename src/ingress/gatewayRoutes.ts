/**
 * Keeps the table of the Gateways in step with the cluster (L3): handlers only note which Gateways and routes are concerned by a change, and one loop compiles
 * these again in short turns.
 */
import type { SecureContext } from 'node:tls'
import type { ConfigMap } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { createWakeUp } from '#base/wakeUp'
import { caBundleKey } from './caBundles.ts'
import { createPauses, deferred, followChanges } from './following.ts'
import { follow, type GatewayChanges, type SourcesDeps, sourcesOf, viewOf } from './gatewaySources.ts'
import { createVerdicts, type GatewayVerdict } from './gatewayVerdicts.ts'
import { policyOutcomes, targetServicesOf } from './model/gateway/backendTls.ts'
import { GatewayTable } from './model/gateway/gatewayTable.ts'
import type { BackendTlsPolicy, HttpRoute } from './model/gateway/kinds.ts'
import type { Outcome } from './model/gateway/outcome.ts'
import type { RouteVerdict } from './model/gateway/verdicts.ts'
import type { ClusterView } from './model/gateway/view.ts'
import type { Asked, Route, StreamRoute } from './model/route.ts'
import { readAuthorities } from './proxy/authorities.ts'
import { createCertificateReader } from './proxy/certificates.ts'

export interface PolicyVerdict {
  readonly policy: Frozen<BackendTlsPolicy>
  readonly outcomes: readonly Outcome[]
  /** The Gateways whose routes lead to a Service of it. */
  readonly gateways: ReadonlySet<string>
}

export interface GatewayRoutes {
  readonly table: GatewayTable
  /** A status code: 404 without a route, 421 when the host belongs to another listener than the server name of the connection. */
  route(gateway: string, port: number, asked: Asked, serverName: string | undefined): Route | number
  /** Where a TLS connection goes; undefined: nowhere, also when its share of a route is a backend that cannot be used. */
  stream(gateway: string, port: number, serverName: string): StreamRoute | undefined
  /** The certificate for a server name; undefined: no listener has it. */
  certificateOf(gateway: string, port: number, serverName: string): SecureContext | undefined
  /** The Gateway that also gets what no Ingress takes of the ingress's own ports: the oldest one that listens on these only. */
  shared(): string | undefined
  /** Undefined: it is gone, or belongs to another controller. */
  verdictOnGateway(key: string): GatewayVerdict | undefined
  verdictOnRoute(key: string): RouteVerdict | undefined
  routeObject(key: string): Frozen<HttpRoute> | undefined
  /** Undefined: it is gone. */
  verdictOnPolicy(key: string): PolicyVerdict | undefined
  /** The keys of all Gateways of this controller, and of all routes and policies. */
  all(): GatewayChanges
  /** @returns a function that ends it */
  onChange(listener: (changes: GatewayChanges) => void): () => void
  /** Resolves when the table holds all that the cluster has at first. */
  readonly ready: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export function createGatewayRoutes(deps: SourcesDeps): GatewayRoutes {
  const { clock, random, log } = deps
  const sources = sourcesOf(deps)
  const table = new GatewayTable()
  const reader = createCertificateReader()
  const view = viewOf(sources, (secret) => reader.load(secret).problem, createAuthorityReader())
  const verdicts = createVerdicts(sources, table, view)
  const dirty = { gateways: new Set<string>(), routes: new Set<string>(), policies: new Set<string>() }
  const listeners = new Set<(changes: GatewayChanges) => void>()
  const { promise: ready, resolve: markReady } = deferred()
  const changes = createWakeUp()
  let shared: string | undefined
  const note = (what: Partial<GatewayChanges>) => {
    for (const key of what.gateways ?? []) dirty.gateways.add(key)
    for (const key of what.routes ?? []) dirty.routes.add(key)
    for (const key of what.policies ?? []) dirty.policies.add(key)
    changes.ring()
  }

  /** An object that cannot be read leaves the others to be taken. */
  async function take(key: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      log.error(error, 'A Gateway or route could not be taken over', { key })
    }
  }

  async function takeChanges(): Promise<void> {
    const pause = createPauses(clock)
    const told = { gateways: new Set<string>(), routes: new Set<string>(), policies: new Set(dirty.policies) }
    dirty.policies.clear()
    for (const key of dirty.gateways) {
      dirty.gateways.delete(key)
      told.gateways.add(key)
      await take(key, () => verdicts.takeGateway(key, dirty.routes, pause))
      await pause()
    }
    for (const key of dirty.routes) {
      dirty.routes.delete(key)
      told.routes.add(key)
      await take(key, () => verdicts.takeRoute(key, told, pause))
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
      return (listener && table.route(gateway, listener.id, asked, () => random.next())) ?? 404
    },
    stream(gateway, port, serverName) {
      const listener = table.listenerOf(gateway, port, serverName)
      const asked = { host: serverName, path: '/', url: '/', method: '', headers: {} }
      const backend = listener && table.route(gateway, listener.id, asked, () => random.next())?.backend
      return listener && backend && { isPassthrough: listener.isPassthrough, backend }
    },
    certificateOf(gateway, port, serverName) {
      const secret = sources.secrets.store.get(table.listenerOf(gateway, port, serverName.toLowerCase())?.secret ?? '')
      return secret && reader.load(secret).context
    },
    shared: () => shared,
    verdictOnGateway: (key) => verdicts.gateways.get(key),
    verdictOnRoute: (key) => verdicts.routes.get(key),
    routeObject: (key) => sources.routes.get(key),
    verdictOnPolicy(key) {
      const policy = sources.policies.store.get(key)
      const keys = policy ? targetServicesOf(policy).flatMap((service) => sources.routes.byIndex('service', service)) : []
      return policy && { policy, outcomes: policyOutcomes(policy, view), gateways: gatewaysOf(keys.map((route) => verdicts.routes.get(route))) }
    },
    all: () => ({ gateways: [...verdicts.gateways.keys()], routes: sources.routes.keys(), policies: [...sources.policies.store.keys()] }),
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async run(signal) {
      const failure = 'Changes of Gateways could not be taken over'
      const following = followChanges({ sources, changes, takeChanges, markReady, log, failure, stop: follow(sources, note) }, signal)
      await Promise.all([following, sources.policies.bundles.run(signal)])
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

/** Those that the routes are attached to. */
function gatewaysOf(routes: readonly (RouteVerdict | undefined)[]): Set<string> {
  const attachments = routes.flatMap((verdict) => verdict?.attachments ?? [])
  return new Set(attachments.filter(({ listeners }) => listeners.length > 0).map(({ gateway }) => gateway))
}

/** A ConfigMap that has changed is another object, and is read again. */
function createAuthorityReader(): (configMap: Frozen<ConfigMap>) => ReturnType<ClusterView['authoritiesIn']> {
  const read = new WeakMap<object, ReturnType<ClusterView['authoritiesIn']>>()
  return (configMap) => {
    const there = read.get(configMap)
    if (there) return there
    const { uid, resourceVersion } = configMap.metadata
    const made = { ...readAuthorities(configMap.data?.[caBundleKey]), version: `${uid} ${resourceVersion}` }
    read.set(configMap, made)
    return made
  }
}
