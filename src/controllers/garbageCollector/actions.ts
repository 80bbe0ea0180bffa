/**
 * What the garbage collector does to objects (L3): each write names the uid, so that a namesake that came later is never touched.
 * Upstream: pkg/controller/garbagecollector/operations.go, patch.go, uid_cache.go (v1.36).
 */
import type { Frozen, KubeObject, OwnerReference } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { Client, Resource } from '#client/client'
import type { Result } from '../framework/reconciler.ts'
import { foregroundFinalizer, type GraphNode } from './graph.ts'

const conflictRetryMs = 10
const known = {}

export type Kind = { readonly apiVersion: string; readonly kind: string }

/** Owners that are known to be deleted: a uid is never reused, so one look-up serves all dependents of an owner. Upstream's size. */
const absentOwners = 500

/** Owners that are looked up in one turn of the event loop. */
const ownersPerTurn = 50

export function createActions(client: Client, clock: Clock, resourceOf: (of: Kind) => Resource<KubeObject> | undefined) {
  const absent = new LruCache<string, object>(absentOwners)
  return { live, classify, dropOwners, unblock, dropFinalizer, remove }

  /** A cluster-scoped object cannot have an owner that lives in a namespace. */
  function canOwn(owner: Readonly<OwnerReference>, node: GraphNode): boolean {
    return node.namespace !== undefined || !resourceOf(owner)?.namespaced
  }

  /** The live object if it is still the one of that uid; undefined when it is certainly gone. */
  async function live(of: { apiVersion: string; kind: string; name: string; uid: string }, namespace: string | undefined, signal: AbortSignal) {
    const resource = resourceOf(of)
    if (!resource) throw new Error(`no matches for kind "${of.kind}" in version "${of.apiVersion}"`)
    try {
      const object = await client.of(resource).get({ namespace: resource.namespaced ? namespace : undefined, name: of.name }, { signal })
      return object.metadata.uid === of.uid ? object : undefined
    } catch (error) {
      if (isStatus(error, 'NotFound')) return undefined
      throw error
    }
  }

  /** Owners that remain, that are gone, and that wait in the foreground for their dependents. */
  async function classify(node: GraphNode, owners: readonly Readonly<OwnerReference>[], signal: AbortSignal) {
    const result = { solid: [] as OwnerReference[], dangling: [] as OwnerReference[], waiting: [] as OwnerReference[] }
    for (const [index, owner] of owners.entries()) {
      if (index > 0 && index % ownersPerTurn === 0) await clock.turn()
      if (!canOwn(owner, node)) {
        // Not valid, and no retry will make it so: leave the object alone.
        result.solid.push(owner)
        continue
      }
      const object = await liveOwner(owner, node, signal)
      if (!object) result.dangling.push(owner)
      else if (object.metadata.deletionTimestamp && object.metadata.finalizers?.includes(foregroundFinalizer)) result.waiting.push(owner)
      else result.solid.push(owner)
    }
    return result
  }

  /** A deleted owner never returns under its uid. In another namespace the same reference may mean another object. */
  async function liveOwner(owner: Readonly<OwnerReference>, node: GraphNode, signal: AbortSignal): Promise<Frozen<KubeObject> | undefined> {
    const where = resourceOf(owner)?.namespaced ? node.namespace : ''
    const key = `${owner.uid} ${owner.apiVersion} ${owner.kind} ${where}/${owner.name}`
    if (absent.get(key)) return undefined
    const object = await live(owner, node.namespace, signal)
    if (!object) absent.set(key, known)
    return object
  }

  async function patch(node: GraphNode, body: unknown, signal: AbortSignal): Promise<void> {
    const resource = resourceOf(node)
    if (!resource) return
    const ref = { namespace: resource.namespaced ? node.namespace : undefined, name: node.name }
    try {
      await client.of(resource).patch(ref, 'merge', body, { signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }

  function dropOwners(node: GraphNode, { metadata }: Frozen<KubeObject>, owners: readonly OwnerReference[], signal: AbortSignal): Promise<void> {
    const gone = new Set(owners.map(({ uid }) => uid))
    const left = metadata.ownerReferences?.filter(({ uid }) => !gone.has(uid)) ?? []
    const { uid, resourceVersion } = metadata
    return patch(node, { metadata: { uid, resourceVersion, ownerReferences: left.length > 0 ? left : null } }, signal)
  }

  /** Breaks a cycle: two objects that own each other would otherwise wait for each other. */
  function unblock(node: GraphNode, { metadata }: Frozen<KubeObject>, signal: AbortSignal): Promise<void> {
    const ownerReferences = metadata.ownerReferences?.map((owner) => ({ ...owner, blockOwnerDeletion: false }))
    return patch(node, { metadata: { uid: metadata.uid, ownerReferences } }, signal)
  }

  function dropFinalizer(node: GraphNode, { metadata }: Frozen<KubeObject>, finalizer: string, signal: AbortSignal): Promise<void> {
    if (!metadata.finalizers?.includes(finalizer)) return Promise.resolve()
    const { uid, resourceVersion } = metadata
    return patch(node, { metadata: { uid, resourceVersion, finalizers: metadata.finalizers.filter((one) => one !== finalizer) } }, signal)
  }

  /** An object that another client changed meanwhile is queued again: a change that does not concern owners causes no event in the graph. */
  async function remove(
    node: GraphNode,
    { metadata }: Frozen<KubeObject>,
    propagationPolicy: 'Orphan' | 'Foreground' | 'Background',
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const resource = resourceOf(node)
    if (!resource) return undefined
    const ref = { namespace: resource.namespaced ? node.namespace : undefined, name: node.name }
    try {
      const preconditions = { uid: metadata.uid, resourceVersion: metadata.resourceVersion }
      await client.of(resource).delete(ref, { propagationPolicy, preconditions, signal })
    } catch (error) {
      if (isStatus(error, 'Conflict')) return { requeueAfterMs: conflictRetryMs }
      if (!isStatus(error, 'NotFound')) throw error
    }
    return undefined
  }
}
