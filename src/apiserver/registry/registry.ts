/**
 * All stored resources of the server (L3), built from the generated facts and the kinds' strategies, with their caches and the way to the
 * store. Knows no kind: what a kind needs beyond the rules of all kinds is in its strategy, or in its KindStorage. Admission plugins,
 * authorizers and the in-process components read the caches through `reader`.
 */
import { builtInResources, optionalResources, type ResourceFacts, resourceKey, storagePrefix } from '#api/discovery/resources'
import type { KindStrategy } from '#api/kinds/defineKind'
import { type Frozen, groupVersion, type KubeObject } from '#api/machinery/meta'
import { schemaFor } from '#api/schema/builtIn'
import type { Schema } from '#api/schema/schema'
import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import type { ServerWork } from '../core/serverWork.ts'
import type { VersionView } from '../core/watch/cacheEntry.ts'
import type { GroupResource } from '../encryption/groupResource.ts'
import { type CachedResource, Cacher, type CacherDeps } from './cacher.ts'
import { formsOf } from './forms.ts'
import type { KindStorage, KindStorages, KindWorkDeps } from './kindStorage.ts'
import { otherVersions } from './otherVersions.ts'
import { Storage } from './storage.ts'
import { type StorageSettings, storedValuesOf } from './storageSettings.ts'
import { storedFormOf } from './storedForm.ts'
import { keyFor, type ServedResource, type StoredResource } from './storedResource.ts'
import type { WatchCache } from './watchCache.ts'
import type { FieldIndex } from './watchGroups.ts'

export interface Registry {
  readonly cacher: Cacher
  readonly storage: Storage
  readonly reader: ObjectReader
  /** Passes kinds the transport for writing objects of other kinds. Call before the first request. */
  connect(transport: Transport): void
  /** The background work of kinds. */
  works(deps: Omit<KindWorkDeps, 'reader'>): readonly ServerWork[]
  /** Resources that are stored, by group, version and plural name. */
  served(group: string, version: string, resource: string): ServedResource | undefined
  all(): readonly ServedResource[]
  /** Opens a resource at run time; resolves when its cache is filled. `prefix` ends with '/'. */
  openCache(prefix: string, resource: GroupResource): Promise<WatchCache>
  /** Ends its watches and drops its objects. */
  closeCache(prefix: string): void
  /** Adds the versions of a custom resource to `served` and `reader`, replacing earlier ones. */
  add(served: readonly ServedResource[]): void
  remove(served: readonly ServedResource[]): void
}

export interface RegistryDeps extends StorageSettings, CacherDeps {
  strategyFor(group: string, kind: string): KindStrategy | undefined
  readonly random: Random
  /** Server-side parts of single kinds. */
  readonly storages: KindStorages
  /** The resources that are off by default and on here, by `resourceKey`. Absent: none. */
  readonly optional?: ReadonlySet<string> | undefined
  /** Objects that expire share a lease for so long. Default: 60. */
  readonly leaseReuseSeconds?: number | undefined
}

const nameIndex: FieldIndex = { field: 'metadata.name', value: (entry) => entry.key.slice(entry.key.indexOf('/') + 1) }

/** Indexes by name, and by the fields that the strategy names. */
function indexesOf({ triggerFields = [], selectableFields = {} }: Pick<KindStrategy, 'triggerFields' | 'selectableFields'>): FieldIndex[] {
  const ofFields = triggerFields.map((field): FieldIndex => {
    const value = ownValue(selectableFields, field)
    if (!value) throw new Error(`${field} is not selectable`)
    return { field, value: (entry) => value(entry.object) }
  })
  return [nameIndex, ...ofFields]
}

export function createRegistry(deps: RegistryDeps): Registry {
  const turnedOn = optionalResources().filter(({ group, version, resource }) => deps.optional?.has(resourceKey(group, version, resource)))
  const facts = [...builtInResources(), ...turnedOn].filter((one) => one.storage)
  const cached = new Map<string, CachedResource>()
  for (const { storage, resource, kind } of facts) {
    if (!storage) continue
    const prefix = `${storagePrefix(storage)}/`
    const strategy = deps.strategyFor(storage.group, kind)
    const form = deps.mediaType && storedFormOf({ storage, kind, convert: strategy?.convert }, deps.mediaType)
    cached.set(prefix, { prefix, indexes: indexesOf(strategy ?? {}), values: storedValuesOf(deps, { group: storage.group, resource }, form) })
  }
  const cacher = new Cacher(deps, [...cached.values()])
  deps.transformers?.onChange(() => void cacher.readAgain())
  const served = new Map<string, ServedResource>()
  for (const one of facts) served.set(resourceKey(one.group, one.version, one.resource), servedResource(deps, cacher, one))
  linkVersions(served)
  const stored = new Map<string, StoredResource>()
  const kinds = new Map<string, ServedResource>()
  const add: Registry['add'] = (resources) => {
    for (const one of resources) {
      served.set(resourceKey(one.group, one.version, one.resource), one)
      stored.set(`${one.stored.group}/${one.stored.resource}`, one.stored)
      kinds.set(kindKey(one.apiVersion, one.kind), one)
    }
    linkForms(resources, served.values())
  }
  add([...served.values()])
  const reader = createReader(stored, kinds)
  const storages = Object.values(deps.storages)
  for (const storage of storages) storage.follow?.(reader)
  return {
    cacher,
    storage: new Storage({ store: deps.store, cacher, clock: deps.clock, leaseReuseSeconds: deps.leaseReuseSeconds }),
    reader,
    connect(transport) {
      for (const storage of storages) storage.connect?.(transport)
    },
    works: (workDeps) => storages.flatMap((storage) => storage.works?.({ ...workDeps, reader }) ?? []),
    served: (group, version, resource) => served.get(resourceKey(group, version, resource)),
    all: () => [...served.values()],
    openCache: (prefix, resource) => cacher.add({ prefix, indexes: [nameIndex], values: storedValuesOf(deps, resource) }),
    closeCache: (prefix) => cacher.remove(prefix),
    add,
    remove(resources) {
      for (const one of resources) {
        served.delete(resourceKey(one.group, one.version, one.resource))
        stored.delete(`${one.stored.group}/${one.stored.resource}`)
        kinds.delete(kindKey(one.apiVersion, one.kind))
      }
    },
  }
}

