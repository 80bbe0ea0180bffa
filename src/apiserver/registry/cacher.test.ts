import assert from 'node:assert/strict'
import test from 'node:test'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import { type Logger, noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { changedStore } from '#testing/changedStore'
import { Cancellation } from '../core/cancellation.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { Cacher } from './cacher.ts'
import { everything } from './selection.ts'
import { StoredValues } from './storedValues.ts'

const prefix = '/registry/configmaps/'
const value = (name: string) => Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' } }))

async function put(store: Store, name: string): Promise<number> {
  const key = `${prefix}a/${name}`
  return (await store.transact({ compare: [], success: [{ type: 'put', key, value: value(name) }] })).revision
}

function start(store: Store, clock: VirtualClock) {
  const cacher = new Cacher({ store, clock, log: noLog }, [{ prefix, indexes: [] }])
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  const close = async () => {
    stop.abort()
    await running
  }
  return { cacher, close }
}

test('API-07 a consistent read waits for the newest write, and writes of other resources count too', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  await put(store, 'before')
  const { cacher, close } = start(store, clock)
  await cacher.loaded
  const revision = await put(store, 'after')
  await cacher.waitUntilCurrent()
  assert.deepEqual(
    [...cacher.cache(prefix).select(everything)].map((entry) => entry.key),
    ['a/after', 'a/before'],
  )
  const other = await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/other/x', value: value('x') }] })
  await cacher.waitFor(other.revision)
  assert.deepEqual([cacher.revision, cacher.cache(prefix).changedAt], [other.revision, revision])
  await close()
})

test('API-07 a deletion before the start counts as a change, so that lists of an earlier revision are read from the store', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  await put(store, 'kept')
  await put(store, 'deleted')
  const { revision } = await store.transact({ compare: [], success: [{ type: 'delete', from: `${prefix}a/deleted` }] })
  const { cacher, close } = start(store, clock)
  await cacher.loaded
  assert.ok(cacher.cache(prefix).changedAt >= revision)
  await close()
})

test('API-07 a list at a future revision is refused as too large after three seconds', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const { cacher, close } = start(createMemoryStore({ clock }), clock)
  await cacher.loaded
  const waiting = assert.rejects(cacher.waitFor(99) ?? Promise.resolve(), (error) => {
    const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 }
    assert.deepEqual(isStatus(error) && [error.code, error.message, error.details], [504, 'Timeout: Too large resource version: 99, current: 1', details])
    return true
  })
  await clock.advance(3_000)
  await waiting
  await close()
})

test('API-07 reads that wait for a first reading which never ends are refused, the server shuts down or the client leaves', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const silence = new AbortController()
  const silent = new Promise<never>((_, reject) => silence.signal.addEventListener('abort', () => reject(new Error('the store was closed'))))
  const { cacher, close } = start(changedStore(store, { range: () => silent }), clock)
  const left = new Cancellation()
  const leaving = assert.rejects(cacher.waitUntilCurrent(left) ?? Promise.resolve(), /the client left/)
  const waiting = assert.rejects(cacher.waitUntilCurrent() ?? Promise.resolve(), (error) => isStatus(error))
  left.abort(new Error('the client left'))
  await leaving
  const closed = close()
  silence.abort()
  await closed
  await waiting
  await assert.rejects(cacher.waitUntilCurrent() ?? Promise.resolve(), (error) => isStatus(error))
})

test('API-07 a read whose client has left while the revision was asked for does not wait', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const { cacher, close } = start(createMemoryStore({ clock }), clock)
  await cacher.loaded
  const left = new Cancellation(AbortSignal.abort(new Error('the client left')))
  await assert.rejects(cacher.waitFor(99, left) ?? Promise.resolve(), /the client left/)
  await close()
})

test('API-07 a write that 20,000 reads wait for lets them go in time that grows with their number', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const { cacher, close } = start(store, clock)
  await cacher.loaded
  const waiting = Promise.all(Array.from({ length: 20_000 }, () => cacher.waitFor(2)))
  const before = process.cpuUsage()
  await put(store, 'awaited')
  await waiting
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 400_000, `${user + system} µs`)
  await close()
})

