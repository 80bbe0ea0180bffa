/**
 * Deletes objects that have lost their owners, by the propagation policy of the owner's deletion: background, foreground, or orphan.
 * (L3) graph.ts has the ownership; each deletion is first checked with a live read, never with the cache alone.
 * Upstream: pkg/controller/garbagecollector/garbagecollector.go (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import type { HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { EventRecorder } from '#client/eventRecorder'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, type Result } from '../framework/reconciler.ts'
import { createActions, type Kind } from './actions.ts'
import { blockingDependents, foregroundFinalizer, type GraphChange, type GraphNode, OwnerGraph, orphanFinalizer } from './graph.ts'
import { createResourceDiscovery, type Discovered, followDiscovery } from './resources.ts'

export const garbageCollector: ControllerDescriptor = {
  name: 'garbage-collector-controller',
  aliases: ['garbagecollector'],
  serviceAccount: 'generic-garbage-collector',
  // Each deletion takes two requests.
  clientRate: { qps: 2 },
  create: createGarbageCollector,
}

const maxSyncWaitMs = 30_000

function createGarbageCollector(context: ControllerContext): Component {
  const graph = new OwnerGraph()
  const events = context.events('garbage-collector-controller')
  const syncErrors = context.metrics.counter({
    name: 'garbagecollector_controller_resources_sync_error_total',
    help: 'How often it could not be learned what is served.',
  })
  const discover = createResourceDiscovery(context.client)
  let discovered: Discovered = { watchable: [], byKind: new Map() }
  const resourceOf = ({ apiVersion, kind }: Kind) => discovered.byKind.get(`${apiVersion} ${kind}`)
  const actions = createActions(context.client, context.clock, resourceOf)
  const { live, classify, dropOwners, dropFinalizer, unblock, remove } = actions
  const watched = new Map<string, { readonly informer: SharedInformer<KubeObject>; readonly registration: HandlerRegistration }>()
  const deletions = createReconciler(context, {
    name: garbageCollector.name,
    queueName: 'garbage_collector_attempt_to_delete',
    workers: 20,
    reconcile: attemptToDelete,
  })
  const orphanings = createReconciler(context, {
    name: garbageCollector.name,
    queueName: 'garbage_collector_attempt_to_orphan',
    workers: 20,
    reconcile: orphaning(graph, actions),
  })

  return {
    name: garbageCollector.name,
    async run(signal) {
      let working: Promise<unknown> | undefined
      const follow = async () => {
        await watchServed(signal).catch((error: unknown) => {
          if (!signal.aborted) syncErrors.inc()
          throw error
        })
        working ??= allSeen(context, discovered, signal).then(() => Promise.all([deletions.run(signal), orphanings.run(signal)]))
      }
      await followDiscovery(context, garbageCollector.name, follow, signal)
      await working
      for (const { registration } of watched.values()) registration.remove()
    },
  }

  /** Watches what is new in discovery, custom resources too. */
  async function watchServed(signal: AbortSignal): Promise<void> {
    const before = discovered
    discovered = await discover(signal)
    if (discovered === before) return
    for (const resource of discovered.watchable) {
      const key = `${resource.group}/${resource.resource}`
      if (watched.has(key)) continue
      const informer = context.informers.of(resource)
      const observe = (object: Frozen<KubeObject>) => apply(graph.observe(object))
      const registration = informer.addHandler({
        onAdd: observe,
        onUpdate: (old, object) => {
          if (old.metadata.uid !== object.metadata.uid) apply(graph.remove(old.metadata.uid ?? ''))
          observe(object)
        },
        onDelete: (object) => apply(graph.remove(object.metadata.uid ?? '')),
      })
      watched.set(key, { informer, registration })
    }
    const served = new Set(discovered.watchable.map(({ group, resource }) => `${group}/${resource}`))
    for (const [key, { informer, registration }] of watched) {
      if (served.has(key)) continue
      registration.remove()
      context.informers.stopUnused(informer)
      watched.delete(key)
    }
  }

  function apply(change: GraphChange): void {
    for (const { uid } of change.attemptToDelete) deletions.queue.add(uid)
    for (const { uid } of change.attemptToOrphan) orphanings.queue.add(uid)
    for (const { dependent, ownerUid } of change.invalid) reportInvalidOwner(events, dependent, ownerUid)
  }

  async function attemptToDelete(uid: string, signal: AbortSignal): Promise<Result | undefined> {
    const node = graph.get(uid)
    if (!node || node.virtual || (node.beingDeleted && !node.deletingDependents)) return undefined
    if (!node.deletingDependents && graph.isOwned(node)) return undefined
    const object = await live(node, node.namespace, signal)
    if (!object) {
      apply(graph.remove(uid))
      return undefined
    }
    if (node.deletingDependents) return finishForeground(node, object, signal)
    const owners = object.metadata.ownerReferences ?? []
    if (owners.length === 0) return undefined
    const { solid, dangling, waiting } = await classify(node, owners, signal)
    if (solid.length > 0) {
      // Some owner remains: only the references to the others go.
      if (dangling.length + waiting.length > 0) await dropOwners(node, object, [...dangling, ...waiting], signal)
      return undefined
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      // Its owner waits for it in the foreground, so its own dependents go first, too.
      for (const dependent of node.dependents.values()) {
        if (dependent.deletingDependents) await unblock(node, object, signal)
      }
      return remove(node, object, 'Foreground', signal)
    }
    const finalizers = object.metadata.finalizers ?? []
    const policy = finalizers.includes(orphanFinalizer) ? 'Orphan' : finalizers.includes(foregroundFinalizer) ? 'Foreground' : 'Background'
    return remove(node, object, policy, signal)
  }

  async function finishForeground(node: GraphNode, object: Frozen<KubeObject>, signal: AbortSignal): Promise<undefined> {
    const blocking = blockingDependents(node)
    if (blocking.length === 0) await dropFinalizer(node, object, foregroundFinalizer, signal)
    for (const dependent of blocking) if (!dependent.deletingDependents) deletions.queue.add(dependent.uid)
    return undefined
  }
}

