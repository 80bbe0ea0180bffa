import assert from 'node:assert/strict'
import test from 'node:test'
import { isStatus } from '#api/machinery/status'
import type { CacheEntry } from '../core/watch/cacheEntry.ts'
import { UnreadBudget } from '../core/watch/unreadBudget.ts'
import type { WatchItem, WatchSession } from '../core/watch/watchSession.ts'
import { HistoryBudget } from './historyBudget.ts'
import { everything, type Selection } from './selection.ts'
import { cacheBudgets, WatchCache } from './watchCache.ts'
import type { FieldIndex } from './watchGroups.ts'

const prefix = '/registry/pods/'
const nodeIndex: FieldIndex = { field: 'spec.nodeName', value: (entry) => nodeNameOf(entry) }

function nodeNameOf(entry: CacheEntry): string {
  return (entry.object as unknown as { spec?: { nodeName?: string } }).spec?.nodeName ?? ''
}

function newCache(): WatchCache {
  const cache = new WatchCache(prefix, [nodeIndex])
  cache.load([], 1, [], 0)
  return cache
}

function put(cache: WatchCache, revision: number, name: string, fields: { labels?: Record<string, string>; nodeName?: string } = {}, nowMs = 0): void {
  const { labels = {}, nodeName } = fields
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a', labels }, spec: nodeName ? { nodeName } : {} }
  const value = Buffer.from(JSON.stringify(object))
  const kv = { key: `${prefix}a/${name}`, value, createRevision: revision, modRevision: revision, version: 1, lease: 0 }
  cache.apply({ type: 'put', kv }, revision, nowMs)
}

function remove(cache: WatchCache, revision: number, name: string): void {
  const kv = { key: `${prefix}a/${name}`, value: new Uint8Array(), createRevision: 0, modRevision: revision, version: 0, lease: 0 }
  cache.apply({ type: 'delete', kv }, revision, 0)
}

const red: Selection = {
  key: 'red',
  namespace: '',
  matchesObject: (entry) => entry.object.metadata.labels?.color === 'red',
  exactFields: {},
}

function onNode(node: string): Selection {
  return { key: `node ${node}`, namespace: '', matchesObject: (entry) => nodeNameOf(entry) === node, exactFields: { 'spec.nodeName': node } }
}

function watch(cache: WatchCache, selection: Selection, afterRevision: number | undefined, revision: number): WatchSession {
  return cache.watch({ selection, afterRevision, bookmarks: true, markInitialEvents: false }, revision)
}

function shown(item: WatchItem): string {
  if (item.type === 'BOOKMARK') return `BOOKMARK ${item.revision}${item.initialEventsEnd ? ' end' : ''}`
  return `${item.type} ${item.entry.object.metadata.name} ${item.entry.object.metadata.resourceVersion}`
}

async function next(session: WatchSession): Promise<string[]> {
  return ((await session.next()) ?? []).map(shown)
}

test('API-08 an object that enters a selection is added, one that leaves it is deleted with its last matching content', async () => {
  const cache = newCache()
  const session = watch(cache, red, 1, 1)
  put(cache, 2, 'x', { labels: { color: 'blue' } })
  put(cache, 3, 'x', { labels: { color: 'red' } })
  put(cache, 4, 'x', { labels: { color: 'red', more: '1' } })
  put(cache, 5, 'x', { labels: { color: 'green' } })
  put(cache, 6, 'x', { labels: { color: 'red' } })
  remove(cache, 7, 'x')
  const items = (await session.next()) ?? []
  assert.deepEqual(items.map(shown), ['ADDED x 3', 'MODIFIED x 4', 'DELETED x 5', 'ADDED x 6', 'DELETED x 7'])
  assert.equal(items[2]?.type !== 'BOOKMARK' && items[2]?.entry.object.metadata.labels?.color, 'red')
})

test('API-08 a watch resumes after any revision still held, without gap or repeat', async () => {
  const cache = newCache()
  for (let revision = 2; revision <= 6; revision++) put(cache, revision, `p${revision}`)
  for (let after = 1; after <= 6; after++) {
    const session = watch(cache, everything, after, 6)
    put(cache, 7 + after, 'live')
    const names = (await next(session)).filter((text) => !text.includes('live'))
    assert.deepEqual(
      names,
      [2, 3, 4, 5, 6].filter((revision) => revision > after).map((revision) => `ADDED p${revision} ${revision}`),
    )
    session.close()
  }
})

test('API-08 a watch before the kept history is refused as expired, with upstream’s text', () => {
  const cache = new WatchCache(prefix, [])
  cache.load([], 40, [], 0)
  assert.throws(
    () => watch(cache, everything, 39, 40),
    (error) => isStatus(error, 'Expired') && error.message === 'too old resource version: 39 (40)',
  )
})

