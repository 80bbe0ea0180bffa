/** Reads the newest lines of containers' logs for a bundle (L4): those of containers that restarted or are not ready first, up to a number, a size and a time. */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { pods } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { listPages } from '#client/listAll'
import type { Transport } from '#client/transport'
import { logPart, type MissingPart } from './format.ts'

const mostLogs = 500
const mostLines = 2_000
const mostLogBytes = 256 * 1024
const mostMs = 15_000
const atOnce = 8

export interface LogSource {
  readonly transport: Transport
  readonly clock: Clock
}

interface WantedLog {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly isPrevious: boolean
  /** Lower is read first. */
  readonly rank: number
}

/** @param keep is called for each log, one at a time, with a timestamp before each line. @returns what was not read */
export async function collectLogs(source: LogSource, keep: (part: string, text: string) => Promise<void>): Promise<readonly MissingPart[]> {
  const found = await wantedLogs(source.transport).catch((error: unknown) => {
    if (!isStatus(error)) throw error
    return error.message
  })
  if (typeof found === 'string') return [{ what: 'logs of containers', reason: found }]
  const wanted = found.toSorted((one, other) => one.rank - other.rank)
  const missing: MissingPart[] =
    wanted.length > mostLogs ? [{ what: `logs of ${wanted.length - mostLogs} containers`, reason: `at most ${mostLogs} logs are taken` }] : []
  const deadlineMs = source.clock.monotonicMs() + mostMs
  const waiting = wanted.slice(0, mostLogs)
  let kept: Promise<void> = Promise.resolve()
  const work = async () => {
    for (let log = waiting.shift(); log; log = waiting.shift()) {
      if (source.clock.monotonicMs() > deadlineMs)
        return missing.push({ what: `logs of ${waiting.length + 1} containers`, reason: 'reading them took too long' })
      const text = await read(source.transport, log)
      const part = logPart(log.namespace, log.pod, log.container, log.isPrevious)
      if (typeof text !== 'string') missing.push({ what: part, reason: text.reason })
      else if (text !== '') kept = kept.then(() => keep(part, text))
    }
    return undefined
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  await kept
  return missing
}

async function wantedLogs(transport: Transport): Promise<readonly WantedLog[]> {
  const wanted: WantedLog[] = []
  for await (const { items } of listPages(createClient(transport).of(pods))) for (const pod of items) wanted.push(...logsOf(pod))
  return wanted
}

/** A container that has not started has no log. */
function logsOf({ metadata, spec, status }: Frozen<Pod>): readonly WantedLog[] {
  if (!spec?.nodeName) return []
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? []), ...(status?.ephemeralContainerStatuses ?? [])]
  return statuses.flatMap(({ name, ready, restartCount, state, lastState }) => {
    const own = { namespace: metadata.namespace ?? '', pod: metadata.name ?? '', container: name }
    const isEnded = state?.terminated?.exitCode === 0
    const rank = restartCount > 0 ? 0 : ready || isEnded ? 2 : 1
    return [
      ...(state?.running || state?.terminated ? [{ ...own, isPrevious: false, rank }] : []),
      ...(lastState?.terminated ? [{ ...own, isPrevious: true, rank }] : []),
    ]
  })
}

async function read(transport: Transport, { namespace, pod, container, isPrevious }: WantedLog): Promise<string | { readonly reason: string }> {
  const query = { container, timestamps: 'true', tailLines: String(mostLines), limitBytes: String(mostLogBytes), ...(isPrevious ? { previous: 'true' } : {}) }
  try {
    const { body } = await transport.request({ method: 'GET', path: `/api/v1/namespaces/${namespace}/pods/${pod}/log`, query })
    return typeof body === 'string' ? body : ''
  } catch (error) {
    if (!isStatus(error)) throw error
    return { reason: error.message }
  }
}
