/**
 * Writes the kubelet's Events (L3): one object per distinct happening, its count raised when the same happens again.
 * Never waits and never fails its caller. Upstream: client-go/tools/record (v1.36), whose aggregation by similar messages is left out.
 */
import type { Event, ObjectReference } from '#api/gen/types/core.v1'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import { formatTime } from '#base/time'
import { events } from '#client/builtIn'
import type { Client } from '#client/client'
import type { FrozenPod } from './pods/containers.ts'

export type EventType = 'Normal' | 'Warning'

export interface Recorder {
  event(object: ObjectReference, type: EventType, reason: string, message: string): void
}

/** What an event about a pod, or about one of its containers, refers to. */
export function podReference(pod: FrozenPod, containerName?: string): ObjectReference {
  const path = containerName === undefined ? undefined : containerFieldPath(pod, containerName)
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    namespace: pod.metadata.namespace,
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    resourceVersion: pod.metadata.resourceVersion,
    ...(path === undefined ? {} : { fieldPath: path }),
  }
}

function containerFieldPath(pod: FrozenPod, name: string): string {
  if (pod.spec.initContainers?.some((container) => container.name === name)) return `spec.initContainers{${name}}`
  if (pod.spec.ephemeralContainers?.some((container) => container.name === name)) return `spec.ephemeralContainers{${name}}`
  return `spec.containers{${name}}`
}

interface Known {
  name: string
  namespace: string
  count: number
  lastMs: number
}

const forgetAfterMs = 600_000
const maxKnown = 4096

export function createRecorder(
  deps: { readonly client: Client; readonly clock: Clock; readonly log: Logger; readonly random: Random },
  source: { readonly component: string; readonly host: string },
): Recorder {
  const known = new Map<string, Known>()
  const client = deps.client.of(events)
  let queue = Promise.resolve()
  const write = async (key: string, object: ObjectReference, type: EventType, reason: string, message: string, nowMs: number) => {
    const before = known.get(key)
    if (before && nowMs - before.lastMs < forgetAfterMs) {
      before.count++
      before.lastMs = nowMs
      try {
        await client.patch({ namespace: before.namespace, name: before.name }, 'merge', { count: before.count, lastTimestamp: formatTime(nowMs) })
        return
      } catch (error) {
        if (!isStatus(error, 'NotFound')) throw error
      }
    }
    const namespace = object.namespace ?? 'default'
    const name = `${object.name}.${nowMs.toString(16)}${deps.random.int(0x1000_0000).toString(16).padStart(7, '0')}`
    const time = formatTime(nowMs)
    const event: Event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: object,
      type,
      reason,
      message,
      source,
      count: 1,
      firstTimestamp: time,
      lastTimestamp: time,
      reportingComponent: source.component,
      reportingInstance: source.host,
    }
    known.delete(key)
    known.set(key, { name, namespace, count: 1, lastMs: nowMs })
    const [oldest] = known.keys()
    if (known.size > maxKnown && oldest !== undefined) known.delete(oldest)
    await client.create(event)
  }
  return {
    event: (object, type, reason, message) => {
      const key = JSON.stringify([object.kind, object.namespace, object.name, object.uid, object.fieldPath, type, reason, message])
      const nowMs = deps.clock.now()
      // One after another, so that counts never race.
      queue = queue
        .then(() => write(key, object, type, reason, message, nowMs))
        .catch((error: unknown) => deps.log.v(2).info('Event not recorded', { reason, error: error instanceof Error ? error.message : String(error) }))
    },
  }
}
