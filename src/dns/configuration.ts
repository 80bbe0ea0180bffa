/**
 * Follows the ConfigMap coredns of kube-system (L3), whose key Corefile configures cluster DNS. Without it the default holds. A Corefile that cannot be
 * served leaves the servers as they are, and an Event on the ConfigMap says why.
 */
import type { ConfigMap } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Logger } from '#base/log'
import { configMaps } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { EventRecorder } from '#client/eventRecorder'
import { defaultCorefile, type PlanContext, planCorefile } from './corefile/plan.ts'
import { CorefileError } from './corefile/syntax.ts'
import type { DnsResolver } from './plugins/plugin.ts'
import { createServers, type ServersDeps } from './servers.ts'

export interface ConfigurationDeps extends ServersDeps {
  readonly informers: SharedInformerFactory
  readonly events: EventRecorder
  readonly log: Logger
}

const selection = { namespace: 'kube-system', fieldSelector: 'metadata.name=coredns' }
const key = 'Corefile'

export interface Configuration {
  /** Answers by the Corefile of now. */
  readonly resolve: DnsResolver
  /** Resolves when the ConfigMap, or its absence, is known. */
  synced(signal: AbortSignal): Promise<void>
}

export function followCorefile(deps: ConfigurationDeps, context: Pick<PlanContext, 'own'>): Configuration {
  const { informers, events, log, zone } = deps
  const planned = (text: string) => createServers(planCorefile(text, { zone, ...context }), deps)
  let servers = planned(defaultCorefile(zone))
  let current: string | undefined
  const apply = (map: Frozen<ConfigMap> | undefined) => {
    const text = map?.data?.[key]
    if (text === current) return
    current = text
    try {
      // An empty cache comes with the servers: what was answered by another configuration is asked again.
      servers = planned(text ?? defaultCorefile(zone))
      log.info(text === undefined ? 'Cluster DNS has its default configuration' : 'Cluster DNS has the configuration of the ConfigMap coredns')
    } catch (error) {
      if (!(error instanceof CorefileError) || !map) throw error
      log.error(error, 'The Corefile is refused, cluster DNS stays as it is')
      events.event(map, 'Warning', 'CorefileRefused', `${error.message}. Cluster DNS stays as it is.`)
    }
  }
  const informer = informers.of(configMaps, selection)
  informer.addHandler({ onAdd: (map) => apply(map), onUpdate: (_old, map) => apply(map), onDelete: () => apply(undefined) })
  return { resolve: (...asked) => servers(...asked), synced: (signal) => informer.synced(signal) }
}
