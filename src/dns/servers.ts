/** Makes the plugins of the servers that a Corefile plans (L3), in upstream's order, whatever the order of the file. */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { ClusterView } from './clusterRecords.ts'
import type { ServerPlan } from './corefile/plan.ts'
import { createCachePlugin } from './plugins/cache.ts'
import { type Ask, createForwardPlugin } from './plugins/forward.ts'
import { createHostsPlugin } from './plugins/hosts.ts'
import { createKubernetesPlugin } from './plugins/kubernetes.ts'
import { createLoadBalancePlugin } from './plugins/loadBalance.ts'
import { type DnsPlugin, type DnsResolver, inOrder, isInZone, refused } from './plugins/plugin.ts'
import { createLogPlugin } from './plugins/queryLog.ts'
import { createRewritePlugin } from './plugins/rewrite.ts'

export interface ServersDeps {
  readonly view: ClusterView
  readonly zone: string
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** Name servers for names outside the cluster, read for each query since they may change. */
  readonly upstreams: () => Promise<readonly string[]>
  /** Where the names of the host lead. */
  readonly hostAddresses: readonly string[]
  /** Asks another name server. Default: over the network. */
  readonly ask?: Ask | undefined
}

/** By these names pods reach what listens on the cluster's host. */
export const hostNames = ['host.skiff.internal', 'host.docker.internal'] as const

/** Answers a question by the server with the longest zone that its name is in; refused where there is none. */
export function createServers(plans: readonly ServerPlan[], deps: ServersDeps): DnsResolver {
  const resolve: DnsResolver = async (question, query, protocol) => {
    const server = serverFor(servers, question.name)
    return server ? server.resolve(question, query, protocol) : refused
  }
  const servers = plans.map((plan) => ({ zones: plan.zones, resolve: inOrder(pluginsOf(plan, deps, resolve)) }))
  return resolve
}

function pluginsOf(plan: ServerPlan, deps: ServersDeps, ask: DnsResolver): DnsPlugin[] {
  const { view, zone, clock, log, upstreams } = deps
  const asking = deps.ask ? { ask: deps.ask } : {}
  const plugins: (DnsPlugin | undefined)[] = [
    plan.logged.length > 0 ? createLogPlugin(plan.logged, log, clock) : undefined,
    plan.balances ? createLoadBalancePlugin() : undefined,
    plan.cache && createCachePlugin(plan.cache, { clock, ...cacheMetrics(deps.metrics) }),
    plan.rewrites.length > 0 ? createRewritePlugin(plan.rewrites) : undefined,
    plan.hosts && createHostsPlugin(plan.hosts),
    namesOfHost(deps),
    plan.kubernetes && createKubernetesPlugin(view, zone, { ...plan.kubernetes, ask }),
    ...plan.forwards.map(({ servers, ...options }) => createForwardPlugin({ servers: servers ? async () => servers : upstreams, clock, ...asking }, options)),
  ]
  return plugins.filter((plugin) => plugin !== undefined)
}

function namesOfHost({ hostAddresses }: ServersDeps): DnsPlugin {
  const entries = hostAddresses.map((address) => ({ address, names: hostNames }))
  return createHostsPlugin({ entries, zones: hostAddresses.length === 0 ? [] : hostNames, fallthrough: [], ttl: 30, hasReverse: false })
}

function cacheMetrics(metrics: Metrics) {
  return {
    hits: metrics.counter({ name: 'coredns_cache_hits_total', help: 'Questions that the cache answered, by the kind of answer.', labels: ['type'] }),
    misses: metrics.counter({ name: 'coredns_cache_misses_total', help: 'Questions that the cache could not answer.' }),
  }
}

/** The server of a name: the one with the longest zone that it is in. */
export function serverFor<T extends { readonly zones: readonly string[] }>(servers: readonly T[], name: string): T | undefined {
  let best: { readonly server: T; readonly length: number } | undefined
  for (const server of servers)
    for (const zone of server.zones) if (isInZone(name, zone) && (!best || zone.length > best.length)) best = { server, length: zone.length }
  return best?.server
}
