/**
 * A controller said in one object (L3): what it is about, what it owns and watches, and how it brings one object a step nearer to its wish.
 * Mapping events to objects, waiting, retrying, finalizers and status writes are done here. Published as skiff-kubernetes/controller.
 * Upstream: controller-runtime's builder, controllerutil and predicate packages.
 */
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, type KubeObject, keyOf, type ObjectRef, parseGroupVersion, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Lister } from '#client/cache/lister'
import type { EventHandler, SharedInformer } from '#client/cache/sharedInformer'
import type { Client, Resource } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import type { ControllerContext } from './controller.ts'
import { type HotLoop, HotLoops } from './hotLoop.ts'
import { createReconciler, type Result } from './reconciler.ts'
import { RunawayKeys, runawayLimit } from './runawayKeys.ts'
import { WriteGuard } from './writeGuard.ts'

/** Which changes matter. Absent: all of that sort. */
export interface Predicate<T extends KubeObject> {
  readonly create?: (object: Frozen<T>) => boolean
  readonly update?: (old: Frozen<T>, object: Frozen<T>) => boolean
  readonly delete?: (object: Frozen<T>) => boolean
}

/** Updates of the wish only: the server counts it up when the spec changes. Deletion counts it up too. */
export const generationChanged: Predicate<KubeObject> = { update: (old, object) => old.metadata.generation !== object.metadata.generation }

/** A resource that is neither the controller's own nor owned, with the objects that a change of it affects. Made by {@link watching}. */
export interface Watch {
  readonly resource: Resource<KubeObject>
  readonly map: (object: Frozen<KubeObject>) => readonly ObjectRef[]
}

/** `map` names the objects to look at again when one of `resource` changes. */
export function watching<W extends KubeObject>(resource: Resource<W>, map: (object: Frozen<W>) => readonly ObjectRef[]): Watch {
  return { resource, map: (object) => map(object as unknown as Frozen<W>) }
}

export interface ReconcileRequest<T extends KubeObject> {
  readonly ref: ObjectRef
  /** From the cache: read-only, and perhaps a moment old. */
  readonly object: Frozen<T>
  /** Writes are refused once another leads. What it writes is the object's own: the next reconcile waits until the caches have it. */
  readonly client: Client
  readonly log: Logger
  /** Aborts when the work must end now, not when it merely should: a stop gives it time. */
  readonly signal: AbortSignal
  /** The cache of a resource that the controller is about, owns or watches. @throws Error for another */
  cache<C extends KubeObject>(resource: Resource<C>): Lister<C>
  event: EventRecorder['event']
  /** Merges into the object's status, unless it is unchanged. */
  patchStatus(status: object): Promise<void>
}

/** The result of an async function without a return value. */
type NoValue = Awaited<Promise<void>>

export interface ControllerDefinition<T extends KubeObject> {
  readonly name: string
  /** Each object of it is reconciled when it changes, and when what it owns does. */
  readonly for: Resource<T>
  readonly predicates?: readonly Predicate<T>[] | undefined
  /** Resources whose objects have one of ours as their controller. */
  readonly owns?: readonly Resource<KubeObject>[] | undefined
  readonly watches?: readonly Watch[] | undefined
  /** Objects reconciled side by side; one is never reconciled twice at once. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * Whether an object's next reconcile waits (10 s at most) until the caches hold what its last one wrote through `client`, so that it never works on a
   * view from before its own writes. Deletions are not waited for. Default true.
   */
  readonly readYourWrites?: boolean | undefined
  /** Whether a status that the controller itself has written asks for another reconcile. Others' status writes always do. Default false. */
  readonly reconcileOwnStatus?: boolean | undefined
  /** Makes the world as the object wishes. Throwing means: again, after a wait that grows. Must do nothing when there is nothing to do. */
  reconcile(request: ReconcileRequest<T>): Promise<Result | undefined | NoValue>
  /** Cleans up what the object leaves outside of the cluster, before it goes: kept from going by a finalizer of this name until it succeeds. */
  readonly finalizer?: { readonly name: string; finalize(request: ReconcileRequest<T>): Promise<void> } | undefined
}

/** What {@link defineController} makes: the same for every type of object. */
export interface DefinedController {
  readonly name: string
  /** `hardStop` aborts when work under way must end. */
  create(context: ControllerContext, hardStop: AbortSignal): RunningController
}

