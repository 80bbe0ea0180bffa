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
import { defaultPlan } from './corefile/defaultPlan.ts'
import type { PlanContext } from './corefile/plan.ts'
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
  const byDefault = () => createServers([defaultPlan(zone)], deps)
  let servers = byDefault()
  let current: string | undefined
  let applied = Promise.resolve()
  const apply = async (map: Frozen<ConfigMap> | undefined) => {
    const text = map?.data?.[key]
    if (text === current) return
    current = text
    // An empty cache comes with the servers: what was answered by another configuration is asked again.
    if (!map || text === undefined) {
      servers = byDefault()
      log.info('Cluster DNS has its default configuration')
      return
    }
    // Most clusters have no Corefile, and their nodes do not load what reads one.
    const [{ planCorefile }, { hasPatterns }, { CorefileError }] = await Promise.all([
      import('./corefile/plan.ts'),
      import('./corefile/planRewrite.ts'),
      import('./corefile/syntax.ts'),
    ])
    const patterns = hasPatterns(text) ? await import('./corefile/patterns.ts') : undefined
    try {
      servers = createServers(planCorefile(text, { zone, ...context, compilePattern: patterns?.createPatternCompiler() }), deps)
      log.info('Cluster DNS has the configuration of the ConfigMap coredns')
    } catch (error) {
      if (!(error instanceof CorefileError)) throw error
      log.error(error, 'The Corefile is refused, cluster DNS stays as it is')
      events.event(map, 'Warning', 'CorefileRefused', `${error.message}. Cluster DNS stays as it is.`)
    }
  }
  const follow = (map?: Frozen<ConfigMap>) => {
    applied = applied.then(() => apply(map)).catch((error: unknown) => log.error(error, 'The Corefile could not be applied, cluster DNS stays as it is'))
  }
  const informer = informers.of(configMaps, selection)
  informer.addHandler({ onAdd: follow, onUpdate: (_old, map) => follow(map), onDelete: () => follow() })
  return {
    resolve: (...asked) => servers(...asked),
    async synced(signal) {
      await informer.synced(signal)
      await applied
    },
  }
}
