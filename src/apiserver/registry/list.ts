/**
 * Lists (L3): chooses the revision, splits into pages, and reads from the cache; only an exact revision that the cache no longer has is read from
 * the store.
 * Upstream: cacher.GetList, etcd3 store.GetList and storage.ValidateListOptions.
 */
import { badRequest, expired, StatusError } from '#api/machinery/status'
import type { KeyValue, ReadView, StoreError } from '#store/store'
import type { Cancellation } from '../core/cancellation.ts'
import type { CachedObject } from '../core/request.ts'
import { CacheEntry, prepareViews } from '../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { type Cacher, tooLargeResourceVersion } from './cacher.ts'
import { decodeContinue, encodeContinue } from './continueToken.ts'
import { keyRange, matches, type Selection } from './selection.ts'
import type { ServedResource } from './storedResource.ts'
import type { Measure } from './storeLatency.ts'

export interface ListQuery {
  readonly selection: Selection
  readonly limit: number
  /** '' for none. */
  readonly continue: string
  readonly resourceVersion: string
  readonly resourceVersionMatch: string
}

export interface ListResult {
  readonly items: readonly CachedObject[]
  readonly resourceVersion: number
  readonly continue?: string | undefined
  readonly remainingItemCount?: number | undefined
}

type EntryList = Omit<ListResult, 'items'> & { readonly items: readonly CacheEntry[] }

interface ListDeps {
  readonly cacher: Cacher
  readonly store: ReadView
  readonly measure: Measure
}

/** The objects, as the served version shows them. The options that exclude each other have been checked (endpoints/listOptions.ts). */
export async function listObjects(deps: ListDeps, served: ServedResource, query: ListQuery, cancellation?: Cancellation): Promise<ListResult> {
  const { view } = served
  const found = await listEntries(deps, served, query, cancellation)
  const preparing = deps.measure('decode-response-object', () => prepareViews(found.items, view, cancellation))
  if (preparing) await preparing
  return view ? { ...found, items: found.items.map((entry) => entry.view(view)) } : found
}

async function listEntries(deps: ListDeps, served: ServedResource, query: ListQuery, cancellation: Cancellation | undefined): Promise<EntryList> {
  const { cacher } = deps
  const { cache } = served.stored
  if (query.continue !== '') {
    const token = decodeContinue(query.continue)
    if (query.resourceVersion !== '' && query.resourceVersion !== '0') throw badRequest('specifying resource version is not allowed when using continue')
    await (token.revision > 0 ? cacher.waitFor(token.revision, cancellation) : cacher.waitUntilCurrent(cancellation))
    if (token.revision < 0 || cache.changedAt <= token.revision) {
      return fromCache(served, query, token.start, token.revision < 0 ? cacher.revision : token.revision, cancellation)
    }
    return fromStore(deps, served, query, token.start, token.revision, cancellation)
  }
  const revision = parseRevision(query.resourceVersion)
  const exact = query.resourceVersionMatch === 'Exact' || (query.resourceVersionMatch === '' && query.limit > 0 && revision > 0)
  if (query.resourceVersion === '') await cacher.waitUntilCurrent(cancellation)
  else await cacher.waitFor(Math.max(revision, 1), cancellation)
  if (!exact || cache.changedAt <= revision) return fromCache(served, query, '', exact ? revision : cacher.revision, cancellation)
  return fromStore(deps, served, query, '', revision, cancellation)
}

async function fromCache(
  served: ServedResource,
  query: ListQuery,
  start: string,
  revision: number,
  cancellation: Cancellation | undefined,
): Promise<EntryList> {
  const { cache } = served.stored
  cache.requireReadable(query.selection)
  // Objects must be converted before a field selector evaluates them.
  const preparing =
    query.selection.matchesObject && prepareViews(cache.select({ ...query.selection, matchesObject: undefined }, start), served.view, cancellation)
  if (preparing) await preparing
  const items: CacheEntry[] = []
  let last = ''
  for (const entry of cache.select(query.selection, start)) {
    if (query.limit > 0 && items.length === query.limit) return page(query, items, last, revision, cache.count(query.selection, `${last}\0`))
    items.push(entry)
    last = entry.key
  }
  return { items, resourceVersion: revision }
}

async function fromStore(
  { store, measure }: ListDeps,
  served: ServedResource,
  query: ListQuery,
  start: string,
  revision: number,
  cancellation: Cancellation | undefined,
): Promise<EntryList> {
  const { prefix } = served.stored
  const range = keyRange(query.selection)
  let from = prefix + (start > range.from ? start : range.from)
  const to = range.to === undefined ? `${prefix.slice(0, -1)}0` : prefix + range.to
  const items: CacheEntry[] = []
  let last = ''
  const restart = query.continue === '' ? undefined : encodeContinue({ revision: -1, start })
  for (;;) {
    const limit = query.limit > 0 ? Math.max(query.limit + 1 - items.length, 100) : 0
    const result = await measure('etcd', () => readAt(store, from, to, revision, limit, restart))
    const entries = await measure('decode-response-object', () => Promise.all(result.kvs.map((kv) => entryOf(served, kv))))
    const preparing = query.selection.matchesObject && prepareViews(entries, served.view, cancellation)
    if (preparing) await preparing
    for (const [at, entry] of entries.entries()) {
      if (!matches(query.selection, entry)) continue
      if (query.limit > 0 && items.length === query.limit) return page(query, items, last, revision, result.count - at)
      items.push(entry)
      last = entry.key
    }
    const final = result.kvs.at(-1)
    if (!result.more || !final) return { items, resourceVersion: revision }
    from = `${final.key}\0`
  }
}

async function entryOf({ stored: { cache, prefix } }: ServedResource, kv: KeyValue): Promise<CacheEntry> {
  const value = await cache.values.read(kv.key, kv.value)
  if (value instanceof UnreadableValue) throw value.failureOf(kv.key)
  const entry = CacheEntry.read(kv.key.slice(prefix.length), value, kv.modRevision, kv.createRevision)
  if (entry instanceof UnreadableValue) throw entry.failureOf(kv.key)
  return entry
}

async function readAt(store: ReadView, from: string, to: string, revision: number, limit: number, restart: string | undefined) {
  try {
    return await store.range(from, to, { revision, ...(limit > 0 ? { limit } : {}) })
  } catch (error) {
    const { code } = error as StoreError
    if (code === 'compacted' && restart !== undefined) throw new StatusError('Expired', inconsistentContinue, { continue: restart })
    if (code === 'compacted') throw expired('The resourceVersion for the provided list is too old.')
    if (code === 'futureRevision') throw tooLargeResourceVersion(revision, (error as StoreError).revision ?? 0)
    throw error
  }
}

/** Upstream's text, which clients show. The Status carries a token that continues in the newest state. */
const inconsistentContinue =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, ' +
  'or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an ' +
  'inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

function page(query: ListQuery, items: readonly CacheEntry[], last: string, revision: number, remaining: number): EntryList {
  const token = encodeContinue({ revision, start: `${last}\0` })
  // With a selector, the number of remaining objects that match is unknown.
  return { items, resourceVersion: revision, continue: token, ...(query.selection.matchesObject ? {} : { remainingItemCount: remaining }) }
}

/** @throws BadRequest as upstream's storage.NewInvalidError, unless it is a whole number of 64 bits */
export function parseRevision(text: string): number {
  if (text === '') return 0
  const isNumber = /^\d+$/.test(text)
  const revision = Number(text)
  if (isNumber && revision < 2 ** 64) return revision
  const quoted = JSON.stringify(text)
  throw badRequest(`resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${isNumber ? 'value out of range' : 'invalid syntax'}`)
}
