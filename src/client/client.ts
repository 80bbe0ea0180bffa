/**
 * The typed client's contract (L2): what components are written against. createClient (clientOverTransport.ts) implements it over any Transport.
 * Published as skiff-kubernetes/client.
 */
import type { Frozen, GroupVersionResource, KubeList, KubeObject, ObjectRef } from '#api/machinery/meta'
import type { Transport, WatchEvent } from './transport.ts'

/** Names a resource and, through T, its type: `pods` of builtIn.ts, or one's own for custom resources. */
export interface Resource<T extends KubeObject> extends GroupVersionResource {
  readonly kind: string
  readonly namespaced: boolean
  /** Never set; carries the type. */
  readonly type?: T
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}

export interface ListOptions extends CallOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly limit?: number | undefined
  readonly continue?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined
}

export interface WatchOptions extends Omit<ListOptions, 'limit' | 'continue' | 'signal'> {
  readonly allowWatchBookmarks?: boolean | undefined
  readonly sendInitialEvents?: boolean | undefined
  readonly timeoutSeconds?: number | undefined
  readonly signal: AbortSignal
}

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined
}

export interface DeleteOptions extends CallOptions {
  readonly gracePeriodSeconds?: number | undefined
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined
  readonly dryRun?: boolean | undefined
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply'

export interface PatchOptions extends WriteOptions {
  /** e.g. 'status'. */
  readonly subresource?: string | undefined
  /** Server-side apply: take fields from other managers. */
  readonly force?: boolean | undefined
}

/** Calls on one resource. Returned objects are deep-frozen; copy before changing (deepCopy of base/frozen). */
export interface ResourceClient<T extends KubeObject> {
  readonly resource: Resource<T>
  get(ref: ObjectRef, options?: CallOptions & { resourceVersion?: string }): Promise<Frozen<T>>
  list(options?: ListOptions): Promise<Frozen<KubeList<T>>>
  watch(options: WatchOptions): AsyncIterable<readonly WatchEvent<Frozen<T>>[]>
  /** The namespace is the object's own. */
  create(object: NewObject<T>, options?: WriteOptions): Promise<Frozen<T>>
  update(object: T | Frozen<T>, options?: WriteOptions): Promise<Frozen<T>>
  updateStatus(object: T | Frozen<T>, options?: WriteOptions): Promise<Frozen<T>>
  patch(ref: ObjectRef, type: PatchType, body: unknown, options?: PatchOptions): Promise<Frozen<T>>
  delete(ref: ObjectRef, options?: DeleteOptions): Promise<void>
  deleteCollection(options?: ListOptions & DeleteOptions): Promise<void>
  /** POST to a subresource: binding, eviction, token. */
  createSubresource<B>(ref: ObjectRef, subresource: string, body: unknown, options?: WriteOptions): Promise<Frozen<B>>
  getSubresource<B>(ref: ObjectRef, subresource: string, options?: CallOptions): Promise<Frozen<B>>
  updateSubresource<B>(ref: ObjectRef, subresource: string, body: unknown, options?: WriteOptions): Promise<Frozen<B>>
}

/** What one hands in to create: apiVersion, kind and status may be left out; the client fills in the first two. */
export type NewObject<T extends KubeObject> = Omit<T, 'apiVersion' | 'kind' | 'status' | 'metadata'> &
  Partial<Pick<T, Extract<keyof T, 'apiVersion' | 'kind' | 'status'>>> & { metadata: T['metadata'] }

export interface Client {
  readonly transport: Transport
  /** `client.of(pods).get(…)`; resources of the built-in kinds are in builtIn.ts. */
  of<T extends KubeObject>(resource: Resource<T>): ResourceClient<T>
}
