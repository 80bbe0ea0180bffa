/**
 * Writes Events about objects (L2): in the background, for one object in order and for different objects in parallel on the shared
 * connection, correlated so that a fault that repeats becomes a count and a noisy object cannot flood the store. Upstream: client-go/tools/record (v1.36); core/v1 Events as the upstream components that use it write them.
 */
import type { Event, ObjectReference } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import { formatTime } from '#base/time'
import { events } from './builtIn.ts'
import type { Client } from './client.ts'
import { createEventCorrelator } from './eventCorrelator.ts'
import { createLanes } from './lanes.ts'

export type EventType = 'Normal' | 'Warning'

export interface EventRecorder {
  /** Never throws and never waits. `regarding`: the object, or a reference (with a fieldPath for containers). */
  event(
    regarding: Frozen<KubeObject> | Frozen<ObjectReference>,
    type: EventType,
    reason: string,
    message: string,
    annotations?: Readonly<Record<string, string>>,
  ): void
  /** Resolves when everything recorded so far has been written or given up. */
  flush(): Promise<void>
}

export interface EventRecorderDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const maxQueued = 1000
const maxTries = 12
const retryMs = 10_000
/** Writes under way at once. */
const maxInFlight = 32

/** What an event names as its origin, e.g. deployment-controller, or kubelet on a node. */
export interface EventSource {
  readonly component: string
  readonly host?: string
}

/** Writes the events of many sources over one queue. */
export interface EventWriter {
  /** @param client whose identity writes the events of this source */
  recorder(client: Client, source: EventSource): EventRecorder
}

/** Records the events of one source. */
export function createEventRecorder(deps: EventRecorderDeps, source: EventSource, signal?: AbortSignal): EventRecorder {
  return createEventWriter(deps, maxQueued, signal).recorder(deps.client, source)
}

/** @param mostQueued events beyond it are dropped */
export function createEventWriter(deps: Omit<EventRecorderDeps, 'client'>, mostQueued: number, signal?: AbortSignal): EventWriter {
  const correlate = createEventCorrelator(deps.clock)
  const lanes = createLanes(maxInFlight)

  async function write(by: Client, event: Event): Promise<void> {
    const decision = correlate(event)
    if (!decision) return
    const client = by.of(events)
    const ref = { namespace: decision.event.metadata.namespace, name: decision.event.metadata.name ?? '' }
    for (let tries = 1; ; tries++) {
      try {
        if (decision.patch) {
          try {
            decision.seen(await client.patch(ref, 'strategic', decision.patch, { signal }))
            return
          } catch (error) {
            // The event has expired meanwhile: create a new one.
            if (!isStatus(error, 'NotFound')) throw error
          }
        }
        decision.seen(await client.create(decision.event, { signal }))
        return
      } catch (error) {
        if (signal?.aborted) return
        if (isStatus(error) || tries >= maxTries) {
          const expected = isStatus(error, 'AlreadyExists') || (isStatus(error) && error.hasCause('NamespaceTerminating'))
          if (!expected) deps.log.warn('Dropped an event that could not be written', { reason: event.reason, error: String(error) })
          return
        }
        // Spread out the first retry of many writers that lost the same server.
        await deps.clock.sleep(tries === 1 ? retryMs * deps.random.next() : retryMs, signal).catch(() => {})
      }
    }
  }

  return {
    recorder: (client, source) => ({
      event: (regarding, type, reason, message, annotations) => {
        if (lanes.size >= mostQueued || signal?.aborted) return
        const event = makeEvent(deps, source, referenceOf(regarding), { type, reason, message, annotations })
        const { involvedObject: on } = event
        // Whatever the correlator compares is about one object, so its events are written one after the other.
        lanes.add([on.uid, on.kind, on.namespace, on.name].join('/'), () => write(client, event))
      },
      flush: () => lanes.idle(),
    }),
  }
}

/** A reference to an object, as events carry it. */
export function referenceOf(object: Frozen<KubeObject> | Frozen<ObjectReference>): ObjectReference {
  if (!('metadata' in object)) return { ...object } as ObjectReference
  const { namespace, name, uid, resourceVersion } = object.metadata
  const reference: ObjectReference = { kind: object.kind, apiVersion: object.apiVersion }
  if (namespace) reference.namespace = namespace
  if (name) reference.name = name
  if (uid) reference.uid = uid
  if (resourceVersion) reference.resourceVersion = resourceVersion
  return reference
}

/** Nanoseconds, as upstream; digits beyond the clock's are random, so that names of one instant differ. */
export function eventName({ clock, random }: Pick<EventRecorderDeps, 'clock' | 'random'>, regarding: ObjectReference): string {
  const nanoseconds = BigInt(Math.floor(clock.now())) * 1_000_000n + BigInt(random.int(1_000_000))
  return `${regarding.name ?? 'unknown'}.${nanoseconds.toString(16)}`
}

interface EventText {
  readonly type: EventType
  readonly reason: string
  readonly message: string
  readonly annotations: Readonly<Record<string, string>> | undefined
}

function makeEvent(
  deps: Pick<EventRecorderDeps, 'clock' | 'random'>,
  source: EventSource,
  involvedObject: ObjectReference,
  { type, reason, message, annotations }: EventText,
): Event {
  const now = deps.clock.now()
  const timestamp = formatTime(now)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: eventName(deps, involvedObject),
      namespace: involvedObject.namespace || 'default',
      ...(annotations ? { annotations: { ...annotations } } : {}),
    },
    involvedObject,
    reason,
    message,
    source: { component: source.component, ...(source.host ? { host: source.host } : {}) },
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
    type,
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
  }
}