export interface RunningController extends Component {
  /** Keys of the objects that are being reconciled now. */
  underWay(): readonly string[]
}

const runawayPauseMs = 1_000

export function defineController<T extends KubeObject>(definition: ControllerDefinition<T>): DefinedController {
  return { name: definition.name, create: (context, hardStop) => create(definition, context, hardStop) }
}

function create<T extends KubeObject>(definition: ControllerDefinition<T>, context: ControllerContext, hardStop: AbortSignal): RunningController {
  const { name, for: resource, owns = [], watches = [], predicates = [], concurrency = 1 } = definition
  const log = context.log.with(name)
  const recorder = context.events(name)
  const known = new Map([resource, ...owns, ...watches.map((watch) => watch.resource)].map((one) => [nameOf(one), context.informers.of(one)]))
  const informer = context.informers.of(resource)

  const reconciler = createReconciler(context, {
    name,
    workers: concurrency,
    async reconcile(key, stop) {
      if (definition.readYourWrites ?? true) await guard.caughtUp(key, hardStop)
      const object = informer.store.get(key)
      if (!object) {
        guard.forget(key)
        loops.forget(key)
        runaways.forget(key)
        return undefined
      }
      const wrote = guard.takeWrote(key)
      const loop = loops.began(key, object, wrote, context.clock.now())
      if (loop) warnOf(loop, key, object)
      if (runaways.count(key, wrote, context.clock.monotonicMs()) >= runawayLimit) await stopRunaway(key, stop)
      return step(definition, makeRequest(object))
    },
  })
  const guard: WriteGuard = new WriteGuard({
    client: context.client,
    clock: context.clock,
    primary: resource as unknown as Resource<KubeObject>,
    informerOf: (one) => known.get(nameOf(one)) as unknown as SharedInformer<KubeObject> | undefined,
    requeue: (key) => reconciler.queue.add(key),
  })
  const loops = new HotLoops()
  const runaways = new RunawayKeys()
  const hotLoops = context.metrics.counter({
    name: 'controller_hot_loops_total',
    help: 'Objects that were reconciled again and again because reconciling them writes.',
    labels: ['controller'],
  })

  function warnOf({ times, seconds, fields }: HotLoop, key: string, object: Frozen<T>): void {
    const what = fields.length > 0 ? `changing ${fields.join(', ')}` : 'by changes of what it owns or watches'
    hotLoops.inc({ controller: name })
    log.warn('Reconciled again and again because of its own writes', { key, times, seconds, fields })
    recorder.event(object, 'Warning', 'HotLoop', `Reconciled ${times} times in ${seconds} s, ${what}: write only what differs`)
  }

  /** Reports it, and waits for time to pass so that nothing more happens at this instant. */
  async function stopRunaway(key: string, stop: AbortSignal): Promise<void> {
    const { clock } = context
    if (!clock.runaway) return
    runaways.forget(key)
    clock.runaway(
      new Error(
        `controller ${name} reconciled ${resource.kind} ${key} ${runawayLimit} times without time passing, because every reconcile writes: write only what differs`,
      ),
    )
    await clock.sleep(runawayPauseMs, stop)
  }

  function makeRequest(object: Frozen<T>): ReconcileRequest<T> {
    const ref = refOfKey(keyOf(object))
    const client = guard.clientFor(keyOf(object))
    return {
      ref,
      object,
      client,
      log,
      signal: hardStop,
      cache: <C extends KubeObject>(one: Resource<C>) => {
        const there = known.get(nameOf(one))
        if (!there) throw new Error(`${name} neither is about, owns nor watches ${nameOf(one)}`)
        return there.lister as unknown as Lister<C>
      },
      event: (...about) => recorder.event(...about),
      async patchStatus(status) {
        const before = (object as { status?: Record<string, unknown> }).status ?? {}
        if (Object.entries(status).every(([field, value]) => semanticEqual(before[field], value))) return
        await client.of(resource).patch(ref, 'merge', { status }, { subresource: 'status', signal: hardStop })
      },
    }
  }

  const add = (ref: ObjectRef) => reconciler.queue.add(keyOf({ metadata: ref }))
  const isOwn = (old: Frozen<KubeObject>, object: Frozen<KubeObject>) => !definition.reconcileOwnStatus && guard.isOwnStatus(old, object)
  reconciler.watch(informer, filtered(predicates, isOwn, add))
  for (const owned of owns)
    reconciler.watch(
      context.informers.of(owned),
      each((object) => ownersOf(resource, object).forEach(add)),
    )
  for (const { resource: watched, map } of watches)
    reconciler.watch(
      context.informers.of(watched),
      each((object) => map(object).forEach(add)),
    )
  return reconciler
}

