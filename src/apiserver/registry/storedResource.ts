/**
 * A resource as the registry knows it (L3): one storage, shown in one or several versions. Built from the generated facts and the kinds'
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

/** A write that is well-formed, and what it takes to find out whether its author may do what it brings about. */
export interface CheckedWrite {
  readonly object: Frozen<KubeObject>
  /** Absent: the write creates. */
  readonly old?: Frozen<KubeObject> | undefined
  /** Empty for the object itself. */
  readonly subresource: string
  /** The request's: create, update or patch. */
  readonly verb: string
  /** The request's version of the resource. */
  readonly version: string
  readonly user: UserInfo
  readonly authorizers: readonly Authorizer[]
  readonly reader: ObjectReader
}

/** Work that a resource needs around its writes beyond what a strategy, which is pure, may do. */
export interface StorageHooks {
  /** After prepareForCreate, before validation; may change the object. Refusals are thrown. A dry run leaves nothing behind. */
  beforeCreate?(object: KubeObject, dryRun: boolean): Promise<Reservation>
  beforeUpdate?(object: KubeObject, old: Frozen<KubeObject>, dryRun: boolean): Promise<Reservation>
  /** After validation, where that found no fault. Upstream does this within Validate and ValidateUpdate. */
  checkRights?(write: CheckedWrite): Promise<readonly FieldError[]>
  /** The object is gone from the store. */
  afterDelete?(object: Frozen<KubeObject>): Promise<void>
}

/** What a write holds until it is in the cache, or has failed. */
export interface Reservation {
  /** Keeps what was taken when the write was stored, and gives it back when it was not. */
  settle(stored: boolean): Promise<void>
}

/** A hook that only looks. */
export const nothingReserved: Reservation = { settle: async () => undefined }

export interface StoredResource {
  readonly group: string
  readonly resource: string
  readonly kind: string
  readonly namespaced: boolean
  /** Ends with '/'. */
  readonly prefix: string
  /** The apiVersion that values in the store carry. */
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
  /** The shape that the strategy works on. Absent: the stored one. */
  readonly strategyView?: VersionView | undefined
  toStrategy(object: KubeObject): KubeObject
  /** From the strategy's shape to the stored one. */
  toStored(object: KubeObject): KubeObject | Promise<KubeObject>
  /** The resource's other versions, where their shapes differ. Absent: one version, or one shape. */
  readonly otherVersion?: OtherVersions | undefined
  /** The same where only others can convert between them. */
  readonly foreignConversion?: ForeignConversion | undefined
  /** Whether a write that changes nothing would still store something else: an older version, fields that are pruned by now. */
  isOutdated?(entry: CacheEntry): boolean
  /** Absent for built-in kinds. */
  readonly custom?: CustomTraits | undefined
}

/** What sets custom resources apart from built-in ones. */
export interface CustomTraits {
  /** Tells apart what one name stood for over time. */
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
  readonly request?: Pick<ServerRequest, 'query' | 'admissionAnnotations' | 'audit' | 'info' | 'bodyBytes'> | undefined
  /** What the request carries, where that is no object of the resource: PodExecOptions, Binding. */
  readonly kind?: GroupVersionKind | undefined
}

export function keyFor(served: Pick<ServedResource, 'namespaced'>, namespace: string, name: string): string {
  return served.namespaced ? `${namespace}/${name}` : name
}
