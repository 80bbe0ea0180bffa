/**
 * The service proxy of one node (L3): watches Services and EndpointSlices and keeps the kernel's rules in step. Changes that come together are
 * applied together; a failed application is tried again with back-off. Upstream: cmd/kube-proxy, pkg/proxy (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { createWakeUp } from '#base/wakeUp'
import { endpointSlices, nodes, serviceCIDRs, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'
import type { Conntrack } from '#host/conntrack'
import type { Exec } from '#host/exec'
import { addressRule } from './externalAddresses.ts'
import { noteIgnoredAddresses } from './ignoredAddressEvents.ts'
import { buildModel, type ServiceRule } from './model.ts'
import { proxyModes } from './modes/index.ts'
import type { ProxyBackend } from './modes/mode.ts'
import { staleUdpFlows } from './staleFlows.ts'

export interface ProxyDeps {
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly exec: Exec
  readonly conntrack: Conntrack
  /** Tells owners of Services what is not served. */
  readonly events: EventRecorder
}

export interface ProxyConfig {
  readonly nodeName: string
  readonly clusterCidr: string
  readonly serviceCidr: string
  /** A mode's name, or 'auto' for the first that this host can run. */
  readonly mode: string
}

const zoneLabel = 'topology.kubernetes.io/zone'

/** Changes within this time are one application. */
const settleMs = 10
const retryMs = { initial: 500, max: 30_000 }

export function createProxy(deps: ProxyDeps, config: ProxyConfig): Component {
  return { name: 'kube-proxy', run: (signal) => runProxy(deps, config, signal) }
}

async function runProxy(deps: ProxyDeps, config: ProxyConfig, signal: AbortSignal): Promise<void> {
  const backend = await chooseBackend(deps, config)
  const serviceInformer = deps.informers.of(services)
  const sliceInformer = deps.informers.of(endpointSlices)
  const nodeInformer = deps.informers.of(nodes)
  const rangeInformer = deps.informers.of(serviceCIDRs)
  const duration = deps.metrics.histogram({ name: 'kubeproxy_sync_proxy_rules_duration_seconds', help: 'Time to bring the rules up to date.' })
  const changes = createWakeUp()
  changes.ring()
  const handler = { onAdd: changes.ring, onUpdate: (old: unknown, now: unknown) => (old === now ? undefined : changes.ring()), onDelete: changes.ring }
  let zone: string | undefined
  const followZone = ({ metadata }: Frozen<Node>) => {
    if (metadata.name !== config.nodeName || metadata.labels?.[zoneLabel] === zone) return
    zone = metadata.labels?.[zoneLabel]
    changes.ring()
  }
  const registrations = [
    serviceInformer.addHandler(handler),
    sliceInformer.addHandler(handler),
    rangeInformer.addHandler(handler),
    nodeInformer.addHandler({ onAdd: followZone, onUpdate: (_, node) => followZone(node) }),
  ]
  const note = noteIgnoredAddresses(deps.events)
  let before: readonly ServiceRule[] = []
  let failures = 0
  try {
    await Promise.all([serviceInformer.synced(signal), sliceInformer.synced(signal), nodeInformer.synced(signal), rangeInformer.synced(signal)])
    while (!signal.aborted) {
      await changes.wait(signal)
      await deps.clock.sleep(settleMs, signal)
      const listed = serviceInformer.store.list()
      const ranges = [config.serviceCidr, ...rangeInformer.store.list().flatMap(({ spec }) => spec?.cidrs ?? [])]
      const rule = addressRule(listed, ranges)
      const rules = buildModel(listed, sliceInformer.store.list(), { nodeName: config.nodeName, zone }, 'IPv4', rule)
      const startedMs = deps.clock.monotonicMs()
      try {
        await backend.apply(rules)
        note(listed, rule)
        for (const flow of staleUdpFlows(before, rules)) await deps.conntrack.delete(flow)
        before = rules
        failures = 0
        duration.observe((deps.clock.monotonicMs() - startedMs) / 1000)
        deps.log.v(3).info('Applied service rules', { services: rules.length })
      } catch (error) {
        deps.log.error(error, 'Failed to apply service rules')
        changes.ring()
        await deps.clock.sleep(Math.min(retryMs.max, retryMs.initial * 2 ** failures++), signal)
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    // The rules stay: a proxy that restarts must not cut the traffic.
    for (const registration of registrations) registration.remove()
  }
}

async function chooseBackend(deps: ProxyDeps, config: ProxyConfig): Promise<ProxyBackend> {
  const candidates = config.mode === 'auto' ? proxyModes : proxyModes.filter((mode) => mode.name === config.mode)
  if (candidates.length === 0) throw new Error(`proxy mode "${config.mode}" is not supported; there are: ${proxyModes.map((mode) => mode.name).join(', ')}`)
  const obstacles: string[] = []
  for (const mode of candidates) {
    const obstacle = await mode.obstacle(deps.exec)
    if (obstacle === undefined) {
      deps.log.info('Using proxy mode', { mode: mode.name })
      return mode.create({ exec: deps.exec, clusterCidr: config.clusterCidr, serviceCidr: config.serviceCidr })
    }
    obstacles.push(`${mode.name}: ${obstacle}`)
  }
  throw new Error(`no proxy mode works on this host: ${obstacles.join('; ')}`)
}