/** A store whose watch can be broken, as a connection breaks; `ranges` counts its reads. */
function fragile(store: Store) {
  const state = { breakWatch: () => {}, ranges: 0, isDown: false }
  const watch: Store['watch'] = (options, onBatch, signal) => {
    if (state.isDown) return Promise.reject(new Error('the store is out of reach'))
    const broken = abortScope(signal)
    const ended = new Promise<void>((_, reject) => {
      state.breakWatch = () => {
        broken.abort()
        reject(new Error('the connection broke'))
      }
    })
    return Promise.race([store.watch(options, onBatch, broken.signal), ended])
  }
  const range: Store['range'] = (...args) => {
    state.ranges++
    return store.range(...args)
  }
  return { proxy: changedStore(store, { watch, range }), state }
}

const keysOf = (cacher: Cacher) => [...cacher.cache(prefix).select(everything)].map((entry) => entry.key)
const openWatch = (cacher: Cacher) =>
  cacher.cache(prefix).watch({ selection: everything, afterRevision: cacher.revision, bookmarks: false, markInitialEvents: false }, cacher.revision)
type Session = ReturnType<typeof openWatch>

async function seen(session: Session): Promise<string[]> {
  const items = (await session.next()) ?? []
  return items.map((item) => (item.type === 'BOOKMARK' ? 'BOOKMARK' : `${item.type} ${item.entry.key} ${item.revision}`))
}

test('API-09 a store watch that breaks resumes: clients keep their watches, and nothing is read again', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  await put(store, 'one')
  const { proxy, state } = fragile(store)
  const { cacher, close } = start(proxy, clock)
  await cacher.loaded
  await clock.advance(0)
  const session = openWatch(cacher)
  const reads = state.ranges
  state.isDown = true
  state.breakWatch()
  const revision = await put(store, 'two')
  await clock.advance(2_500)
  state.isDown = false
  await clock.advance(1_000)
  await cacher.waitFor(revision)
  assert.deepEqual([await seen(session), keysOf(cacher), state.ranges - reads], [[`ADDED a/two ${revision}`], ['a/one', 'a/two'], 0])
  await close()
})

test('API-09 HA-01 a store watch that breaks resumes after 50 ms, after twice as long when it breaks again at once, and after 50 ms when it has lasted', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const { proxy, state } = fragile(store)
  const { cacher, close } = start(proxy, clock)
  await cacher.loaded
  await clock.advance(2_000)
  for (const [name, pauseMs, lastsMs] of [
    ['one', 50, 0],
    ['two', 100, 5_000],
    ['three', 50, 0],
  ] as const) {
    state.breakWatch()
    const revision = await put(store, name)
    await clock.advance(pauseMs - 1)
    assert.ok(cacher.revision < revision, `${name} is seen early`)
    await clock.advance(1)
    await cacher.waitFor(revision)
    await clock.advance(lastsMs)
  }
  await close()
})

test('API-09 watches end and earlier revisions are too old when the history for a broken store watch is compacted, and listeners get the difference', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const remove = (name: string) => store.transact({ compare: [], success: [{ type: 'delete', from: `${prefix}a/${name}` }] })
  for (const name of ['changed', 'deleted', 'replaced', 'same']) await put(store, name)
  const { proxy, state } = fragile(store)
  const { cacher, close } = start(proxy, clock)
  await cacher.loaded
  await clock.advance(0)
  const session = openWatch(cacher)
  const heard: string[] = []
  cacher.cache(prefix).onChange(({ type, object }) => heard.push(`${type} ${object.metadata.name}`))
  state.isDown = true
  state.breakWatch()
  const changed = await put(store, 'changed')
  await remove('deleted')
  await remove('replaced')
  const replaced = await put(store, 'replaced')
  const added = await put(store, 'added')
  await store.compact(added)
  state.isDown = false
  await clock.advance(3_000)
  await cacher.waitFor(added)
  const wanted = [
    `MODIFIED a/changed ${changed}`,
    `DELETED a/replaced ${replaced - 1}`,
    `ADDED a/replaced ${replaced}`,
    `ADDED a/added ${added}`,
    `DELETED a/deleted ${added}`,
  ]
  assert.equal(await session.next(), undefined)
  assert.deepEqual(
    heard,
    wanted.map((text) => text.replace(/a\/(\w+) .*/, '$1')),
  )
  assert.deepEqual(keysOf(cacher), ['a/added', 'a/changed', 'a/replaced', 'a/same'])
  const resume = (afterRevision: number) =>
    cacher.cache(prefix).watch({ selection: everything, afterRevision, bookmarks: false, markInitialEvents: false }, cacher.revision)
  assert.throws(
    () => resume(changed),
    (error) => isStatus(error, 'Expired'),
  )
  const later = await put(store, 'later')
  await cacher.waitFor(later)
  assert.deepEqual(await seen(resume(added)), [`ADDED a/later ${later}`])
  await close()
})