/** A reconcile function without a return value asks for no further run. */
async function resultOf(reconciled: ReturnType<ControllerDefinition<KubeObject>['reconcile']>): Promise<Result | undefined> {
  return (await reconciled) ?? undefined
}

/** One reconcile, with the finalizer's part around it. */
async function step<T extends KubeObject>(definition: ControllerDefinition<T>, request: ReconcileRequest<T>): Promise<Result | undefined> {
  const { finalizer } = definition
  if (!finalizer) return resultOf(definition.reconcile(request))
  const { metadata } = request.object
  const there = metadata.finalizers?.includes(finalizer.name) ?? false
  if (metadata.deletionTimestamp) {
    if (!there) return undefined
    await finalizer.finalize(request)
    const rest = metadata.finalizers?.filter((name) => name !== finalizer.name) ?? []
    await writeFinalizers(definition.for, request, rest).catch((error: unknown) => {
      if (!isStatus(error, 'NotFound')) throw error
    })
    return undefined
  }
  if (there) return resultOf(definition.reconcile(request))
  // The change arrives as an event, which queues the reconcile.
  await writeFinalizers(definition.for, request, [...(metadata.finalizers ?? []), finalizer.name])
  return undefined
}

/** A stale object fails with Conflict, so that a finalizer of another controller is not lost. */
async function writeFinalizers<T extends KubeObject>(resource: Resource<T>, request: ReconcileRequest<T>, finalizers: readonly string[]): Promise<void> {
  const { resourceVersion, uid } = request.object.metadata
  await request.client.of(resource).patch(request.ref, 'merge', { metadata: { resourceVersion, uid, finalizers } }, { signal: request.signal })
}

const nameOf = ({ group, version, resource }: Resource<KubeObject>) => `${resource}.${version}.${group}`

/** The object that controls this one, if it is of our resource. */
function ownersOf(resource: Resource<KubeObject>, object: Frozen<KubeObject>): readonly ObjectRef[] {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller)
  if (!owner || owner.kind !== resource.kind || parseGroupVersion(owner.apiVersion).group !== resource.group) return []
  return [resource.namespaced ? { namespace: object.metadata.namespace, name: owner.name } : { name: owner.name }]
}

function each(act: (object: Frozen<KubeObject>) => void): EventHandler<KubeObject> {
  return {
    onAdd: act,
    onUpdate: (old, object) => {
      // What changed hands concerns both.
      if (old !== object) act(old)
      act(object)
    },
    onDelete: act,
  }
}

function filtered<T extends KubeObject>(
  predicates: readonly Predicate<T>[],
  isOwn: (old: Frozen<T>, object: Frozen<T>) => boolean,
  add: (ref: ObjectRef) => void,
): EventHandler<T> {
  const take = ({ metadata }: Frozen<KubeObject>) => add({ namespace: metadata.namespace, name: metadata.name ?? '' })
  return {
    onAdd: (object) => {
      if (predicates.every((predicate) => predicate.create?.(object) ?? true)) take(object)
    },
    onUpdate: (old, object) => {
      // A resync asks for everything to be looked at again.
      if (old === object) take(object)
      else if (predicates.every((predicate) => predicate.update?.(old, object) ?? true) && !isOwn(old, object)) take(object)
    },
    onDelete: (object) => {
      if (predicates.every((predicate) => predicate.delete?.(object) ?? true)) take(object)
    },
  }
}

/** The reference by which `child` is owned and controlled: it goes when the owner goes, and its changes are the owner's matter. */
export function controllerReference(owner: Frozen<KubeObject>): NonNullable<KubeObject['metadata']['ownerReferences']>[number] {
  const { name = '', uid = '' } = owner.metadata
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid, controller: true, blockOwnerDeletion: true }
}