test('API-08 old changes leave the ring only when there are many of them and they are stale', () => {
  const cache = newCache()
  for (let at = 0; at < 3000; at++) put(cache, at + 2, `p${at % 10}`, {}, at * 100)
  // 3000 changes, one each 100 ms: those of the last 75 s stay, but never fewer than 1024.
  const floor = 2 + 3000 - 1024 - 1
  assert.doesNotThrow(() => watch(cache, everything, floor, 3001))
  assert.throws(() => watch(cache, everything, floor - 1, 3001), /too old resource version/)
})

test('API-09 each event is encoded once for all its watchers', async () => {
  const cache = newCache()
  const sessions = Array.from({ length: 50 }, (_, at) => watch(cache, at % 2 === 0 ? everything : onNode('n1'), 1, 1))
  put(cache, 2, 'x', { nodeName: 'n1' })
  const buffers = new Set<Buffer>()
  for (const session of sessions) for (const item of (await session.next()) ?? []) if (item.type !== 'BOOKMARK') buffers.add(item.encoded({ key: 'json' }))
  assert.equal(buffers.size, 1)
  assert.deepEqual(
    [...buffers].map((bytes) => bytes.toString()),
    [
      '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"2","name":"x","namespace":"a","labels":{}},"spec":{"nodeName":"n1"}}}\n',
    ],
  )
})

test('API-09 watchers of one value of an indexed field see exactly their objects, also when they move', async () => {
  const cache = newCache()
  const one = watch(cache, onNode('n1'), 1, 1)
  const two = watch(cache, onNode('n2'), 1, 1)
  put(cache, 2, 'x', { nodeName: 'n1' })
  put(cache, 3, 'y', { nodeName: 'n2' })
  put(cache, 4, 'x', { nodeName: 'n2' })
  assert.deepEqual(await next(one), ['ADDED x 2', 'DELETED x 4'])
  assert.deepEqual(await next(two), ['ADDED y 3', 'ADDED x 4'])
})

test('API-09 a watcher that does not read is cut off, and others are not affected', async () => {
  const cache = newCache()
  const slow = watch(cache, everything, 1, 1)
  const quick = watch(cache, everything, 1, 1)
  let seen = 0
  for (let at = 0; at < 17_000; at++) {
    put(cache, at + 2, 'x')
    if (at % 1000 === 0) seen += (await next(quick)).length
  }
  assert.deepEqual([slow.ended, quick.ended, seen > 15_000], [true, false, true])
})

test('API-08 a streaming list ends its initial events with the marked bookmark', async () => {
  const cache = newCache()
  put(cache, 2, 'b')
  put(cache, 3, 'a')
  const session = cache.watch({ selection: everything, bookmarks: true, markInitialEvents: true }, 3)
  cache.bookmark(9)
  assert.deepEqual(await next(session), ['ADDED a 3', 'ADDED b 2', 'BOOKMARK 3 end', 'BOOKMARK 9'])
})

test('an announced write is not parsed again, and another write to its key is', () => {
  const cache = newCache()
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', namespace: 'a' } }
  const value = Buffer.from(JSON.stringify(object))
  cache.expect('a/x', value, object)
  const kv = { key: `${prefix}a/x`, createRevision: 2, modRevision: 2, version: 1, lease: 0 }
  cache.apply({ type: 'put', kv: { ...kv, value: Buffer.from(value) } }, 2, 0)
  assert.equal(cache.get('a/x')?.object, object)
  cache.expect('a/x', value, object)
  const other = Buffer.from(JSON.stringify({ ...object, metadata: { name: 'x', namespace: 'a', labels: { by: 'other' } } }))
  cache.apply({ type: 'put', kv: { ...kv, value: other, modRevision: 3 } }, 3, 0)
  assert.deepEqual(cache.get('a/x')?.object.metadata.labels, { by: 'other' })
})

test('API-09 the write of one of two competing writers is not parsed again, whichever announced it last', () => {
  const cache = newCache()
  const written = ['winner', 'loser'].map((by) => {
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', namespace: 'a', labels: { by } } }
    const value = Buffer.from(JSON.stringify(object))
    return { object, value, announced: cache.expect('a/x', value, object) }
  })
  const [winner, loser] = written
  const kv = { key: `${prefix}a/x`, createRevision: 2, modRevision: 2, version: 1, lease: 0, value: Buffer.from(winner?.value ?? '') }
  cache.apply({ type: 'put', kv }, 2, 0)
  assert.equal(cache.get('a/x')?.object, winner?.object)
  loser?.announced.done()
  cache.apply({ type: 'put', kv: { ...kv, modRevision: 3, value: Buffer.from(loser?.value ?? '') } }, 3, 0)
  assert.notEqual(cache.get('a/x')?.object, loser?.object)
})