test('API-07 a consistent read does not wait for writes outside the registry', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const { cacher, close } = start(store, clock)
  await cacher.loaded
  await store.transact({ compare: [], success: [{ type: 'put', key: '/other/x', value: value('x') }] })
  await cacher.waitUntilCurrent()
  assert.equal(cacher.revision, 2)
  await close()
})

test('API-07 a consistent read waits for the revision that a remote store names', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const remote = changedStore(store, { latestRevision: async () => store.latestRevision() })
  const { cacher, close } = start(remote, clock)
  await cacher.loaded
  const revision = await put(store, 'one')
  await cacher.waitUntilCurrent()
  assert.ok(cacher.revision >= revision)
  await close()
})

test('API-07 a first reading of many pages holds all keys of one revision', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const names = Array.from({ length: 4_500 }, (_, index) => `n${String(index).padStart(5, '0')}`)
  const success = names.map((name) => ({ type: 'put' as const, key: `${prefix}a/${name}`, value: value(name) }))
  await store.transact({ compare: [], success })
  const { proxy, state } = fragile(store)
  const { cacher, close } = start(proxy, clock)
  await cacher.loaded
  assert.deepEqual([keysOf(cacher), state.ranges], [names.map((name) => `a/${name}`), 3])
  await close()
})

test('API-07 a damaged value is counted and logged by its key and without its content, and the other objects are served', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  await put(store, 'whole')
  const damage = (key: string) => store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from('{"data":hunter2') }] })
  await damage(`${prefix}a/damaged`)
  const counted: unknown[] = []
  const counter = { inc: (labels: unknown) => void counted.push(labels), series: () => ({ inc: () => {} }) }
  const logged: string[] = []
  const log: Logger = { ...noLog, error: (error, _message, more) => void logged.push(`${(error as Error).message} ${JSON.stringify(more)}`) }
  const values = new StoredValues('configmaps', undefined)
  const cacher = new Cacher({ store, clock, log, metrics: { ...noMetrics, counter: () => counter } }, [{ prefix, indexes: [], values }])
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  await cacher.loaded
  const { revision } = await damage(`${prefix}a/later`)
  await cacher.waitFor(revision)
  const cache = cacher.cache(prefix)
  assert.deepEqual([cache.get('a/whole')?.key, cache.unreadable.map(({ kv }) => kv.key)], ['a/whole', [`${prefix}a/damaged`, `${prefix}a/later`]])
  assert.throws(() => cache.get('a/later'), /the value is no JSON/)
  const labels = { group: '', resource: 'configmaps' }
  assert.deepEqual(counted, [labels, labels])
  assert.deepEqual(logged, [`the value is no JSON {"key":"${prefix}a/damaged"}`, `the value is no JSON {"key":"${prefix}a/later"}`])
  const repaired = await put(store, 'later')
  await cacher.waitFor(repaired)
  assert.deepEqual([cache.get('a/later')?.key, cache.unreadable.length], ['a/later', 1])
  stop.abort()
  await running
})

/** Values whose key must be fetched, such as from a KMS: `decrypt` decides when, and with what result. */
function valuesRead(decrypt: StoredValues['decrypt']): StoredValues {
  const values = new StoredValues('', undefined)
  values.decrypt = decrypt
  return values
}

test('API-07 a first reading of values that take long to decode gives others a turn after each, also across resources', async () => {
  let nowMs = 0
  let decodedInTurn = 0
  let mostInTurn = 0
  const turn = async () => {
    decodedInTurn = 0
  }
  class SlowClock extends VirtualClock {
    override monotonicMs() {
      return nowMs
    }
  }
  const clock = new SlowClock('2026-01-01T00:00:00Z', undefined, turn)
  const decode = (stored: Uint8Array) => {
    nowMs += 25
    mostInTurn = Math.max(mostInTurn, ++decodedInTurn)
    return stored
  }
  const values = new StoredValues('configmaps', undefined, { encode: (_object, plain) => plain, decode, isCurrent: () => true })
  const store = createMemoryStore({ clock })
  const names = ['one', 'two', 'three']
  for (const name of names) await put(store, name)
  for (const name of names) await store.transact({ compare: [], success: [{ type: 'put', key: `${addedPrefix}a/${name}`, value: value(name) }] })
  const resources = [prefix, addedPrefix].map((one) => ({ prefix: one, indexes: [], values }))
  const cacher = new Cacher({ store, clock, log: noLog }, resources)
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  await cacher.loaded
  assert.deepEqual([nowMs, mostInTurn], [6 * 25, 1])
  assert.equal([...cacher.cache(addedPrefix).select(everything)].length, 3)
  stop.abort()
  await running
})

