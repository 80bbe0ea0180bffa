/**
 * GET /skiff/store (L3): the store's keys as they are at a revision, without values, by folder; or the versions of one key. A non-resource path, denied to
 * users without a role that names it, since keys name the objects of all namespaces. Objects are read through the API, with the rights of the user.
 */
import { type StoredObjectName, type StoreKey, type StoreKeyVersions, type StoreListing, storePath } from '#api/debug/storeKeys'
import { badRequest, expired } from '#api/machinery/status'
import type { KeyValue, Store } from '#store/store'
import { isStoreError } from '#store/storeError'
import type { Page } from '../core/page.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { StoredResource } from '../registry/storedResource.ts'

export interface StoreKeysDeps {
  readonly store: Store
  readonly catalog: Catalog
}

const mostEntries = 200
const mostVersions = 100
const mostKey = 1024

export function storeKeysPage(deps: StoreKeysDeps): Page {
  return {
    prefix: storePath,
    async handle(request) {
      if (request.path !== storePath) return undefined
      return { type: 'value', status: 200, value: await answer(deps, request.query) }
    },
  }
}

/** What one answer is made of: the store, and the resources that have keys in it. */
interface Read {
  readonly store: Store
  readonly resources: readonly StoredResource[]
}

async function answer({ store, catalog }: StoreKeysDeps, query: URLSearchParams): Promise<StoreListing | StoreKeyVersions> {
  const key = query.get('key')
  const prefix = query.get('prefix') ?? '/'
  const from = query.get('from') ?? prefix
  const revision = revisionOf(query.get('revision'))
  if ([key ?? '', prefix, from].some((text) => text.length > mostKey)) throw badRequest(`key, prefix, from: at most ${mostKey} characters`)
  const read = { store, resources: [...catalog.stored()] }
  try {
    if (key !== null) return await versionsOf(read, key, revision)
    if (!/^\/([^/]+\/)*$/.test(prefix)) throw badRequest('prefix: expected a path that ends with a slash, such as /registry/pods/')
    if (!from.startsWith(prefix)) throw badRequest('from: expected a key below the prefix')
    return await below(read, prefix, from, revision)
  } catch (error) {
    if (isStoreError(error, 'compacted')) throw expired('the revision is compacted')
    if (isStoreError(error, 'futureRevision')) throw badRequest('revision: there is no such revision yet')
    throw error
  }
}

function revisionOf(text: string | null): number | undefined {
  if (text === null) return undefined
  if (!/^[1-9]\d{0,14}$/.test(text)) throw badRequest('revision: expected a whole number from 1')
  return Number(text)
}

/** The first key behind all that begin with a prefix, which ends with a slash. */
const endOf = (prefix: string) => `${prefix.slice(0, -1)}0`

async function below({ store, resources }: Read, prefix: string, from: string, wanted: number | undefined): Promise<StoreListing> {
  const revision = wanted ?? (await store.latestRevision())
  const [folders, keys]: [StoreListing['folders'][number][], StoreKey[]] = [[], []]
  const end = endOf(prefix)
  for (let at = from; ; ) {
    const left = mostEntries - folders.length - keys.length
    const { kvs, more } = await store.range(at, end, { revision, keysOnly: true, limit: Math.max(left, 1) })
    if (kvs.length > 0 && left === 0) return { revision, folders, keys, next: at }
    const deeper = kvs.findIndex(({ key }) => key.includes('/', prefix.length))
    for (const kv of deeper < 0 ? kvs : kvs.slice(0, deeper)) keys.push(described(resources, kv))
    const first = kvs[deeper]
    if (first) {
      // All keys of the folder are one entry.
      const folder = first.key.slice(0, first.key.indexOf('/', prefix.length) + 1)
      const { count } = await store.range(folder, endOf(folder), { revision, countOnly: true })
      folders.push({ prefix: folder, count })
      at = endOf(folder)
    } else if (more) at = `${kvs.at(-1)?.key ?? at}\0`
    else return { revision, folders, keys }
  }
}

function described(resources: Read['resources'], { key, createRevision, modRevision, version, lease }: KeyValue): StoreKey {
  const object = objectOf(resources, key)
  return { key, createRevision, modRevision, version, ...(lease ? { lease: lease.toString(16) } : {}), ...(object ? { object } : {}) }
}

/** Steps back from each version to the one before. Earlier objects of the same name, which were deleted, are not searched. */
async function versionsOf({ store, resources }: Read, key: string, from: number | undefined): Promise<StoreKeyVersions> {
  const versions: StoreKeyVersions['versions'][number][] = []
  const object = objectOf(resources, key)
  const found = (isCut: boolean): StoreKeyVersions => ({ versions, isCut, ...(object ? { object } : {}) })
  let at = from
  try {
    while (versions.length < mostVersions) {
      const [kv] = (await store.range(key, undefined, { revision: at })).kvs
      if (!kv) return found(false)
      versions.push({ revision: kv.modRevision, version: kv.version, bytes: kv.value.length })
      if (kv.version === 1) return found(false)
      at = kv.modRevision - 1
    }
  } catch (error) {
    if (!isStoreError(error, 'compacted') || versions.length === 0) throw error
  }
  return found(true)
}

/** The object by the longest prefix of a resource that is stored. */
function objectOf(resources: Read['resources'], key: string): StoredObjectName | undefined {
  let longest: StoredResource | undefined
  for (const one of resources) if (key.startsWith(one.prefix) && one.prefix.length > (longest?.prefix.length ?? 0)) longest = one
  if (!longest) return undefined
  const { prefix, group, resource, namespaced } = longest
  const parts = key.slice(prefix.length).split('/')
  if (parts.length !== (namespaced ? 2 : 1)) return undefined
  return { group, resource, namespace: namespaced ? (parts[0] ?? '') : '', name: parts.at(-1) ?? '' }
}
