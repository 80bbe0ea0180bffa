/**
 * The ingress controller of one node (L3): routes what arrives at the node's ingress ports by the Ingresses of its class to the Pods behind their Services, and
 * makes the node an endpoint of the Service that clients reach it by. One of the nodes' controllers also writes statuses and Events. Upstream has no ingress
 * controller of its own; ingress-nginx is the one that users know.
 */
import type { SecureContext } from 'node:tls'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { aborted } from '#base/orAborted'
import type { Random } from '#base/random'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { createEventRecorder } from '#client/eventRecorder'
import { runLeaderElected } from '#client/leaderElection'
import { announce } from './announce.ts'
import { type ClusterRoutes, createClusterRoutes } from './clusterRoutes.ts'
import { runGatewayLeader } from './gatewayLeader.ts'
import { runGatewayPorts } from './gatewayPorts.ts'
import { createGatewayRoutes, type GatewayRoutes } from './gatewayRoutes.ts'
import { runLeader } from './leader.ts'
import { ingressPlace } from './place.ts'
import { startProxy } from './proxy/proxy.ts'
import type { Router } from './proxy/proxyDeps.ts'

export interface IngressDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
}

export interface IngressConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  /** Where the ports are opened; default: the node's address. */
  readonly listenOn?: string | undefined
  readonly httpPort: number
  readonly httpsPort: number
  /** PEM, for server names without a certificate. */
  readonly defaultCertificate: { readonly cert: string; readonly key: string }
}

const retryMs = 2000

export function createIngress(deps: IngressDeps, config: IngressConfig): Component {
  // Once, however often it runs: an informer takes an index of one name only once.
  const routes = { ingresses: createClusterRoutes(deps), gateways: createGatewayRoutes(deps) }
  return { name: 'ingress', run: (signal) => run(deps, config, routes, signal) }
}

interface Routes {
  readonly ingresses: ClusterRoutes
  readonly gateways: GatewayRoutes
}

function routerOf({ ingresses, gateways }: Routes): Router {
  return {
    route: (asked, { gateway, port }, serverName) => {
      const found = gateway === undefined ? ingresses.route(asked.host, asked.path) : undefined
      const of = gateway ?? gateways.shared()
      return found ?? (of === undefined ? 404 : gateways.route(of, port, asked, serverName))
    },
    stream: (serverName, { gateway, port }) => (gateway === undefined ? undefined : gateways.stream(gateway, port, serverName)),
    backendOf: ingresses.backendOf,
  }
}

/** On the ingress's own port. */
function certificateOf({ ingresses, gateways }: Routes, name: string): SecureContext | undefined {
  const shared = gateways.shared()
  return ingresses.certificateOf(name) ?? (shared === undefined ? undefined : gateways.certificateOf(shared, 443, name))
}

async function run(deps: IngressDeps, config: IngressConfig, routes: Routes, signal: AbortSignal): Promise<void> {
  using scope = abortScope(signal)
  const following = Promise.all([routes.ingresses.run(scope.signal), routes.gateways.run(scope.signal)])
  const ended = aborted(scope.signal)
  await Promise.race([routes.ingresses.ready, following, ended])
  if (signal.aborted) return
  const { listenOn: host = config.nodeAddress, httpPort, httpsPort, defaultCertificate } = config
  const proxy = await startProxy(
    { ...deps, router: routerOf(routes) },
    {
      http: { host, port: httpPort, publicPort: 80 },
      https: { host, port: httpsPort, publicPort: 443 },
      tls: { ...defaultCertificate, contextOf: (name) => certificateOf(routes, name) },
    },
  )
  deps.log.info('Serving Ingresses', { address: host, httpPort, httpsPort })
  try {
    const ports = [
      { name: 'http', port: httpPort },
      { name: 'https', port: httpsPort },
    ]
    await Promise.all([
      announce(deps, config, { service: ingressPlace.name, ports }, scope.signal),
      runGatewayPorts({ ...deps, proxy, routes: routes.gateways }, config, scope.signal),
      lead(deps, config, routes, scope.signal),
      following,
    ])
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    scope.abort()
    await proxy.close()
  }
}

async function lead(deps: IngressDeps, { nodeName }: IngressConfig, routes: Routes, signal: AbortSignal): Promise<void> {
  const events = createEventRecorder(deps, { component: 'skiff-ingress', host: nodeName }, signal)
  const lock = { namespace: ingressPlace.namespace, name: 'skiff-ingress-leader' }
  while (!signal.aborted) {
    try {
      await runLeaderElected(
        deps,
        { lock, identity: nodeName, releaseOnCancel: true },
        async (leading, leadership) => {
          const fenced = { ...deps, client: leadership.fence(deps.client), events }
          await Promise.all([
            runLeader({ ...fenced, routes: routes.ingresses }, `${ingressPlace.namespace}/${ingressPlace.name}`, leading),
            runGatewayLeader({ ...fenced, routes: routes.gateways }, leading),
          ])
        },
        signal,
      )
    } catch (error) {
      if (signal.aborted) return
      deps.log.error(error, 'The leader of the ingress ended')
    }
    await deps.clock.sleep(retryMs, signal).catch(() => {})
  }
}