/** Takes the references to an owner from its dependents, then lets it go. */
function orphaning(graph: OwnerGraph, { live, dropOwners, dropFinalizer }: ReturnType<typeof createActions>) {
  return async (uid: string, signal: AbortSignal): Promise<undefined> => {
    const node = graph.get(uid)
    if (!node || node.virtual) return
    for (const dependent of [...node.dependents.values()]) {
      const object = await live(dependent, dependent.namespace, signal)
      const owned = object?.metadata.ownerReferences?.filter((owner) => owner.uid === uid) ?? []
      if (object && owned.length > 0) await dropOwners(dependent, object, owned, signal)
    }
    const object = await live(node, node.namespace, signal)
    if (object) await dropFinalizer(node, object, orphanFinalizer, signal)
  }
}

/** Only the writer of the reference can correct it. */
function reportInvalidOwner(events: EventRecorder, { apiVersion, kind, namespace = '', name, uid, owners }: GraphNode, ownerUid: string): void {
  const owner = owners.find((one) => one.uid === ownerUid)
  if (!owner) return
  const text = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`
  const message = `ownerRef ${text} does not exist in namespace "${namespace}"`
  events.event({ apiVersion, kind, namespace, name, uid }, 'Warning', 'OwnerRefInvalidNamespace', message)
}

/** Resolves once all that is there has been seen: every dependent seen before its owner would cost a look-up. */
async function allSeen({ informers, clock }: ControllerContext, { watchable }: Discovered, signal: AbortSignal): Promise<void> {
  using waited = abortScope(signal)
  // All are asked for at once; waiting for one after the other ends no later, and listens to the signal once instead of for each.
  const started = watchable.map((resource) => informers.of(resource))
  const synced = async () => {
    for (const informer of started) await informer.synced(waited.signal)
  }
  // A resource that cannot be listed must not keep the others waiting.
  await Promise.race([synced(), clock.sleep(maxSyncWaitMs, waited.signal)]).catch(() => {})
  waited.abort()
}
