/** `skiff bundle` over stores and API servers of this process (L5). */
import { Readable } from 'node:stream'
import type { TraceList } from '#api/debug/traces'
import { StatusError } from '#api/machinery/status'
import type { SubresourceHandlers } from '#apiserver/endpoints/router'
import { storedTimes } from '#apiserver/registry/history'
import type { RevisionMark } from '#apiserver/registry/revisionTimes'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { type OpenBundle, openBundle } from '#cli/bundle/bundleReader'
import { DamagedBundle, logPart, metricsPart, storePart, timesPart, tracesPart } from '#cli/bundle/format'
import type { Bundles } from '#cli/bundles'
import type { LocalPrograms } from '#cli/command'
import { CommandError } from '#cli/exitCodes'
import { exists } from '#host/files'
import { TraceBook } from '#trace/traceBook'
import { openLocalStore, storeFile } from '../apiserver/openStore.ts'
import { clusterPaths, readState } from '../localCluster/clusterState.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { runsServer } from '../localCluster/runningServers.ts'
import { etcdOf } from '../snapshot/saveSnapshot.ts'
import { createObjectFile } from './objectFile.ts'
import { shownLog } from './shownLog.ts'
import { startStillServer } from './stillServer.ts'
import { storeOfBundle } from './storeOfBundle.ts'

export function createBundles(deps: LocalClusterDeps, local: Pick<LocalPrograms, 'certificate'>): Bundles {
  return {
    objectFile: createObjectFile,
    async serve(file) {
      const bundle = await openBundle(file)
      try {
        const server = await serveBundle(bundle, deps.clock, local)
        return { ...server, index: bundle.index, close: () => server.close().finally(bundle.close) }
      } catch (error) {
        await bundle.close()
        throw error
      }
    },
    serveStopped: (name) => serveStopped(deps, local, name),
  }
}

async function serveBundle(bundle: OpenBundle, real: Clock, local: Pick<LocalPrograms, 'certificate'>) {
  const { index } = bundle
  const clock: Clock = { ...real, now: () => index.takenMs }
  const [database, certificate, times, trace] = await Promise.all([bundle.read(storePart), local.certificate(), timesOf(bundle), traceOf(bundle, clock)])
  const store = await storeOfBundle(database, index, clock)
  const metricsText = bundle.has(metricsPart) ? async () => (await bundle.read(metricsPart)).toString() : undefined
  return startStillServer({ store, clock, certificate, times, trace, metricsText, what: 'a bundle', subresources: logsOf(bundle) })
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

async function serveStopped({ clock, home }: LocalClusterDeps, local: Pick<LocalPrograms, 'certificate'>, name: string) {
  const paths = clusterPaths(home, name)
  const state = await readState(paths)
  if (!state) throw new CommandError('notFound', `there is no cluster "${name}"`)
  if (await runsServer(paths, state))
    throw new CommandError('conflict', `cluster "${name}" is running`, { hint: `leave --offline out, or stop it: skiff stop ${name}` })
  const tools = { clock, log: noLog }
  if (await etcdOf({ paths, state, tools }))
    throw new CommandError('unmetPrerequisite', `cluster "${name}" has its objects in etcd, which only its server reads`, {
      hint: `start it: skiff start ${name}`,
    })
  if (!(await exists(storeFile(paths.store)))) throw new CommandError('notFound', `cluster "${name}" has no store yet: it was never started`)
  const store = await openLocalStore(paths.store, tools)
  try {
    const [certificate, times] = await Promise.all([local.certificate(), storedTimes(store)])
    return await startStillServer({ store, clock, certificate, times, what: 'a stopped cluster' })
  } catch (error) {
    await store.close()
    throw error
  }
}
