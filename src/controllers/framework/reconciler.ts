/**
 * The loop of every controller (L3): informers put keys on a queue, workers reconcile one key at a time, a failed key is tried again after a
 * growing wait, and a key that fails never delays another. Upstream: any controller's Run and processNextWorkItem.
 *
 * Built-in controllers and those of skiff-kubernetes/controller run on it and share its queue, rate limits, workers, metrics and context. defineController adds
 * a layer for the library: mapping of owners, finalizers, status writes, waiting for its own writes. The built-in controllers do not use
 * that layer, because they follow upstream where it differs: expectations instead of waiting for the cache, handlers that compare old and new pods,
 * several queues with upstream's metric names, retry limits, and their own order of status and finalizer writes.
 */
import { objectKey } from '#api/debug/traces'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import type { EventHandler, HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { RateLimiter } from '#client/workqueue/rateLimiter'
import { createWorkQueue, type WorkQueue } from '#client/workqueue/workQueue'
import type { ControllerContext } from './controller.ts'
import { resourceOfQueue } from './tracedKeys.ts'
import { tracedQueue } from './tracedQueue.ts'

export interface Result {
  /** Reconcile again after this time, without an event. */
  readonly requeueAfterMs?: number | undefined
}

export interface ReconcilerOptions {
  /** The controller's name; also the queue's in metrics, unless `queueName` is set. */
  readonly name: string
  readonly queueName?: string | undefined
  readonly workers?: number | undefined
  /** After this many failures the key is given up until something changes. Default: never. */
  readonly maxRetries?: number | undefined
  /** How long a failed key waits. Default: upstream's default for controllers. */
  readonly rateLimiter?: RateLimiter<string> | undefined
  /** Moves the cluster one step towards the object's spec. A thrown error queues the key again, after a wait. */
  reconcile(key: string, signal: AbortSignal): Promise<Result | undefined>
}

export interface Reconciler extends Component {
  readonly queue: WorkQueue<string>
  /** Keys that are being reconciled now. */
  underWay(): readonly string[]
  /** Registers a handler while the reconciler runs; workers wait for the informer's first list. */
  watch<T extends KubeObject>(informer: SharedInformer<T>, handler: EventHandler<T>): void
  /** Work waits for this informer's first state, too. */
  needs<T extends KubeObject>(informer: SharedInformer<T>): void
  /** Runs in parallel with the workers. */
  also(task: (signal: AbortSignal) => Promise<void>): void
}

/** How long a controller's workers may work within one turn of the event loop, and how many keys they may take. */
const sliceMs = 5
const keysPerTurn = 100

export function createReconciler(context: ControllerContext, options: ReconcilerOptions): Reconciler {
  const { clock, metrics, trace } = context
  const tracedResource = trace && resourceOfQueue[options.queueName ?? options.name]
  const log = context.log.with(options.name)
  const queue = createWorkQueue<string>({
    clock,
    metrics,
    name: options.queueName ?? options.name,
    ...(options.rateLimiter ? { rateLimiter: options.rateLimiter } : {}),
  })
  const traced = context.tracer && tracedQueue(context.tracer, options.name, queue)
  const watches: (() => HandlerRegistration)[] = []
  const synced: ((signal: AbortSignal) => Promise<void>)[] = []
  const tasks: ((signal: AbortSignal) => Promise<void>)[] = []
  const workers = context.concurrentSyncs?.[options.name] ?? options.workers ?? 5

  const underWay = new Set<string>()
  let turnBeganMs = clock.monotonicMs()
  let keysInTurn = 0

  /**
   * Keys whose reconciles wait for nothing would follow each other within one turn of the event loop, thousands after a start. They are counted
   * too, because virtual time does not pass meanwhile.
   */
  async function yieldTurn(): Promise<void> {
    keysInTurn++
    if (keysInTurn < keysPerTurn && clock.monotonicMs() - turnBeganMs < sliceMs) return
    keysInTurn = 0
    await clock.turn()
    turnBeganMs = clock.monotonicMs()
  }

  async function work(signal: AbortSignal): Promise<void> {
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      underWay.add(key)
      try {
        const reconcile = () => (tracedResource === undefined ? options.reconcile(key, signal) : tracedReconcile(tracedResource, key, signal))
        const result = await (traced ? traced.reconcile(key, reconcile) : reconcile())
        queue.forget(key)
        if (result?.requeueAfterMs !== undefined) queue.addAfter(key, result.requeueAfterMs)
      } catch (error) {
        if (!signal.aborted) retry(key, error)
      } finally {
        underWay.delete(key)
        queue.done(key)
      }
      if (signal.aborted) return
      await yieldTurn()
    }
  }

  /** Notes the reconcile if a reader follows the object. */
  function tracedReconcile(resource: string, key: string, signal: AbortSignal): Promise<Result | undefined> {
    const slash = key.indexOf('/')
    const [namespace, name] = [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)]
    if (!trace?.follows(resource, namespace, name)) return options.reconcile(key, signal)
    const atMs = trace.now()
    const waitedMs = queue.waitedMs(key)
    const note = (result: string) => {
      const event = { component: options.name, what: 'reconcile', object: objectKey(resource, namespace, name), atMs, durationMs: trace.now() - atMs, result }
      trace.note(waitedMs === undefined ? event : { ...event, waitedMs })
    }
    return options.reconcile(key, signal).then(
      (result) => {
        note(result?.requeueAfterMs === undefined ? 'done' : `done, again in ${result.requeueAfterMs} ms`)
        return result
      },
      (error: unknown) => {
        note(`failed, try ${queue.numRequeues(key) + 1}: ${messageOf(error).slice(0, 256)}`)
        throw error
      },
    )
  }

  function retry(key: string, error: unknown): void {
    if (options.maxRetries !== undefined && queue.numRequeues(key) >= options.maxRetries) {
      log.error(error, 'Giving up until something changes', { key })
      queue.forget(key)
      return
    }
    // A stale cache is normal; the next try reads the newer object.
    if (isStatus(error, 'Conflict') || isStaleCache(error)) log.v(4).info('Trying again', { key, error: (error as Error).message })
    else log.error(error, 'Failed to reconcile, trying again', { key })
    queue.addRateLimited(key)
  }

  return {
    name: options.name,
    queue,
    underWay: () => [...underWay],
    watch: (informer, handler) => {
      watches.push(() => informer.addHandler(traced ? traced.handler(handler) : handler))
      synced.push((signal) => informer.synced(signal))
    },
    needs: (informer) => void synced.push((signal) => informer.synced(signal)),
    also: (task) => void tasks.push(task),
    async run(signal) {
      const registrations = watches.map((register) => register())
      try {
        await Promise.all(synced.map((wait) => wait(signal)))
        // An informer that has synced before ignores an abort, and a listener added after the abort is never called.
        signal.throwIfAborted()
        signal.addEventListener('abort', () => queue.shutDown(), { once: true })
        await Promise.all([...Array.from({ length: workers }, () => work(signal)), ...tasks.map((task) => task(signal))])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        for (const registration of registrations) registration.remove()
        queue.shutDown()
      }
    },
  }
}

/** Thrown by a reconcile that sees its own cache lag behind; tried again without noise. */
export class StaleCacheError extends Error {}
const isStaleCache = (error: unknown) => error instanceof StaleCacheError

/** A handler that queues the object's own key on every change. */
export function enqueueSelf<T extends KubeObject>(queue: WorkQueue<string>, matters: (object: Frozen<T>) => boolean = () => true): EventHandler<T> {
  const add = (object: Frozen<T>) => {
    if (matters(object)) queue.add(keyOf(object))
  }
  return { onAdd: add, onUpdate: (_, object) => add(object), onDelete: add }
}

/** Runs `fn` at once and then every `periodMs` until the signal aborts; failures are logged. */
export async function everyPeriod(context: ControllerContext, name: string, periodMs: number, fn: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await fn()
    } catch (error) {
      if (signal.aborted) return
      context.log.warn('A periodic task failed', { task: name, error: messageOf(error) })
    }
    await context.clock.sleep(periodMs, signal).catch(() => {})
  }
}
