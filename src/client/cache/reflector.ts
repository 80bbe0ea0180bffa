/**
 * Keeps a target in step with one resource of the API (L2): the whole state first, then each change in order, until the signal aborts.
 * Streams the first state where the server can (sendInitialEvents), else lists; resumes watches from the last resourceVersion; starts over
 * when that has been compacted. Upstream: client-go/tools/cache/reflector.go (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { createBackoff, reflectorBackoff } from '../backoff.ts'
import type { ResourceClient } from '../client.ts'
import type { WatchEvent } from '../transport.ts'

export interface ReflectorDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: Metrics | undefined
  /** A watch ends by itself after this long, at most twice as long. Default 300, as upstream; more where connections cannot die silently. */
  readonly minWatchSeconds?: number | undefined
}

export interface ReflectorOptions {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

/** The store that a reflector fills. Calls follow the order of the API's history and must not throw. */
export interface ReflectorTarget<T extends KubeObject> {
  /** The whole state, at the start and after a gap. */
  replace(items: readonly Frozen<T>[], resourceVersion: string): void
  /** Changes that were ready together; none when the server only tells how far it is (a bookmark). */
  apply(events: readonly WatchEvent<Frozen<T>>[], resourceVersion: string): void
}

/** The annotation of the bookmark that ends the streamed first state. */
export const initialEventsEnd = 'k8s.io/initial-events-end'

const defaultMinWatchSeconds = 300
/** How long after its own time-out a watch may stay open before we stop believing in it. */
const overdueMs = 30_000
const pageSize = 500

interface Run<T extends KubeObject> {
  readonly client: ResourceClient<T>
  readonly deps: ReflectorDeps
  readonly options: ReflectorOptions
  readonly target: ReflectorTarget<T>
  readonly signal: AbortSignal
  /** Where the target stands; '' before the first state. */
  resourceVersion: string
  /** The server no longer has our resourceVersion: an older view than ours must not come back, so ask for the latest. */
  expired: boolean
  streaming: boolean
  /** The target has a whole state to resume from. */
  complete: boolean
  /** The text of the failure that was logged last; '' after a whole state has arrived. */
  failure: string
}

/** Runs until the signal aborts; resolves then. Failures are logged and tried again, 0.8 s to 30 s apart. */
export async function runReflector<T extends KubeObject>(
  client: ResourceClient<T>,
  target: ReflectorTarget<T>,
  deps: ReflectorDeps,
  options: ReflectorOptions,
  signal: AbortSignal,
): Promise<void> {
  const run: Run<T> = { client, deps, options, target, signal, resourceVersion: '', expired: false, streaming: true, complete: false, failure: '' }
  const nextWaitMs = createBackoff(deps.clock, deps.random, reflectorBackoff)
  while (!signal.aborted) {
    try {
      await listAndWatch(run, nextWaitMs)
    } catch (error) {
      if (signal.aborted) return
      note(run, error)
    }
    if (signal.aborted) return
    await deps.clock.sleep(nextWaitMs(), signal).catch(() => {})
  }
}

/** Logs a failure and keeps whether the next list must be a new one. */
function note<T extends KubeObject>(run: Run<T>, error: unknown): void {
  const { deps, client } = run
  if (isGone(error)) {
    run.expired = true
    deps.log.v(4).info('Watch expired, starting over', { resource: client.resource.resource })
    return
  }
  const text = messageOf(error)
  const fields = { resource: client.resource.resource, error: text }
  // The same failure is tried again for as long as it lasts: one line tells all.
  if (text === run.failure) deps.log.v(4).info('Failed to list or watch again', fields)
  // A custom resource's definition may be deleted at any time.
  else if (isStatus(error, 'NotFound') && run.resourceVersion !== '') deps.log.v(2).info('The resource is no longer served', fields)
  else deps.log.warn('Failed to list or watch', fields)
  run.failure = text
}

const isGone = (error: unknown) => isStatus(error) && (error.reason === 'Expired' || error.reason === 'Gone' || error.code === 410)
/** Failures of the moment: the state we have is still good to resume from. */
const isMomentary = (error: unknown) =>
  !isStatus(error) || error.reason === 'TooManyRequests' || error.reason === 'InternalError' || error.code === 503 || error.code === 504

async function listAndWatch<T extends KubeObject>(run: Run<T>, nextWaitMs: () => number): Promise<void> {
  run.complete = false
  if (!run.streaming) await list(run)
  while (!run.signal.aborted) {
    const startedMs = run.deps.clock.monotonicMs()
    let seen = 0
    try {
      seen = run.complete ? await watch(run) : await watchFromState(run)
    } catch (error) {
      if (run.signal.aborted || !run.complete || !isMomentary(error)) throw error
      note(run, error)
    }
    // A watch that ends at once would spin: wait as after a failure.
    if (seen === 0 && run.deps.clock.monotonicMs() - startedMs < 1000) await run.deps.clock.sleep(nextWaitMs(), run.signal)
  }
}

/** From "0" a first list may be stale, which is fine; after a gap it must be at least what we have, after Expired the latest. */
function startVersion<T extends KubeObject>(run: Run<T>, first: string): string {
  return run.expired ? '' : run.resourceVersion || first
}

async function list<T extends KubeObject>(run: Run<T>): Promise<void> {
  const { client, options, signal } = run
  const resourceVersion = startVersion(run, '0')
  const items: Frozen<T>[] = []
  // A list at a resourceVersion is served from the cache, whole; the latest one is read in pages.
  let page = await client.list({ ...options, signal, ...(resourceVersion === '' ? { limit: pageSize } : { resourceVersion }) })
  for (;;) {
    for (const item of page.items) items.push(item as Frozen<T>)
    const next = page.metadata.continue
    if (!next) break
    page = await client.list({ ...options, signal, limit: pageSize, continue: next })
  }
  arrived(run, items, page.metadata.resourceVersion ?? '')
}

function arrived<T extends KubeObject>(run: Run<T>, items: readonly Frozen<T>[], resourceVersion: string): void {
  run.resourceVersion = resourceVersion
  run.expired = false
  run.complete = true
  run.failure = ''
  run.target.replace(items, resourceVersion)
}

/** Takes the first state as a stream of ADDED events up to a bookmark, and then watches on the same stream. */
async function watchFromState<T extends KubeObject>(run: Run<T>): Promise<number> {
  try {
    return await watch(run, startVersion(run, ''))
  } catch (error) {
    if (run.complete || (!isStatus(error, 'Invalid') && !isStatus(error, 'BadRequest'))) throw error
    // The server refuses streamed lists: use LIST requests from now on.
    run.streaming = false
    await list(run)
    return 1
  }
}

/** One watch until the server ends it; returns how many events came. */
async function watch<T extends KubeObject>(run: Run<T>, initialFrom?: string): Promise<number> {
  const { client, deps, options } = run
  const { minWatchSeconds = defaultMinWatchSeconds } = deps
  const timeoutSeconds = minWatchSeconds + deps.random.int(minWatchSeconds)
  const reason = () => new Error('the watch outlived its time-out')
  using limit = deadlineScope({ clock: deps.clock, ms: timeoutSeconds * 1000 + overdueMs, reason }, run.signal)
  const { signal } = limit
  const initial = initialFrom === undefined ? undefined : new Map<string, Frozen<T>>()
  const how = initial
    ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' as const, resourceVersion: initialFrom }
    : { resourceVersion: run.resourceVersion }
  let seen = 0
  let collecting = initial
  for await (const batch of client.watch({ ...options, ...how, allowWatchBookmarks: true, timeoutSeconds, signal })) {
    seen += batch.length
    let events = batch
    if (collecting) {
      const end = collect(collecting, batch)
      if (end < 0) continue
      arrived(run, [...collecting.values()], batch[end]?.object.metadata.resourceVersion ?? '')
      collecting = undefined
      events = batch.slice(end + 1)
    }
    const passing = events.length > eventsPerLook ? passOnInTurns(run, events) : passOn(run, events)
    if (passing) await passing
  }
  if (collecting && !run.signal.aborted) throw new Error('the watch ended before its first state was complete')
  return seen
}

/** Gathers a streamed first state; returns the index of the event that ends it, or -1. */
function collect<T extends KubeObject>(into: Map<string, Frozen<T>>, batch: readonly WatchEvent<Frozen<T>>[]): number {
  for (let i = 0; i < batch.length; i++) {
    const event = batch[i] as WatchEvent<Frozen<T>>
    const { metadata } = event.object
    const key = `${metadata.namespace ?? ''}/${metadata.name}`
    if (event.type === 'BOOKMARK') {
      if (metadata.annotations?.[initialEventsEnd] === 'true') return i
    } else if (event.type === 'DELETED') into.delete(key)
    else into.set(key, event.object)
  }
  return -1
}

/** Events that are passed on before the time is looked at, and for how long before others get their turn. */
const eventsPerLook = 16
const longestTurnMs = 20

/** Handlers may take long for an event, such as a pod's for which thousands of refused pods wait. */
async function passOnInTurns<T extends KubeObject>(run: Run<T>, events: readonly WatchEvent<Frozen<T>>[]): Promise<void> {
  const { clock } = run.deps
  let startedMs = clock.monotonicMs()
  for (let from = 0; from < events.length && !run.signal.aborted; from += eventsPerLook) {
    passOn(run, events.slice(from, from + eventsPerLook))
    if (clock.monotonicMs() - startedMs < longestTurnMs) continue
    await clock.turn()
    startedMs = clock.monotonicMs()
  }
}

function passOn<T extends KubeObject>(run: Run<T>, batch: readonly WatchEvent<Frozen<T>>[]): void {
  const last = batch[batch.length - 1]
  if (!last) return
  run.resourceVersion = last.object.metadata.resourceVersion ?? run.resourceVersion
  const events = batch.some((event) => event.type === 'BOOKMARK') ? batch.filter((event) => event.type !== 'BOOKMARK') : batch
  run.target.apply(events, run.resourceVersion)
}
