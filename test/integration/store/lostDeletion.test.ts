/**
 * ETC-20: an API server's cache over etcd 3.4 whose watch was interrupted, while an object was deleted and history was compacted at the revision of the deletion. A
 * watch that resumes at that revision gets neither the deletion nor an error from etcd, and the server would never stop serving the object: such a round of
 * `make suites ONLY=linearizability` is not linearizable.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cacher } from '#apiserver/registry/cacher'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { openEtcdStore } from '#store/drivers/etcd/etcdStore'
import type { Store } from '#store/store'
import { realClock } from '#testing/realClock'
import { obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'

const prefix = '/registry/configmaps/'
const key = `${prefix}a/one`
const value = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'a' } }))

/** The store, whose watches wait for `allowed` before they reach etcd, and end with `interrupt()`. */
function interruptible(store: Store) {
  let allowed = gate()
  let broken = new AbortController()
  allowed.resolve()
  const watch: Store['watch'] = async (options, onBatch, signal) => {
    await allowed.promise
    await store.watch(options, onBatch, AbortSignal.any([signal, broken.signal]))
  }
  const interrupt = () => {
    allowed = gate()
    broken.abort()
    broken = new AbortController()
    return () => allowed.resolve()
  }
  return { store: new Proxy(store, { get: (target, name) => (name === 'watch' ? watch : bound(target, name)) }), interrupt }
}

/** A promise that another function resolves. */
function gate() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve: () => resolve() }
}

function bound(target: Store, name: string | symbol): unknown {
  const found: unknown = Reflect.get(target, name)
  return typeof found === 'function' ? found.bind(target) : found
}

test('ETC-20 a consistent read does not find a deleted object, whose deletion was compacted while the watch was interrupted', {
  skip: obstacleToEtcd(),
  timeout: 60_000,
}, async () => {
  const server = await startEtcd()
  const real = await openEtcdStore({ endpoints: [server.url], clock: realClock, random: seededRandom(1) })
  const { store, interrupt } = interruptible(real)
  const cacher = new Cacher({ store, clock: realClock, log: noLog }, [{ prefix, indexes: [] }])
  const stop = new AbortController()
  const running = cacher.run(stop.signal)
  try {
    await cacher.loaded
    await real.transact({ compare: [], success: [{ type: 'put', key, value }] })
    await cacher.waitUntilCurrent()
    assert.ok(cacher.cache(prefix).get('a/one'), 'the watch works')
    const resume = interrupt()
    const { revision } = await real.transact({ compare: [], success: [{ type: 'delete', from: key }] })
    await real.compact(revision)
    resume()
    // Another change, by which the cache sees that the watch has passed the deletion.
    await real.transact({ compare: [], success: [{ type: 'put', key: `${prefix}a/two`, value }] })
    await cacher.waitUntilCurrent()
    assert.equal(cacher.cache(prefix).get('a/one'), undefined)
  } finally {
    stop.abort()
    await running
    await real.close()
    await server.stop()
  }
})
