/**
 * Repairs the stored node ports (L3): marks those that services use, releases those that no service has used for several rounds, and reports
 * services whose ports are taken twice or outside of the range. Runs before the server is ready and every few minutes.
 * Upstream: pkg/registry/core/service/portallocator/controller/repair.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen, KubeList } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { createClient } from '#client/clientOverTransport'
import { createEventSeriesRecorder, type EventSeriesRecorder } from '#client/eventSeriesRecorder'
import type { ServerWork } from '../../core/serverWork.ts'
import type { KindWorkDeps } from '../../registry/kindStorage.ts'
import { formatPortRange, PortBitmap } from './portBitmap.ts'
import { type Finding, type Leaks, rebuildPorts } from './rebuildPorts.ts'
import { nodePortsKey, type StoredPorts } from './storedPorts.ts'

const intervalMs = 180_000
const reportingController = 'portallocator-repair-controller'
/** Waits between tries when another write comes first. Upstream: retry.DefaultBackoff. */
const conflictWaitsMs = [10, 50, 250]
/** Other services do not depend on it: the server becomes ready all the same. */
const unreadableText =
  'Services get no node ports, because the stored ones cannot be decoded; configure the key that encrypted them, or delete their key in the store: the next repair rebuilds them from the services'

export function nodePortRepair(stored: StoredPorts, deps: KindWorkDeps): ServerWork {
  const { clock, log } = deps
  let leaks: Leaks = new Map()
  let recorder: EventSeriesRecorder | undefined

  async function repair(signal: AbortSignal): Promise<void> {
    for (const waitMs of conflictWaitsMs) {
      if (await repairOnce(signal)) return
      await clock.sleep(waitMs, signal)
    }
    if (!(await repairOnce(signal))) throw new StatusError('Conflict', 'the allocated node ports changed while they were repaired')
  }

  /** False when another write came first. A value that cannot be decoded is left as it is until a later repair. */
  async function repairOnce(signal: AbortSignal): Promise<boolean> {
    // The services are listed after this read, so that every port of a listed service is in it, or is not allocated.
    const { revision, ports: before, isStale, unreadable } = await stored.readStored()
    if (unreadable) {
      log.error(unreadable, unreadableText, { key: nodePortsKey })
      return true
    }
    const { body } = await deps.transport.request({ method: 'GET', path: '/api/v1/services' }, signal)
    const { items } = body as KubeList<Service>
    const rebuilt = await rebuildPorts(items as Frozen<Service>[], before ?? PortBitmap.empty(stored.range), stored.range, leaks)
    const isKept = before?.equals(rebuilt.ports) && !isStale
    if (!isKept && !(await stored.replace(revision, rebuilt.ports))) return false
    leaks = rebuilt.leaks
    for (const port of rebuilt.cleaned) log.warn('Released a node port that no service uses', { nodePort: port })
    for (const finding of rebuilt.findings) report(finding, signal)
    return true
  }

  function report({ service, reason, note }: Finding, signal: AbortSignal): void {
    const { namespace, name } = service.metadata
    log.warn('A node port of a service is not right', { service: { kind: 'Service', namespace, name }, reason, note })
    const source = { reportingController, reportingInstance: `${reportingController}-${deps.hostName}` }
    recorder ??= createEventSeriesRecorder({ ...deps, client: createClient(deps.transport) }, source, signal)
    const regarding = { apiVersion: 'v1', kind: 'Service', metadata: service.metadata } as Frozen<Service>
    recorder.event({ regarding, type: 'Warning', reason, action: 'PortAllocation', note })
  }

  return {
    start: repair,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(intervalMs, signal).catch(() => undefined)
        if (signal.aborted) break
        await repair(signal).catch((error) => {
          if (!signal.aborted) log.error(error, 'Repairing the allocated node ports failed; trying again later', { range: formatPortRange(stored.range) })
        })
      }
      await recorder?.flush()
    },
  }
}
