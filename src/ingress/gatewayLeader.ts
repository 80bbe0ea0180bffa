/**
 * What only one of a cluster's ingress processes does for the Gateway API (L3): it keeps the Services of Gateways, and writes statuses. Only what has changed is
 * looked at, and only what differs is written.
 */
import type { Service } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { formatTime } from '#base/time'
import { createWakeUp } from '#base/wakeUp'
import { services } from '#client/builtIn'
import { namespaceIndex } from '#client/cache/indexer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client, Resource } from '#client/client'
import { onEach } from './following.ts'
import { backendTlsPolicies, gatewayClasses, gateways, listenerSets, routeResources } from './gatewayResources.ts'
import type { GatewayRoutes } from './gatewayRoutes.ts'
import { type GatewayChanges, kindOf } from './gatewaySources.ts'
import type { GatewayVerdict } from './gatewayVerdicts.ts'
import { gatewayAnnotation, gatewayOfService, gatewayServiceName, planServicePorts, takenPorts } from './model/gateway/gatewayService.ts'
import { gatewayControllerName } from './model/gateway/kinds.ts'
import { type GatewayReach, gatewayClassStatus, gatewayStatus, listenerSetStatus, policyAncestors, routeParents } from './model/gateway/statuses.ts'
import { ingressPlace } from './place.ts'

export interface GatewayLeaderDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly routes: GatewayRoutes
}

const retryMs = 2000
const { namespace } = ingressPlace

type Kind = 'class' | 'gateway' | 'route' | 'policy'

