import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { pods } from '../builtIn.ts'
import { createClient } from '../clientOverTransport.ts'
import { readYourWrites } from './readYourWrites.ts'
import { createSharedInformer, type SharedInformerOptions } from './sharedInformer.ts'
import { createSharedInformerFactory } from './sharedInformerFactory.ts'

const pathOf = (name: string) => `/api/v1/namespaces/x/pods/${name}`
const put = (server: HistoryTransport, name: string, fields = {}) => server.put(pathOf(name), anObject('Pod', { namespace: 'x', name }, fields))

async function start(options: SharedInformerOptions<Pod> = {}) {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const client = createClient(server).of(pods)
  const informer = createSharedInformer(client, { clock, random: seededRandom(1), log: noLog }, options)
  const stopping = new AbortController()
  const done = informer.run(stopping.signal)
  await clock.advance(0)
  const stop = async () => {
    stopping.abort()
    await done
  }
  return { server, clock, client, informer, stop }
}

test('CGO-04 a handler gets each object once, added during a delivery; a handler gets nothing more, removed during a delivery', async () => {
  const { server, clock, informer, stop } = await start()
  const heard: string[] = []
  const registration = informer.addHandler({
    onAdd: ({ metadata }) => {
      other.remove()
      if (metadata.name === 'a') informer.addHandler({ onAdd: (object) => heard.push(`new ${object.metadata.name}`) })
    },
  })
  const other = informer.addHandler({ onAdd: ({ metadata }) => heard.push(`other ${metadata.name}`) })
  put(server, 'a')
  put(server, 'b')
  await clock.advance(0)
  assert.deepEqual(heard, ['new a', 'new b'])
  assert.equal(registration.hasSynced(), true)
  await stop()
})

test('CGO-04 a transform decides what the store and the handlers see, of deletions too', async () => {
  const transform = (pod: Frozen<Pod>): Frozen<Pod> => ({ ...pod, spec: { containers: [] } })
  const { server, clock, informer, stop } = await start({ transform })
  const seen: unknown[] = []
  informer.addHandler({ onAdd: ({ spec }) => seen.push(spec), onUpdate: (old, { spec }) => seen.push(old.spec, spec), onDelete: ({ spec }) => seen.push(spec) })
  put(server, 'a', { spec: { containers: [{ name: 'c' }] } })
  put(server, 'a', { spec: { containers: [{ name: 'd' }] } })
  await clock.advance(0)
  assert.deepEqual(informer.store.get('x/a')?.spec, { containers: [] })
  server.remove(pathOf('a'))
  await clock.advance(0)
  assert.deepEqual(
    seen,
    Array.from({ length: 4 }, () => ({ containers: [] })),
  )
  await stop()
})

test('CGO-04 a cache can be waited for until it has a version, and a write until the cache has it', async () => {
  const { server, clock, client, informer, stop } = await start()
  const never = new AbortController()
  let caughtUp = false
  const waiting = informer.caughtUp('3', never.signal).then(() => {
    caughtUp = true
  })
  put(server, 'a')
  await clock.advance(0)
  assert.deepEqual([informer.lastSyncResourceVersion(), caughtUp], ['2', false])
  put(server, 'b')
  await clock.advance(0)
  await waiting

  const guarded = readYourWrites(client, informer, clock)
  const made = await guarded.create({ metadata: { namespace: 'x', name: 'c' }, spec: { containers: [] } })
  assert.equal(informer.store.get('x/c'), made)
  await guarded.patch({ namespace: 'x', name: 'c' }, 'merge', { metadata: { labels: { l: '1' } } })
  assert.equal(informer.store.get('x/c')?.metadata.labels?.l, '1')
  await stop()
})

test('CGO-04 a write returns after the limit and succeeds, the cache does not advance', async () => {
  const { server, clock, client, informer, stop } = await start()
  await stop()
  let made = false
  const writing = readYourWrites(client, informer, clock, { limitMs: 3_000 })
    .create({ metadata: { namespace: 'x', name: 'c' }, spec: { containers: [] } })
    .then(() => {
      made = true
    })
  await clock.advance(2_999)
  assert.deepEqual([server.objects().length, made], [1, false])
  await clock.advance(1)
  await writing
})

test('CGO-04 a factory narrows what its informers ask for, and what they keep', async () => {
  const server = new HistoryTransport()
  put(server, 'a', { spec: { containers: [] } })
  const clock = new VirtualClock()
  const factory = createSharedInformerFactory(
    createClient(server),
    { clock, random: seededRandom(1), log: noLog },
    {
      namespace: 'x',
      tweakListOptions: ({ resource }, options) => ({ ...options, labelSelector: `for=${resource}` }),
      transform: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }),
    },
  )
  const stopping = new AbortController()
  const done = factory.run(stopping.signal)
  const informer = factory.of(pods)
  await factory.synced(stopping.signal)
  assert.deepEqual([server.requests[0]?.path, server.requests[0]?.query?.labelSelector], ['/api/v1/namespaces/x/pods', 'for=pods'])
  assert.deepEqual(Object.keys(informer.store.get('x/a') ?? {}), ['apiVersion', 'kind', 'metadata'])
  stopping.abort()
  await done
})