const addedPrefix = '/registry/example.com/things/'

test('API-22 a resource that is added while the first reading waits for a key is filled', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  await put(store, 'one')
  await store.transact({ compare: [], success: [{ type: 'put', key: `${addedPrefix}a/thing`, value: value('thing') }] })
  let release = () => {}
  const fetched = new Promise<void>((resolve) => {
    release = resolve
  })
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const values = valuesRead(async (_key, stored) => {
    begin()
    await fetched
    return stored
  })
  const cacher = new Cacher({ store, clock, log: noLog }, [{ prefix, indexes: [], values }])
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  await begun
  const adding = cacher.add({ prefix: addedPrefix, indexes: [] })
  release()
  const added = await adding
  assert.deepEqual(
    [...added.select(everything)].map((entry) => entry.key),
    ['a/thing'],
  )
  stop.abort()
  await running
})

test('API-22 a listener that throws keeps neither other listeners nor watches from a change, and is logged once with the key', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const logged: string[] = []
  const log: Logger = { ...noLog, error: (_error, message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`) }
  const cacher = new Cacher({ store, clock, log }, [{ prefix, indexes: [] }])
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  await cacher.loaded
  const heard: string[] = []
  cacher.cache(prefix).onChange(() => {
    throw new Error('a listener fails')
  })
  cacher.cache(prefix).onChange(({ object }) => heard.push(object.metadata.name ?? ''))
  const session = openWatch(cacher)
  for (const name of ['one', 'two']) await put(store, name)
  await cacher.waitFor(3)
  assert.deepEqual(heard, ['one', 'two'])
  assert.deepEqual(
    (await session.next())?.map((item) => (item.type === 'BOOKMARK' ? '' : item.entry.key)),
    ['a/one', 'a/two'],
  )
  assert.deepEqual(
    logged.map((text) => text.replace(prefix, '')),
    ['one', 'two'].map((name) => `A component failed on a change of an object {"key":"a/${name}"}`),
  )
  stop.abort()
  await running
})

test('API-22 objects that cannot be read are tried again, also after a read rejects and a listener throws', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  for (const name of ['early', 'late']) await put(store, name)
  let attempt = 0
  const values = valuesRead(async (key, stored) => {
    if (attempt === 0) return new UnreadableValue(new Error('no key'))
    if (attempt === 1 && key.endsWith('/late')) throw new Error('the key service broke')
    return stored
  })
  const cacher = new Cacher({ store, clock, log: noLog }, [{ prefix, indexes: [], values }])
  const heard: string[] = []
  cacher.cache(prefix).onChange(({ object }) => {
    throw new Error(`a listener fails at ${object.metadata.name}`)
  })
  cacher.cache(prefix).onChange(({ object }) => heard.push(object.metadata.name ?? ''))
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  await cacher.loaded
  attempt = 1
  await clock.advance(1_000)
  assert.deepEqual([keysOf(cacher), heard], [['a/early'], ['early']])
  attempt = 2
  await clock.advance(2_000)
  assert.deepEqual(
    [keysOf(cacher), heard],
    [
      ['a/early', 'a/late'],
      ['early', 'late'],
    ],
  )
  stop.abort()
  await running
})

for (const [count, isLate] of [
  [1_000, false],
  [1_001, true],
] as const) {
  test(`X18 with late parsing, a damaged value among ${count} of a resource is found ${isLate ? 'when it is read' : 'at the load'}`, async () => {
    const clock = new VirtualClock('2026-01-01T00:00:00Z')
    const store = createMemoryStore({ clock })
    for (let at = 1; at < count; at++) await put(store, `good-${at}`)
    await store.transact({ compare: [], success: [{ type: 'put', key: `${prefix}a/damaged`, value: Buffer.from('{"kind":') }] })
    const cacher = new Cacher({ store, clock, log: noLog, parsesLate: true }, [{ prefix, indexes: [] }])
    const stop = new AbortController()
    const running = cacher.run(stop.signal)
    await cacher.loaded
    const cache = cacher.cache(prefix)
    assert.equal(cache.unreadable.length, isLate ? 0 : 1)
    const read = () => cache.get('a/damaged')?.object
    assert.throws(read, (error) => isStatus(error, 'InternalError') && /the value is no JSON/.test(error.message))
    assert.equal(cache.get('a/good-1')?.object.metadata.name, 'good-1')
    stop.abort()
    await running
  })
}
