import assert from 'node:assert/strict'
import test from 'node:test'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { Cacher } from './cacher.ts'
import { everything } from './selection.ts'

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

test('API-07 a revision that does not come is refused as too large after three seconds', async () => {
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

test('a store that breaks ends the watches, and everything is read again', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  let breakWatch = () => {}
  const fragile: Store = new Proxy(store, {
    get: (target, key) => {
      if (key !== 'watch') return Reflect.get(target, key).bind(target)
      return (...[options, onBatch, signal]: Parameters<Store['watch']>) => {
        const broken = new AbortController()
        const ended = new Promise<void>((_, reject) => {
          breakWatch = () => {
            broken.abort()
            reject(new Error('the connection broke'))
          }
        })
        return Promise.race([target.watch(options, onBatch, AbortSignal.any([signal, broken.signal])), ended])
      }
    },
  })
  await put(store, 'one')
  const { cacher, close } = start(fragile, clock)
  await cacher.loaded
  await clock.advance(0)
  const session = cacher
    .cache(prefix)
    .watch({ selection: everything, afterRevision: cacher.revision, bookmarks: false, markInitialEvents: false }, cacher.revision)
  breakWatch()
  assert.equal(await session.next(), undefined)
  const revision = await put(store, 'two')
  await clock.advance(1_000)
  await cacher.waitFor(revision)
  assert.deepEqual(
    [...cacher.cache(prefix).select(everything)].map((entry) => entry.key),
    ['a/one', 'a/two'],
  )
  await close()
})
