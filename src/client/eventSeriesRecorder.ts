/**
 * Writes events of events.k8s.io (L2): the first of its like whole, the second as the beginning of a series, and from then on only its count,
 * now and then and at the end. Upstream: client-go/tools/events event_broadcaster.go, event_recorder.go (v1.36).
 */
import type { ObjectReference } from '#api/gen/types/core.v1'
import type { Event } from '#api/gen/types/events.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Timer } from '#base/clock'
import { formatMicroTime, parseTime } from '#base/time'
import { eventsV1 } from './builtIn.ts'
import { type EventRecorderDeps, type EventType, eventName, referenceOf } from './eventRecorder.ts'
import { createLanes } from './lanes.ts'

export interface SeriesEvent {
  readonly regarding: Frozen<KubeObject> | Frozen<ObjectReference>
  readonly related?: Frozen<KubeObject> | Frozen<ObjectReference> | undefined
  readonly type: EventType
  readonly reason: string
  /** The action that was taken or that failed. */
  readonly action: string
  readonly note: string
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export interface EventSeriesRecorder {
  /** Never throws and never waits. */
  event(event: SeriesEvent): void
  /** Resolves when everything that was to be written so far has been, or was given up. */
  flush(): Promise<void>
}

const maxTries = 12
const retryMs = 10_000
const retryJitter = 0.25
const maxQueued = 1000
/** Writes under way at once. */
const workers = 32
/** A series ends when no event was recorded for this long. */
const finishMs = 6 * 60_000
/** A series that continues is written this often, so that it does not expire. */
const refreshMs = 30 * 60_000

export function createEventSeriesRecorder(
  deps: EventRecorderDeps,
  source: { readonly reportingController: string; readonly reportingInstance: string },
  signal?: AbortSignal,
): EventSeriesRecorder {
  const { clock, random, log } = deps
  const client = deps.client.of(eventsV1)
  const lanes = createLanes(workers)
  const known = new Map<string, Event>()
  const timers = new Map<number, Timer>()
  const cancelTimers = () => {
    for (const timer of timers.values()) timer.cancel()
  }
  signal?.addEventListener('abort', cancelTimers, { once: true })

  /** Runs `act` every so often, as long as something is known. */
  function every(ms: number, act: () => void): void {
    if (timers.has(ms) || known.size === 0 || signal?.aborted) return
    const again = () => {
      timers.delete(ms)
      act()
      every(ms, act)
    }
    timers.set(ms, clock.timer(ms, again))
  }

  /** One try; true when another makes sense. */
  async function send(event: Event): Promise<boolean> {
    const { namespace, name = '' } = event.metadata
    try {
      if (event.series) {
        try {
          await client.patch({ namespace, name }, 'strategic', { series: event.series }, { signal })
          return false
        } catch (error) {
          // The event has expired meanwhile: create a new one.
          if (!isStatus(error, 'NotFound')) throw error
        }
      }
      await client.create(event, { signal })
      return false
    } catch (error) {
      if (signal?.aborted) return false
      if (!isStatus(error)) return true
      // The one that this one continues is just being written.
      if (error.reason === 'AlreadyExists') return event.series !== undefined
      if (!error.hasCause('NamespaceTerminating')) log.warn('Dropped an event that could not be written', { reason: event.reason, error: error.message })
      return false
    }
  }

  function write(key: string, event: Event): void {
    if (lanes.size >= maxQueued || signal?.aborted) return
    lanes.add(key, async () => {
      for (let tries = 1; await send(event); tries++) {
        if (tries >= maxTries) return log.warn('Gave up writing an event', { reason: event.reason })
        await clock.sleep(retryMs * (1 + retryJitter * random.next()), signal).catch(() => {})
      }
    })
  }

  function refresh(): void {
    for (const [key, event] of known) if (event.series) write(key, event)
  }

  function finish(): void {
    for (const [key, event] of known) {
      const lastMs = parseTime(event.series?.lastObservedTime ?? event.eventTime) ?? 0
      if (clock.now() - lastMs <= finishMs) continue
      known.delete(key)
      if (event.series) write(key, event)
    }
  }

  return {
    event: (reported) => {
      if (signal?.aborted) return
      const made = makeEvent(deps, source, reported)
      const key = [made.type, made.action, made.reason, referenceText(made.regarding), referenceText(made.related)].join('\n')
      const before = known.get(key)
      const event = before ? { ...before, series: { count: (before.series?.count ?? 1) + 1, lastObservedTime: made.eventTime } } : made
      known.set(key, event)
      if (!before?.series) write(key, event)
      every(finishMs, finish)
      every(refreshMs, refresh)
    },
    flush: () => lanes.idle(),
  }
}

/** The source is the same for all of a recorder. */
function referenceText(reference: ObjectReference | undefined): string {
  if (!reference) return ''
  const { apiVersion, kind, namespace, name, uid, resourceVersion, fieldPath } = reference
  return [apiVersion, kind, namespace, name, uid, resourceVersion, fieldPath].join()
}

function makeEvent(deps: EventRecorderDeps, source: { readonly reportingController: string; readonly reportingInstance: string }, event: SeriesEvent): Event {
  const regarding = referenceOf(event.regarding)
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: {
      name: eventName(deps, regarding),
      namespace: regarding.namespace || 'default',
      ...(event.annotations ? { annotations: { ...event.annotations } } : {}),
    },
    eventTime: formatMicroTime(deps.clock.now()),
    ...source,
    action: event.action,
    reason: event.reason,
    regarding,
    ...(event.related ? { related: referenceOf(event.related) } : {}),
    note: event.note,
    type: event.type,
  }
}

/**
 * The recorders of a component that reports under several names, such as a scheduler with profiles: made when asked for, one for each name. Like upstream's,
 * an instance is its name and its host's.
 */
export function eventSeriesRecorders(deps: EventRecorderDeps, hostName: string, signal?: AbortSignal): (reportingController: string) => EventSeriesRecorder {
  const recorders = new Map<string, EventSeriesRecorder>()
  return (reportingController) => {
    let recorder = recorders.get(reportingController)
    if (!recorder) {
      recorder = createEventSeriesRecorder(deps, { reportingController, reportingInstance: `${reportingController}-${hostName}` }, signal)
      recorders.set(reportingController, recorder)
    }
    return recorder
  }
}
