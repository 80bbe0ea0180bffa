/**
 * Finds the resources of a kind whatever its version (L3). A kind that discovery does not know is looked up again, but only once in ten seconds:
 * an autoscaler with a mistyped kind must not cause a discovery at each of its syncs. Upstream: RESTMappings of client-go/restmapper (v1.36).
 */
import type { Clock } from '#base/clock'
import type { DiscoveredResource, Discovery } from '#client/discovery/discovery'

export interface KindMapper {
  /** One or more, those of the preferred version first. @throws Error with upstream's text for an unknown kind */
  resourcesOf(group: string, kind: string, signal: AbortSignal): Promise<readonly DiscoveredResource[]>
}

const refreshMs = 10_000

export function createKindMapper(discovery: Discovery, clock: Clock): KindMapper {
  let refreshedMs = Number.NEGATIVE_INFINITY
  const look = async (group: string, kind: string, signal: AbortSignal) => {
    const found = new Map<string, DiscoveredResource>()
    for (const one of (await discovery.resources(signal)).resources)
      if (one.group === group && one.kind === kind && !found.has(one.resource)) found.set(one.resource, one)
    return [...found.values()]
  }
  return {
    async resourcesOf(group, kind, signal) {
      if (!discovery.remembers()) refreshedMs = clock.monotonicMs()
      const known = await look(group, kind, signal)
      if (known.length > 0) return known
      if (clock.monotonicMs() - refreshedMs >= refreshMs) {
        refreshedMs = clock.monotonicMs()
        discovery.invalidate()
        const found = await look(group, kind, signal)
        if (found.length > 0) return found
      }
      throw new Error(`no matches for kind ${JSON.stringify(kind)} in group ${JSON.stringify(group)}`)
    },
  }
}