test('CGO-04 objects that an index function, a transform or a handler fails on hold up no other object, at the start and later', async () => {
  const fails = (pod: Frozen<Pod>, how: string) => {
    if (pod.metadata.name?.startsWith(how)) throw new Error(`cannot ${how}`)
  }
  const transform = (pod: Frozen<Pod>): Frozen<Pod> => {
    fails(pod, 'transform')
    return pod
  }
  const byNode = (pod: Frozen<Pod>) => {
    fails(pod, 'index')
    return ['node']
  }
  const server = new HistoryTransport()
  for (const name of ['handle-1', 'index-1', 'transform-1', 'z-1']) put(server, name)
  const clock = new VirtualClock()
  const counted: unknown[] = []
  const counter = { inc: (labels: unknown) => void counted.push(labels), series: () => ({ inc: () => {} }) }
  const deps = { clock, random: seededRandom(1), log: noLog, metrics: { ...noMetrics, counter: () => counter } }
  const informer = createSharedInformer(createClient(server).of(pods), deps, { transform, indexers: { byNode } })
  const heard: (string | undefined)[] = []
  informer.addHandler({
    onAdd: (pod) => {
      fails(pod, 'handle')
      heard.push(pod.metadata.name)
    },
  })
  const stopping = new AbortController()
  const done = informer.run(stopping.signal)
  await clock.advance(0)
  assert.deepEqual([informer.hasSynced(), heard], [true, ['index-1', 'z-1']])
  for (const name of ['handle-2', 'index-2', 'transform-2', 'z-2']) put(server, name)
  server.remove(pathOf('index-1'))
  await clock.advance(0)
  assert.deepEqual(heard, ['index-1', 'z-1', 'index-2', 'z-2'])
  assert.deepEqual([...informer.store.keys()].sort(), ['x/handle-1', 'x/handle-2', 'x/index-2', 'x/z-1', 'x/z-2'])
  assert.equal(informer.store.byIndex('byNode', 'node').length, 4)
  const once = ['event handler', 'index byNode', 'transform'].map((what) => ({ resource: 'pods', what }))
  assert.deepEqual(counted, [...once, ...once])
  stopping.abort()
  await done
})

test('CGO-04 a factory stops an informer without handlers, and starts a new one when the resource is asked for again', async () => {
  const server = new HistoryTransport()
  put(server, 'a')
  const clock = new VirtualClock()
  const factory = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const stopping = new AbortController()
  const done = factory.run(stopping.signal)
  const informer = factory.of(pods)
  const [first, second] = [informer.addHandler({}), informer.addHandler({})]
  await factory.synced(stopping.signal)
  first.remove()
  factory.stopUnused(informer)
  assert.equal(factory.of(pods), informer, 'another handler still uses it')
  second.remove()
  factory.stopUnused(informer)
  await clock.advance(0)
  put(server, 'b')
  await clock.advance(3_600_000)
  assert.deepEqual([informer.store.get('x/b'), server.requests.length], [undefined, 1])
  const next = factory.of(pods)
  await next.synced(stopping.signal)
  assert.deepEqual([next === informer, next.store.list().length], [false, 2])
  stopping.abort()
  await done
})

test('CGO-01 an informer logs a failure once, not for each try', async () => {
  const server = new HistoryTransport()
  let failure: StatusError | undefined
  server.intercept = () => {
    if (failure) throw failure
  }
  const clock = new VirtualClock()
  const lines: string[] = []
  const line = (level: string) => (message: string, fields: unknown) => void lines.push(`${level} ${message} ${(fields as { error: string }).error}`)
  const log = { ...noLog, warn: line('warn'), v: (level: number) => ({ ...noLog.v(level), info: level > 2 ? () => {} : line('info') }) }
  const informer = createSharedInformer(createClient(server).of(pods), { clock, random: seededRandom(1), log })
  const stopping = new AbortController()
  const done = informer.run(stopping.signal)
  await informer.synced(stopping.signal)
  const steps = [
    [new StatusError('NotFound', 'not served'), 'info The resource is no longer served not served'],
    [new StatusError('Forbidden', 'not allowed'), 'warn Failed to list or watch not allowed'],
  ] as const
  for (const [error, want] of steps) {
    failure = error
    server.endWatches(error)
    const before = server.requests.length
    await clock.advance(120_000)
    assert.ok(server.requests.length > before + 2, 'it tries again')
    assert.deepEqual(lines.splice(0), [want])
  }
  stopping.abort()
  await done
})