function servedResource(deps: RegistryDeps, cacher: Cacher, facts: ResourceFacts): ServedResource {
  const { group, version, resource, singular, kind, namespaced, verbs, storage } = facts
  if (!storage) throw new Error(`${resource} is not stored`)
  const apiVersion = groupVersion({ group, version })
  const storageApiVersion = groupVersion(storage)
  const strategy = deps.strategyFor(group, kind) ?? { group, kind }
  const { hooks, ttlSeconds }: KindStorage = ownValue(deps.storages, `${group}/${resource}`) ?? {}
  const prefix = `${storagePrefix(storage)}/`
  const stored: StoredResource = {
    group,
    resource,
    kind,
    namespaced,
    prefix,
    storageApiVersion,
    strategy,
    hasStatus: facts.subresources.some((sub) => sub.name === 'status'),
    cache: cacher.cache(prefix),
    hooks,
    ttlSeconds,
  }
  return {
    group,
    version,
    apiVersion,
    resource,
    singular,
    kind,
    namespaced,
    verbs,
    schema: schemaOf(group, version, kind),
    stored,
    ...conversions(strategy, storage, { group, version }),
  }
}

/** Links resources with one storage that are served in several shapes. */
function linkVersions(served: Map<string, ServedResource>): void {
  const all = [...served.values()]
  for (const [key, one] of served) {
    const versions = new Map(all.filter(({ stored }) => stored.prefix === one.stored.prefix).map((other) => [other.apiVersion, other]))
    if (versions.size > 1) served.set(key, { ...one, otherVersion: otherVersions(one, (apiVersion) => versions.get(apiVersion)) })
  }
}

const kindKey = (apiVersion: string, kind: string): string => `${apiVersion} ${kind}`

/** Links versions of the same objects, for admission. */
function linkForms(added: readonly ServedResource[], all: Iterable<ServedResource>): void {
  const byPrefix = new Map(added.map(({ stored }) => [stored.prefix, [] as ServedResource[]]))
  for (const one of all) byPrefix.get(one.stored.prefix)?.push(one)
  for (const versions of byPrefix.values()) {
    const forms = formsOf(versions)
    for (const { stored } of versions) stored.forms = forms
  }
}

type Conversions = Pick<ServedResource, 'view' | 'strategyView' | 'toStrategy' | 'toStored'>

const identity = (object: KubeObject) => object

/** How a served version relates to the stored one. */
function conversions(strategy: KindStrategy, stored: { group: string; version: string }, served: { group: string; version: string }): Conversions {
  const apiVersion = groupVersion(served)
  const { ownShape } = strategy
  if (ownShape) {
    const view: VersionView = { apiVersion, convert: (object) => ownShape.fromStored(object) }
    return { view, strategyView: view, toStrategy: identity, toStored: (object) => ownShape.toStored(object as Frozen<KubeObject>) }
  }
  if (served.version === stored.version) return { toStrategy: identity, toStored: identity }
  return {
    view: { apiVersion, convert: (object) => convert(strategy, deepCopy<KubeObject>(object), stored, served) },
    toStrategy: (object) => convert(strategy, object, served, stored),
    toStored: identity,
  }
}

function convert(strategy: KindStrategy, object: KubeObject, from: { version: string }, to: { group: string; version: string }): KubeObject {
  const converted = strategy.convert ? strategy.convert(object, from.version, to.version) : object
  converted.apiVersion = groupVersion(to)
  return converted
}

function schemaOf(group: string, version: string, kind: string): Schema {
  const schema = schemaFor(group, version, kind)
  if (!schema) throw new Error(`no schema for ${group}/${version} ${kind}`)
  return schema
}

function createReader(byResource: ReadonlyMap<string, StoredResource>, byKind: ReadonlyMap<string, ServedResource>): ObjectReader {
  const find = (resource: { readonly group: string; readonly resource: string }): StoredResource => {
    const stored = byResource.get(`${resource.group}/${resource.resource}`)
    if (!stored) throw new Error(`no stored resource ${resource.group}/${resource.resource}`)
    return stored
  }
  // The caller chooses the type for the resource, as with any typed client.
  return {
    get<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace: string, name: string) {
      const stored = find(resource)
      return stored.cache.get(keyFor(stored, namespace, name))?.object as Frozen<T> | undefined
    },
    list<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, namespace = '') {
      return find(resource).cache.objects(namespace) as Frozen<T>[]
    },
    ofKind(apiVersion, kind) {
      const stored = byKind.get(kindKey(apiVersion, kind))?.stored
      return stored && { group: stored.group, resource: stored.resource, namespaced: stored.namespaced, forms: stored.forms }
    },
    onChange<T extends KubeObject>(resource: { readonly group: string; readonly resource: string }, fn: Parameters<typeof listen<T>>[1]) {
      return listen<T>(find(resource), fn)
    },
  }
}

function listen<T extends KubeObject>(
  stored: StoredResource,
  fn: (change: { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Frozen<T>; readonly old?: Frozen<T> | undefined }) => void,
): () => void {
  return stored.cache.onChange((change) => fn({ type: change.type, object: change.object as Frozen<T>, old: change.old as Frozen<T> | undefined }))
}
