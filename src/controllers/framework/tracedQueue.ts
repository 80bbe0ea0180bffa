/**
 * Continues traces in a controller (L3): a key that a handler queues because of a traced change is reconciled as a span of that trace. Without a tracer
 * nothing here runs. Upstream's controllers make no spans.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { SpanContext, Tracer } from '#base/traceContext'
import type { EventHandler } from '#client/cache/sharedInformer'
import type { WorkQueue } from '#client/workqueue/workQueue'

const service = 'kube-controller-manager'

export interface TracedQueue {
  /** The handler, which does its work within the trace of the object. */
  handler<T extends KubeObject>(handler: EventHandler<T>): EventHandler<T>
  reconcile<T>(key: string, work: () => Promise<T>): Promise<T>
}

/** Replaces `add` of the queue. */
export function tracedQueue(tracer: Tracer, controller: string, queue: WorkQueue<string>): TracedQueue {
  /** Of keys that wait. */
  const causes = new Map<string, SpanContext>()
  const add = queue.add.bind(queue)
  queue.add = (key, priority) => {
    const cause = tracer.current()
    if (cause) causes.set(key, cause)
    add(key, priority)
  }
  return {
    handler<T extends KubeObject>(handler: EventHandler<T>): EventHandler<T> {
      const { onAdd, onUpdate } = handler
      const inTrace = (object: Frozen<T>, work: () => void) => tracer.within(tracer.followedTraceOf(object), work)
      return {
        ...handler,
        ...(onAdd ? { onAdd: (object, isInInitialList) => inTrace(object, () => onAdd(object, isInInitialList)) } : {}),
        ...(onUpdate ? { onUpdate: (before, object) => inTrace(object, () => onUpdate(before, object)) } : {}),
      }
    },
    reconcile(key, work) {
      const parent = causes.get(key)
      causes.delete(key)
      return parent ? tracer.span({ name: `reconcile ${controller}`, service, parent, attributes: { key } }, work) : work()
    },
  }
}
