/**
 * A resource of the registry (L3): one storage, served in one or several versions. Built from the generated facts and the kinds'
 * strategies; custom resources build the same shape at run time.
 * Upstream: registry.Store plus the handlers' RequestScope.
 */
import type { KindStrategy } from '#api/kinds/defineKind'
import type { FieldError } from '#api/machinery/fieldPath'
import type { Frozen, GroupVersionKind, KubeObject } from '#api/machinery/meta'
import type { OtherVersions } from '#api/managedFields/versions'
import type { Schema } from '#api/schema/schema'
import type { Authorizer } from '../authz/authorizer.ts'
import type { Cancellation } from '../core/cancellation.ts'
import type { AdmissionForms, ObjectReader } from '../core/objectReader.ts'
import type { ServerRequest, UserInfo } from '../core/request.ts'
import type { CacheEntry, VersionView } from '../core/watch/cacheEntry.ts'
import type { ForeignConversion } from './convertedVersions.ts'
import type { WatchCache } from './watchCache.ts'

/** A write that is valid as far as its strategy can tell, with the data to authorize its effects, and to check what takes more than a pure function. */
export interface CheckedWrite {
  readonly object: Frozen<KubeObject>
  /** Absent: the write creates. */
  readonly old?: Frozen<KubeObject> | undefined
  /** Empty for the object itself. */
  readonly subresource: string
  /** The request's verb: create, update or patch. */
  readonly verb: string
  /** The request's version of the resource. */
  readonly version: string
  readonly user: UserInfo
  readonly authorizers: readonly Authorizer[]
  readonly reader: ObjectReader
  /** The time, in milliseconds since the epoch. */
  readonly nowMs: number
}

/** Effects around a resource's writes, which a pure strategy cannot have. */
export interface StorageHooks {
  /** After prepareForCreate, before validation; may change the object. Refusals are thrown. A dry run must not allocate anything. */
  beforeCreate?(object: KubeObject, dryRun: boolean): Promise<Reservation>
  beforeUpdate?(object: KubeObject, old: Frozen<KubeObject>, dryRun: boolean): Promise<Reservation>
  /** After successful validation. Upstream does this within Validate and ValidateUpdate. */
  checkRights?(write: CheckedWrite): Promise<readonly FieldError[]>
  /** Called after the object was removed from the store. */
  afterDelete?(object: Frozen<KubeObject>): Promise<void>
}

/** Allocations of a write until it is in the cache, or has failed. */
export interface Reservation {
  /** Keeps the allocations if the write was stored, and releases them otherwise. */
  settle(stored: boolean): Promise<void>
}

/** The result of a hook without allocations. */
export const nothingReserved: Reservation = { settle: async () => undefined }

export interface StoredResource {
  readonly group: string
  readonly resource: string
  readonly kind: string
  readonly namespaced: boolean
  /** Ends with '/'. */
  readonly prefix: string
  /** The apiVersion of stored values. */
  readonly storageApiVersion: string
  readonly strategy: KindStrategy
  /** Whether the kind has a status subresource: writes to the object then leave the status alone. */
  readonly hasStatus: boolean
  readonly cache: WatchCache
  readonly hooks?: StorageHooks | undefined
  /** The store removes objects this long after their last write. */
  readonly ttlSeconds?: number | undefined
  /** The versions that serve it, for admission; the registry keeps them. */
  forms?: AdmissionForms | undefined
}

/** One version of a stored resource, as a path serves it. */
export interface ServedResource {
  readonly group: string
  readonly version: string
  readonly apiVersion: string
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly schema: Schema
  readonly stored: StoredResource
  /** Absent when the version is the storage version. */
  readonly view?: VersionView | undefined
  /** The strategy's shape. Absent: the stored one. */
  readonly strategyView?: VersionView | undefined
  toStrategy(object: KubeObject): KubeObject
  /** From the strategy's shape to the stored one. */
  toStored(object: KubeObject): KubeObject | Promise<KubeObject>
  /** The resource's other versions, where their shapes differ. Absent: one version, or one shape. */
  readonly otherVersion?: OtherVersions | undefined
  /** The same, if a webhook converts between them. */
  readonly foreignConversion?: ForeignConversion | undefined
  /** Whether even an unchanged object would be stored differently: it has an older version, or fields that are pruned now. */
  isOutdated?(entry: CacheEntry): boolean
  /** Absent for built-in kinds. */
  readonly custom?: CustomTraits | undefined
}

/** Traits of custom resources. */
export interface CustomTraits {
  /** Identifies the definition's state, since a name can be redefined. */
  readonly revision: string
  readonly listKind: string
}

/** One write: its author, its resource and its options. */
export interface WriteContext {
  readonly served: ServedResource
  /** Empty for the object itself; status, resize, … for views of it. */
  readonly subresource: string
  readonly namespace: string
  readonly user: UserInfo
  readonly fieldManager: string
  readonly dryRun: boolean
  /** The change came through server-side apply, which keeps metadata.managedFields itself. */
  readonly managedFieldsDone?: boolean | undefined
  warn(text: string): void
  readonly cancellation?: Cancellation | undefined
  /** Admission reads its options, and adds annotations to its audit event. */
  readonly request?: Pick<ServerRequest, 'query' | 'admissionAnnotations' | 'audit' | 'info' | 'bodyBytes' | 'trace' | 'refusedBy' | 'excludedMs'> | undefined
  /** The kind of the request's body, if it is no object of the resource: PodExecOptions, Binding. */
  readonly kind?: GroupVersionKind | undefined
}

export function keyFor(served: Pick<ServedResource, 'namespaced'>, namespace: string, name: string): string {
  return served.namespaced ? `${namespace}/${name}` : name
}
