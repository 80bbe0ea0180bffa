/**
 * Cluster DNS as a component of a node (L3): serves from informers, and makes itself an endpoint of the Service kube-dns, which it creates when
 * it is not there. The service prefers the node's own server. Upstream: kubeadm's CoreDNS add-on.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isIpv6 } from '#api/machinery/ip'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { endpointSlices, namespaces, services } from '#client/builtIn'
import type { Indexers } from '#client/cache/indexer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { ClusterView } from './clusterRecords.ts'
import { followCorefile } from './configuration.ts'
import { runDnsServer } from './dnsServer.ts'
import type { DnsResolver } from './plugins/plugin.ts'

export interface ClusterDnsDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly events: EventRecorder
  /** Name servers for names outside the cluster, read for each query since they may change. */
  readonly upstreams: () => Promise<readonly string[]>
}

export interface ClusterDnsConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  /** The address of the Service kube-dns. */
  readonly clusterIp: string
  readonly zone: string
  readonly port: number
  /** Addresses of the cluster's host, for its names. */
  readonly hostAddresses: readonly string[]
}

const namespace = 'kube-system'
const serviceName = 'kube-dns'
const retryMs = 2000

export function createClusterDns(deps: ClusterDnsDeps, config: ClusterDnsConfig): Component {
  // Once, however often it runs: an informer takes an index of one name only once.
  const { view, synced } = createView(deps.informers)
  const { zone, hostAddresses, nodeAddress, clusterIp } = config
  const configuration = followCorefile({ ...deps, view, zone, hostAddresses }, { own: [nodeAddress, clusterIp] })
  const ready = (signal: AbortSignal) => Promise.all([synced(signal), configuration.synced(signal)])
  return { name: 'cluster-dns', run: (signal) => run(deps, config, { resolve: configuration.resolve, ready }, signal) }
}

interface Answering {
  readonly resolve: DnsResolver
  readonly ready: (signal: AbortSignal) => Promise<unknown>
}

async function run(deps: ClusterDnsDeps, config: ClusterDnsConfig, { resolve, ready }: Answering, signal: AbortSignal): Promise<void> {
  const { clock, log, metrics } = deps
  try {
    await ready(signal)
    const serving = runDnsServer({ resolve, addresses: [config.nodeAddress], port: config.port, clock, log, metrics }, signal)
    await Promise.all([serving, announce(deps, config, signal)])
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

// Always the same functions: the informers outlive a run, and take an index again only if it is the same.
const serviceIndexers: Indexers<Service> = { clusterIp: (service) => (service.spec.clusterIPs ?? []).filter((ip) => ip !== 'None') }
const sliceIndexers: Indexers<EndpointSlice> = {
  service: (slice) => [`${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''}`],
  address: (slice) => (slice.endpoints ?? []).flatMap((endpoint) => [...endpoint.addresses]),
}

function createView(informers: SharedInformerFactory) {
  const serviceInformer = informers.of(services)
  const sliceInformer = informers.of(endpointSlices)
  const namespaceInformer = informers.of(namespaces)
  serviceInformer.addIndexers(serviceIndexers)
  sliceInformer.addIndexers(sliceIndexers)
  const view: ClusterView = {
    service: (space, name) => serviceInformer.lister.get({ namespace: space, name }),
    slices: (space, service) => sliceInformer.store.byIndex('service', `${space}/${service}`),
    namespaceExists: (name) => namespaceInformer.lister.get({ name }) !== undefined,
    servicesByIp: (ip) => serviceInformer.store.byIndex('clusterIp', ip),
    slicesByIp: (ip) => sliceInformer.store.byIndex('address', ip),
  }
  const synced = (signal: AbortSignal) => Promise.all([serviceInformer, sliceInformer, namespaceInformer].map((informer) => informer.synced(signal)))
  return { view, synced }
}

/** Makes the service and this node's slice of it, trying until the API takes them. */
async function announce(deps: ClusterDnsDeps, config: ClusterDnsConfig, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await ensureService(deps.client, config)
      await ensureSlice(deps.client, config)
      return
    } catch (error) {
      if (signal.aborted) return
      deps.log.error(error, 'Failed to announce cluster DNS')
      await deps.clock.sleep(retryMs, signal)
    }
  }
}

async function ensureService(client: Client, config: ClusterDnsConfig): Promise<void> {
  // Read first: a second create is refused for its address before the server compares names.
  const there = await client
    .of(services)
    .get({ namespace, name: serviceName })
    .catch((error) => {
      if (isStatus(error, 'NotFound')) return undefined
      throw error
    })
  if (there) return
  const port = (name: string, protocol: string) => ({ name, protocol, port: 53, targetPort: config.port })
  try {
    await client.of(services).create({
      metadata: { name: serviceName, namespace, labels: { 'k8s-app': 'kube-dns', 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' } },
      spec: { type: 'ClusterIP', clusterIP: config.clusterIp, internalTrafficPolicy: 'Local', ports: [port('dns', 'UDP'), port('dns-tcp', 'TCP')] },
    })
  } catch (error) {
    // Another node's agent was faster.
    if (!isStatus(error, 'AlreadyExists') && !isStatus(error, 'Invalid')) throw error
  }
}

async function ensureSlice(client: Client, config: ClusterDnsConfig): Promise<void> {
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${serviceName}-${config.nodeName}`,
      namespace,
      labels: { 'kubernetes.io/service-name': serviceName, 'endpointslice.kubernetes.io/managed-by': 'cluster-dns.skiff' },
    },
    addressType: isIpv6(config.nodeAddress) ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [config.nodeAddress], nodeName: config.nodeName, conditions: { ready: true, serving: true, terminating: false } }],
    ports: [
      { name: 'dns', protocol: 'UDP', port: config.port },
      { name: 'dns-tcp', protocol: 'TCP', port: config.port },
    ],
  }
  await client.of(endpointSlices).patch({ namespace, name: slice.metadata.name ?? '' }, 'apply', slice, { fieldManager: 'cluster-dns', force: true })
}
