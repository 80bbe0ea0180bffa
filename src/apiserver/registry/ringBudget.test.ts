import assert from 'node:assert/strict'
import test from 'node:test'
import { isStatus } from '#api/machinery/status'
import { RingBudget } from './ringBudget.ts'
import { everything } from './selection.ts'
import { cacheBudgets, WatchCache } from './watchCache.ts'

const paddingBytes = 10_000

function newCache(resource: string, ring: RingBudget): WatchCache {
  const cache = new WatchCache(`/registry/${resource}/`, [], undefined, { ...cacheBudgets(), ring })
  cache.load([], 1, [], 0)
  return cache
}

function put(cache: WatchCache, revision: number, name: string, length = paddingBytes): void {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' }, data: { text: 'x'.repeat(length) } }
  const kv = {
    key: `${cache.prefix}a/${name}`,
    value: Buffer.from(JSON.stringify(object)),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0,
  }
  cache.apply({ type: 'put', kv }, revision, 0)
}

const resume = (cache: WatchCache, afterRevision: number, revision: number) =>
  cache.watch({ selection: everything, afterRevision, bookmarks: false, markInitialEvents: false }, revision)

test('API-08 the histories of all watch caches stay within one number of bytes, and the largest loses its changes', async () => {
  const ring = new RingBudget(100 * paddingBytes)
  const [quiet, busy] = [newCache('quiet', ring), newCache('busy', ring)]
  put(quiet, 2, 'one')
  put(quiet, 3, 'one')
  for (let revision = 4; revision < 500; revision++) put(busy, revision, 'one')
  assert.ok(ring.bytes <= 100 * paddingBytes, `${ring.bytes} bytes`)
  assert.throws(
    () => resume(busy, 300, 499),
    (error) => isStatus(error, 'Expired'),
  )
  assert.equal(resume(quiet, 2, 499).take()?.length, 1)
  assert.deepEqual(
    resume(busy, 490, 499)
      .take()
      ?.map((item) => item.type === 'MODIFIED' && item.revision),
    [491, 492, 493, 494, 495, 496, 497, 498, 499],
  )
})

test('API-08 a closed watch cache gives the memory of its history back', () => {
  const ring = new RingBudget()
  const [kept, closed] = [newCache('kept', ring), newCache('closed', ring)]
  put(kept, 2, 'one')
  const before = ring.bytes
  for (let revision = 3; revision < 300; revision++) put(closed, revision, 'one')
  assert.ok(ring.bytes > 290 * paddingBytes)
  closed.close()
  assert.equal(ring.bytes, before)
})

test('API-08 a deletion counts both versions that only the history keeps, up to the size at which the other budget counts them', () => {
  const ring = new RingBudget()
  const cache = newCache('configmaps', ring)
  const length = 40_000
  put(cache, 2, 'one', length)
  cache.apply({ type: 'delete', kv: { key: `${cache.prefix}a/one`, value: new Uint8Array(0), createRevision: 0, modRevision: 3, version: 0, lease: 0 } }, 3, 0)
  assert.ok(ring.bytes > 2 * length, `${ring.bytes} bytes`)
})

test('API-08 a second load that exceeds the bytes of the histories reaches every listener, and keeps the newest changes', () => {
  const ring = new RingBudget(20 * paddingBytes)
  const cache = newCache('configmaps', ring)
  for (let revision = 2; revision < 102; revision++) put(cache, revision, `m${revision}`)
  const gone: string[] = []
  cache.onChange(({ type, object }) => void (type === 'DELETED' && gone.push(object.metadata.name ?? '')))
  for (const change of cache.load([], 200, [], 0)) cache.callListeners(change)
  assert.equal(gone.length, 100)
  assert.ok(ring.bytes <= 20 * paddingBytes)
  assert.equal(cache.size, 0)
})

test('API-08 what has passed the budget of decoded changes does not accumulate, and the newest changes stay decoded', () => {
  const ring = new RingBudget(1 << 30, 20_000)
  const holder = { bytes: 0, length: 0, forgetOldest: () => assert.fail('there is room') }
  const decoded = new Set<number>()
  for (let number = 0; number < 50_000; number++) {
    decoded.add(number)
    ring.add(holder, { dropDecoded: () => void decoded.delete(number) }, 1_000)
    if (number < 49_900) ring.release(holder, 1_000)
  }
  assert.ok(ring.places < 5_000, `${ring.places} places`)
  assert.deepEqual([decoded.has(49_999), decoded.has(49_990), decoded.has(49_950), decoded.has(0)], [true, true, false, false])
})
