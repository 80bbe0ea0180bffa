/**
 * What only one of a cluster's ingress processes does (L3), the one that holds the Lease: it writes the addresses of the ingress's Service into the status of
 * each Ingress, and records Events about what is not served. Upstream's counterpart: status.go of ingress-nginx.
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { createWakeUp } from '#base/wakeUp'
import { ingresses, services } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { ClusterRoutes } from './clusterRoutes.ts'

export interface LeaderDeps {
  readonly client: Client
  readonly informers: SharedInformerFactory
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Logger
  readonly routes: ClusterRoutes
}

const retryMs = 2000

/** @param serviceKey `namespace/name` of the Service that clients reach the ingress by */
export async function runLeader(deps: LeaderDeps, serviceKey: string, signal: AbortSignal): Promise<void> {
  const { routes, clock, log, informers } = deps
  const serviceInformer = informers.of(services)
  const dirty = new Set<string>(routes.table.keys())
  const told = new Map<string, string>()
  const changes = createWakeUp()
  const note = (keys: Iterable<string>) => {
    for (const key of keys) dirty.add(key)
    changes.ring()
  }
  const noteService = (service: Frozen<Service>) => (keyOf(service) === serviceKey ? note(routes.table.keys()) : undefined)
  const stop = routes.onChange(note)
  const registration = serviceInformer.addHandler({ onAdd: noteService, onUpdate: (_, now) => noteService(now) })
  try {
    await serviceInformer.synced(signal)
    while (!signal.aborted) {
      let failed = false
      for (const key of [...dirty]) {
        dirty.delete(key)
        try {
          await keepOne(deps, key, serviceInformer.store.get(serviceKey), told, signal)
        } catch (error) {
          if (signal.aborted) return
          if (!isStatus(error, 'Conflict') && !isStatus(error, 'NotFound')) log.error(error, 'The status of an Ingress could not be written', { ingress: key })
          dirty.add(key)
          failed = true
        }
      }
      const retry = failed ? clock.timer(retryMs, changes.ring) : undefined
      await changes.wait(signal)
      retry?.cancel()
    }
  } finally {
    stop()
    registration.remove()
  }
}

async function keepOne(
  { routes, events, client }: LeaderDeps,
  key: string,
  service: Frozen<Service> | undefined,
  told: Map<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const ingress = routes.ingress(key)
  if (!ingress || !routes.table.get(key) || ingress.metadata.deletionTimestamp) {
    told.delete(key)
    return
  }
  const problems = (await routes.problemsOf(key)).join('; ')
  const saying = `${ingress.metadata.uid} ${problems}`
  if (problems !== '' && told.get(key) !== saying) events.event(ingress, 'Warning', 'NotServed', `Parts of the Ingress are not served: ${problems}`)
  told.set(key, saying)
  const wanted = addressesOf(service)
  if (semanticEqual(ingress.status?.loadBalancer?.ingress ?? [], wanted)) return
  const { namespace, name = '', resourceVersion } = ingress.metadata
  const status = { loadBalancer: { ingress: wanted.length > 0 ? wanted : null } }
  await client.of(ingresses).patch({ namespace, name }, 'merge', { metadata: { resourceVersion }, status }, { subresource: 'status', signal })
}

type Addresses = NonNullable<NonNullable<Ingress['status']['loadBalancer']>['ingress']>

/** Without the ports of the Service, as ingress-nginx writes them. */
function addressesOf(service: Frozen<Service> | undefined): Addresses {
  return (service?.status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ({ ...(ip ? { ip } : {}), ...(hostname ? { hostname } : {}) }))
}
