/**
 * The ingress controller of one node (L3): routes what arrives at the node's ingress ports by the Ingresses of its class to the Pods behind their Services, and
 * makes the node an endpoint of the Service that clients reach it by. One of the nodes' controllers also writes statuses and Events. Upstream has no ingress
 * controller of its own; ingress-nginx is the one that users know.
 */
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { aborted } from '#base/orAborted'
import type { Random } from '#base/random'
import { endpointSlices } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { createEventRecorder } from '#client/eventRecorder'
import { runLeaderElected } from '#client/leaderElection'
import { type ClusterRoutes, createClusterRoutes } from './clusterRoutes.ts'
import { runLeader } from './leader.ts'
import { startProxy } from './proxy/proxy.ts'

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

/** The namespace and name of the Service that clients reach the ingress by. */
export const ingressPlace = { namespace: 'skiff-ingress', name: 'skiff-ingress' }

const retryMs = 2000

export function createIngress(deps: IngressDeps, config: IngressConfig): Component {
  // Once, however often it runs: an informer takes an index of one name only once.
  const routes = createClusterRoutes(deps)
  return { name: 'ingress', run: (signal) => run(deps, config, routes, signal) }
}

async function run(deps: IngressDeps, config: IngressConfig, routes: ClusterRoutes, signal: AbortSignal): Promise<void> {
  using scope = abortScope(signal)
  const following = routes.run(scope.signal)
  const ended = aborted(scope.signal)
  await Promise.race([routes.ready, following, ended])
  if (signal.aborted) return
  const { listenOn: host = config.nodeAddress, httpPort, httpsPort, defaultCertificate } = config
  const proxy = await startProxy(
    { ...deps, router: routes },
    {
      http: { host, port: httpPort, publicPort: 80 },
      https: { host, port: httpsPort, publicPort: 443 },
      tls: { ...defaultCertificate, contextOf: (name) => routes.certificateOf(name) },
    },
  )
  deps.log.info('Serving Ingresses', { address: host, httpPort, httpsPort })
  try {
    await Promise.all([announce(deps, config, scope.signal), lead(deps, config, routes, scope.signal), following])
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    scope.abort()
    await proxy.close()
  }
}

async function lead(deps: IngressDeps, { nodeName }: IngressConfig, routes: ClusterRoutes, signal: AbortSignal): Promise<void> {
  const events = createEventRecorder(deps, { component: 'skiff-ingress', host: nodeName }, signal)
  const lock = { namespace: ingressPlace.namespace, name: 'skiff-ingress-leader' }
  while (!signal.aborted) {
    try {
      await runLeaderElected(
        deps,
        { lock, identity: nodeName, releaseOnCancel: true },
        async (leading, leadership) =>
          runLeader({ ...deps, client: leadership.fence(deps.client), events, routes }, `${ingressPlace.namespace}/${ingressPlace.name}`, leading),
        signal,
      )
    } catch (error) {
      if (signal.aborted) return
      deps.log.error(error, 'The leader of the ingress ended')
    }
    await deps.clock.sleep(retryMs, signal).catch(() => {})
  }
}

/** Makes this node an endpoint of the Service, trying until the API takes it. */
async function announce(
  { client, clock, log }: IngressDeps,
  { nodeName, nodeAddress, httpPort, httpsPort }: IngressConfig,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name: service } = ingressPlace
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${nodeName}`,
      namespace,
      labels: { 'kubernetes.io/service-name': service, 'endpointslice.kubernetes.io/managed-by': 'ingress.skiff' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [nodeAddress], nodeName, conditions: { ready: true, serving: true, terminating: false } }],
    ports: [
      { name: 'http', protocol: 'TCP', port: httpPort },
      { name: 'https', protocol: 'TCP', port: httpsPort },
    ],
  }
  while (!signal.aborted) {
    try {
      await client
        .of(endpointSlices)
        .patch({ namespace, name: slice.metadata.name ?? '' }, 'apply', slice, { fieldManager: 'skiff-ingress', force: true, signal })
      return
    } catch (error) {
      if (signal.aborted) return
      log.error(error, 'The node could not be made an endpoint of the ingress')
      await clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}
