/** Serves a bundle, read-only (L5): its objects from a store in memory, its logs, traces and metrics from the file. */
import { Readable } from 'node:stream'
import type { TraceList } from '#api/debug/traces'
import { StatusError } from '#api/machinery/status'
import type { SubresourceHandlers } from '#apiserver/endpoints/router'
import type { RevisionMark } from '#apiserver/registry/revisionTimes'
import type { Clock } from '#base/clock'
import type { OpenBundle } from '#cli/bundle/bundleReader'
import { DamagedBundle, logPart, metricsPart, storePart, timesPart, tracesPart } from '#cli/bundle/format'
import type { StillServer } from '#cli/bundles'
import type { LocalPrograms } from '#cli/command'
import { CommandError } from '#cli/exitCodes'
import { TraceBook } from '#trace/traceBook'
import { shownLog } from './shownLog.ts'
import { storeOfBundle } from './storeOfBundle.ts'

/** The server does not close the bundle. */
export async function serveBundle(bundle: OpenBundle, real: Clock, local: Pick<LocalPrograms, 'certificate'>): Promise<StillServer> {
  const { index } = bundle
  const clock: Clock = { ...real, now: () => index.takenMs }
  // Another thread unpacks the objects while this one reads the code of the server.
  const reading = Promise.all([bundle.read(storePart), local.certificate(), timesOf(bundle), traceOf(bundle, clock)])
  const [[database, certificate, times, trace], { startStillServer }] = await Promise.all([reading, import('./stillServer.ts')])
  const store = await storeOfBundle(database, index, clock)
  const scraped = async () => ({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: await bundle.read(metricsPart) })
  const scrape = bundle.has(metricsPart) ? scraped : undefined
  return startStillServer({ store, clock, certificate, times, trace, scrape, what: 'a bundle', subresources: logsOf(bundle) })
}

async function timesOf(bundle: OpenBundle): Promise<readonly RevisionMark[]> {
  if (!bundle.has(timesPart)) return []
  const marks = await jsonOf(bundle, timesPart)
  const isMark = (one: Partial<RevisionMark> | null) => Number.isSafeInteger(one?.revision) && Number.isSafeInteger(one?.atMs)
  if (!Array.isArray(marks) || !marks.every(isMark)) throw new DamagedBundle('its times are no times')
  return (marks as RevisionMark[]).toSorted((one, other) => one.revision - other.revision)
}

async function traceOf(bundle: OpenBundle, clock: Clock): Promise<TraceBook> {
  const book = new TraceBook(clock)
  if (!bundle.has(tracesPart)) return book
  const { requests, events } = ((await jsonOf(bundle, tracesPart)) ?? {}) as Partial<TraceList>
  const isNamed = (one: unknown, member: string) => typeof (one as Record<string, unknown> | null)?.[member] === 'string'
  if (!Array.isArray(requests) || !Array.isArray(events) || !requests.every((one) => isNamed(one, 'user')) || !events.every((one) => isNamed(one, 'object')))
    throw new DamagedBundle('its traces are no traces')
  book.take({ requests, events })
  return book
}

async function jsonOf(bundle: OpenBundle, part: string): Promise<unknown> {
  try {
    return JSON.parse((await bundle.read(part)).toString())
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new DamagedBundle(`the part ${part} is no JSON`)
  }
}

function logsOf(bundle: OpenBundle): SubresourceHandlers {
  const containersOf = (namespace: string, pod: string) => {
    const prefix = logPart(namespace, pod, '', false).replace(/\.log$/, '')
    return bundle.index.parts.flatMap(({ name }) =>
      name.startsWith(prefix) && !name.endsWith('.previous.log') ? [name.slice(prefix.length, -'.log'.length)] : [],
    )
  }
  return {
    '/pods/log': {
      get: async ({ request: { query }, info: { namespace, name } }) => {
        const container = query.get('container') ?? containersOf(namespace, name)[0] ?? ''
        const part = logPart(namespace, name, container, query.get('previous') === 'true')
        if (!bundle.has(part)) throw new StatusError('NotFound', `the bundle has no log of container "${container}" in pod "${name}"`)
        // The page reads streams over a WebSocket.
        return { type: 'stream', status: 200, headers: { 'content-type': 'text/plain' }, body: Readable.from([shownLog(await bundle.read(part), query)]) }
      },
    },
  }
}
