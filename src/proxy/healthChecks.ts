/**
 * Health check node ports of a proxy (L3): follows the Services that have one, and loads the server of these ports with the first of them. Upstream:
 * HealthCheckNodePorts and LocalReadyEndpoints of pkg/proxy (v1.36).
 */
import { healthCheckNodePort } from '#api/helpers/services'
import type { HealthCheckDeps, HealthCheckSources } from './healthCheckServer.ts'

export interface HealthChecks {
  /** Notes what the model that is made now holds. */
  take(sources: HealthCheckSources): void
  /** The kernel has the rules of the newest model. */
  applied(): void
}

/** @param signal closes all ports */
export function createHealthChecks(deps: HealthCheckDeps, signal: AbortSignal): HealthChecks {
  let newest: HealthCheckSources | undefined
  let loaded: Promise<(sources: HealthCheckSources) => void> | undefined
  const load = async () => (await import('./healthCheckServer.ts')).createHealthCheckServer(deps, signal).serve
  return {
    take: (sources) => {
      newest = { ...sources, services: sources.services.filter((service) => healthCheckNodePort(service) !== undefined) }
    },
    applied: () => {
      const sources = newest
      if (!sources || (!loaded && sources.services.length === 0)) return
      loaded ??= load()
      loaded.then((serve) => serve(sources)).catch((error) => deps.log.error(error, 'No health check ports'))
    },
  }
}