const largeBytes = 100_000

/** An object of {@link largeBytes} in namespace `b`. */
function putLarge(cache: WatchCache, revision: number, name: string, labels: Record<string, string> = {}): void {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'b', labels }, text: 'x'.repeat(largeBytes) }
  const kv = { key: `${prefix}b/${name}`, createRevision: revision, modRevision: revision, version: 1, lease: 0 }
  cache.apply({ type: 'put', kv: { ...kv, value: Buffer.from(JSON.stringify(object)) } }, revision, 0)
}

function cacheWithBudgets(budgets = cacheBudgets()): WatchCache {
  const cache = new WatchCache(prefix, [nodeIndex], undefined, budgets)
  cache.load([], 1, [], 0)
  return cache
}

const namespace = (name: string): Selection => ({ key: `namespace ${name}`, namespace: name, exactFields: {} })
const isExpired = (error: unknown) => isStatus(error, 'Expired')

test('API-09 a watch starts with more large objects than unread ones may hold, and no watch is cut off', () => {
  const budgets = { ...cacheBudgets(), history: new HistoryBudget(), unread: new UnreadBudget(10 * largeBytes) }
  const cache = cacheWithBudgets(budgets)
  const innocent = watch(cache, everything, 1, 1)
  const objects = 40
  for (let at = 0; at < objects; at++) putLarge(cache, at + 2, `p${at}`)
  const starting = watch(cache, everything, undefined, objects + 1)
  assert.equal(starting.take()?.length, objects)
  assert.deepEqual([innocent.ended, starting.ended, budgets.unread.bytes], [false, false, 0])
})

test('API-09 what watches hold of replaced versions counts until they close, and those with the oldest ones are cut off', () => {
  const budgets = { ...cacheBudgets(), history: new HistoryBudget(), unread: new UnreadBudget(10 * largeBytes) }
  const cache = cacheWithBudgets(budgets)
  const objects = 6
  for (let at = 0; at < objects; at++) putLarge(cache, at + 2, `p${at}`)
  const starting = watch(cache, everything, undefined, objects + 1)
  starting.take(1)
  const late = watch(cache, everything, objects + 1, objects + 1)
  for (let at = 0; at < objects; at++) putLarge(cache, at + 2 + objects, `p${at}`)
  assert.ok(budgets.unread.bytes > objects * largeBytes)
  for (let at = 0; at < objects; at++) putLarge(cache, at + 2 + 2 * objects, `p${at}`)
  assert.deepEqual([starting.ended, late.ended], [true, false])
  assert.deepEqual([starting.take(), starting.take()], [undefined, undefined])
  late.close()
  late.take()
  assert.equal(budgets.unread.bytes, 0)
})

test('API-08 a watch resumes after large changes of another namespace that were evicted from history', async () => {
  const cache = cacheWithBudgets({ ...cacheBudgets(), history: new HistoryBudget(3 * largeBytes), unread: new UnreadBudget() })
  put(cache, 2, 'small')
  for (let revision = 3; revision < 20; revision++) putLarge(cache, revision, 'large')
  put(cache, 20, 'later')
  assert.deepEqual(await next(watch(cache, namespace('a'), 1, 20)), ['ADDED small 2', 'ADDED later 20'])
  for (const selection of [everything, namespace('b')]) assert.throws(() => watch(cache, selection, 1, 20), isExpired)
})

test('API-08 a watch resumes after the newest evicted change, unless a selector needs the version before', async () => {
  const cache = cacheWithBudgets({ ...cacheBudgets(), history: new HistoryBudget(2.5 * largeBytes), unread: new UnreadBudget() })
  for (let revision = 2; revision <= 8; revision++) putLarge(cache, revision, 'large', { color: 'red' })
  // Versions 6 and 7 are held in addition to the current one.
  assert.throws(() => watch(cache, everything, 4, 8), isExpired)
  assert.deepEqual(await next(watch(cache, everything, 5, 8)), ['MODIFIED large 6', 'MODIFIED large 7', 'MODIFIED large 8'])
  assert.throws(() => watch(cache, red, 5, 8), isExpired)
  assert.deepEqual(await next(watch(cache, red, 6, 8)), ['MODIFIED large 7', 'MODIFIED large 8'])
})

test('API-08 large objects that were written once cost history nothing', async () => {
  const cache = cacheWithBudgets({ ...cacheBudgets(), history: new HistoryBudget(3 * largeBytes), unread: new UnreadBudget() })
  for (let at = 0; at < 20; at++) putLarge(cache, at + 2, `p${at}`)
  assert.equal((await next(watch(cache, everything, 1, 21))).length, 20)
})