export async function runGatewayLeader(deps: GatewayLeaderDeps, signal: AbortSignal): Promise<void> {
  const { routes, clock, log, informers } = deps
  const serviceInformer = informers.of(services)
  const classes = informers.of(gatewayClasses)
  const dirty = new Set<`${Kind} ${string}`>()
  const changes = createWakeUp()
  const note = (kind: Kind, keys: Iterable<string>) => {
    for (const key of keys) dirty.add(`${kind} ${key}`)
    changes.ring()
  }
  const noteAll = ({ gateways: ofGateways, routes: ofRoutes, policies }: GatewayChanges) => {
    note('gateway', ofGateways)
    note('route', ofRoutes)
    note('policy', policies)
  }
  const stop = routes.onChange(noteAll)
  const registrations = [
    serviceInformer.addHandler(
      onEach<Service>((service) => {
        if (service.metadata.namespace !== namespace) return
        const gateway = service.metadata.name === ingressPlace.name ? routes.shared() : gatewayOfService(service)
        if (gateway !== undefined) note('gateway', [gateway])
      }),
    ),
    classes.addHandler(onEach((one) => note('class', [keyOf(one)]))),
  ]
  const keepers: Record<Kind, (key: string) => Promise<void>> = {
    class: (key) => keepClass(deps, classes.store.get(key), signal),
    gateway: (key) => keepGateway(deps, key, serviceInformer.store.byIndex(namespaceIndex, namespace), signal),
    route: (key) => keepRoute(deps, key, signal),
    policy: (key) => keepPolicy(deps, key, signal),
  }
  try {
    await Promise.all([routes.ready, serviceInformer.synced(signal), classes.synced(signal)])
    noteAll(routes.all())
    while (!signal.aborted) {
      let failed = false
      for (const one of [...dirty]) {
        dirty.delete(one)
        const [kind, key = ''] = one.split(' ') as [Kind, string]
        try {
          await keepers[kind](key)
        } catch (error) {
          if (signal.aborted) return
          if (!isStatus(error, 'Conflict') && !isStatus(error, 'NotFound'))
            log.error(error, 'The status of a Gateway or route could not be written', { [kind]: key })
          dirty.add(one)
          failed = true
        }
      }
      const retry = failed ? clock.timer(retryMs, changes.ring) : undefined
      await changes.wait(signal)
      retry?.cancel()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    stop()
    for (const registration of registrations) registration.remove()
  }
}

type Deps = Pick<GatewayLeaderDeps, 'client' | 'clock' | 'routes'>

async function keepClass(deps: Deps, one: Parameters<typeof gatewayClassStatus>[0] | undefined, signal: AbortSignal): Promise<void> {
  if (one?.spec.controllerName !== gatewayControllerName) return
  await writeStatus(deps, gatewayClasses, one, one.status, gatewayClassStatus(one, nowOf(deps)), signal)
}

async function keepRoute(deps: Deps, key: string, signal: AbortSignal): Promise<void> {
  const verdict = deps.routes.verdictOnRoute(key)
  const route = verdict?.route ?? deps.routes.routeObject(key)
  if (!route) return
  const parents = routeParents(route, verdict?.attachments ?? [], verdict?.rules, nowOf(deps))
  await writeStatus(deps, routeResources[kindOf(key)], route, route.status ?? { parents: [] }, { parents }, signal)
}

async function keepPolicy(deps: Deps, key: string, signal: AbortSignal): Promise<void> {
  const verdict = deps.routes.verdictOnPolicy(key)
  if (!verdict) return
  const { policy, outcomes, gateways: used } = verdict
  const ancestors = policyAncestors(policy, outcomes, [...used], nowOf(deps))
  await writeStatus(deps, backendTlsPolicies, policy, policy.status ?? { ancestors: [] }, { ancestors }, signal)
}

async function keepGateway(deps: Deps, key: string, ours: readonly Frozen<Service>[], signal: AbortSignal): Promise<void> {
  const { routes } = deps
  const verdict = routes.verdictOnGateway(key)
  const reach = await keepService(deps, key, ours, signal)
  if (!verdict) return
  const countOf = (listener: string) => routes.table.attachedCount(key, listener)
  await writeStatus(deps, gateways, verdict.gateway, verdict.gateway.status, gatewayStatus(verdict.gateway, verdict, reach, countOf, nowOf(deps)), signal)
  for (const compiled of verdict.sets) {
    const { set } = compiled
    await writeStatus(deps, listenerSets, set, set.status, listenerSetStatus(compiled, countOf, nowOf(deps)), signal)
  }
}

/** A Gateway that listens has a Service; others have none. */
async function keepService({ client, routes }: Deps, key: string, ours: readonly Frozen<Service>[], signal: AbortSignal): Promise<GatewayReach> {
  const name = gatewayServiceName(key)
  const there = ours.find(({ metadata }) => metadata.name === name)
  if (there && gatewayOfService(there) !== key) return { addresses: [], problem: 'The Service of another Gateway has the name of this one' }
  const ports = isServed(routes.verdictOnGateway(key)) ? [...routes.table.portsOf(key).keys()] : []
  if (ports.length === 0) {
    if (there) await client.of(services).delete({ namespace, name }, { signal })
    return { addresses: [] }
  }
  const others = ours.filter((one) => one !== there && gatewayOfService(one) !== undefined)
  const planned = planServicePorts(ports, there, takenPorts(others))
  if (!planned) return { addresses: [], problem: 'The ingress has no ports left for Gateways' }
  const current = there?.spec.ports?.map(({ name: of, port, protocol, targetPort }) => ({ name: of, port, protocol, targetPort }))
  if (!there) {
    const metadata = { name, namespace, annotations: { [gatewayAnnotation]: key } }
    await client.of(services).create({ metadata, spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: planned } }, { signal })
  } else if (!semanticEqual(current, planned)) {
    const { resourceVersion } = there.metadata
    await client.of(services).patch({ namespace, name }, 'merge', { metadata: { resourceVersion }, spec: { ports: planned } }, { signal })
  }
  const shared = routes.shared() === key ? ours.find(({ metadata }) => metadata.name === ingressPlace.name) : undefined
  return { addresses: addressesOf(there, shared) }
}

function isServed(verdict: GatewayVerdict | undefined): boolean {
  return verdict !== undefined && !verdict.gateway.spec.addresses?.length && !verdict.gateway.metadata.deletionTimestamp
}

/** Those of the load balancer, its own or the ingress's; without them, the one that Pods and nodes reach the Service by. */
function addressesOf(service: Frozen<Service> | undefined, shared: Frozen<Service> | undefined) {
  const balanced = (one: Frozen<Service> | undefined) => (one?.status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? [])
  const own = service?.spec.clusterIP ? [service.spec.clusterIP] : []
  const found = [balanced(service), balanced(shared), own].find((list) => list.length > 0) ?? []
  return found.map((value) => ({ type: 'IPAddress', value }))
}

const nowOf = ({ clock }: Deps) => formatTime(clock.now())

async function writeStatus<T extends KubeObject>(
  { client }: Deps,
  resource: Resource<T>,
  { metadata }: Frozen<KubeObject>,
  before: unknown,
  status: object,
  signal: AbortSignal,
): Promise<void> {
  if (semanticEqual(before, status)) return
  const ref = { namespace: metadata.namespace, name: metadata.name ?? '' }
  await client.of(resource).patch(ref, 'merge', { metadata: { resourceVersion: metadata.resourceVersion }, status }, { subresource: 'status', signal })
}
