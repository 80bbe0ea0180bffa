import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { configMaps } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { controllers } from '../index.ts'
import type { ControllerContext, ControllerDescriptor } from './controller.ts'
import { createControllerManager, isEnabled } from './manager.ts'
import { createReconciler, enqueueSelf } from './reconciler.ts'

function setUp(reconcile: (key: string) => Promise<void>) {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const descriptor: ControllerDescriptor = {
    name: 'test-controller',
    aliases: ['test'],
    serviceAccount: 'test-controller',
    create: (context: ControllerContext) => {
      const informer = context.informers.of(configMaps)
      const reconciler = createReconciler(context, {
        name: 'test-controller',
        workers: 2,
        reconcile: async (key) => {
          await reconcile(key)
          return undefined
        },
      })
      reconciler.watch(informer, enqueueSelf(reconciler.queue))
      return reconciler
    },
  }
  const client = createClient(server)
  const deps = { client, clientFor: () => client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
  const put = (name: string) => server.put(`/api/v1/namespaces/x/configmaps/${name}`, anObject('ConfigMap', { namespace: 'x', name }))
  return { clock, put, manager: createControllerManager(deps, [descriptor], {}) }
}

test('CTL-01 a controller that fails is created again, and works', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const client = createClient(server)
  const seen: string[] = []
  let made = 0
  const descriptor: ControllerDescriptor = {
    name: 'test-controller',
    aliases: [],
    serviceAccount: 'test-controller',
    create: (context) => {
      const fails = ++made <= 2
      const reconciler = createReconciler(context, {
        name: 'test-controller',
        reconcile: async (key) => {
          seen.push(key)
          return undefined
        },
      })
      reconciler.watch(context.informers.of(configMaps), enqueueSelf(reconciler.queue))
      if (fails) reconciler.also(() => Promise.reject(new Error('fault')))
      return reconciler
    },
  }
  const deps = { client, clientFor: () => client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
  const manager = createControllerManager(deps, [descriptor], {})
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  await clock.advance(3_000)
  seen.length = 0
  server.put('/api/v1/namespaces/x/configmaps/a', anObject('ConfigMap', { namespace: 'x', name: 'a' }))
  await clock.advance(1_000)
  assert.deepEqual([made, manager.running(), seen], [3, ['test-controller'], ['x/a']])
  stop.abort()
  await clock.advance(1_000)
  await running
  assert.deepEqual(manager.running(), [])
})

test('a reconciler stops, the signal aborts as its informers have synced', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const client = createClient(server)
  let reconciler: ReturnType<typeof createReconciler> | undefined
  const descriptor: ControllerDescriptor = {
    name: 'test-controller',
    aliases: [],
    serviceAccount: 'test-controller',
    create: (context) => {
      reconciler = createReconciler(context, { name: 'test-controller', reconcile: async () => undefined })
      reconciler.watch(context.informers.of(configMaps), enqueueSelf(reconciler.queue))
      return { name: 'test-controller', run: async () => {} }
    },
  }
  const deps = { client, clientFor: () => client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
  const stop = new AbortController()
  const running = createControllerManager(deps, [descriptor], {}).run(stop.signal)
  await clock.advance(1_000)
  const late = new AbortController()
  const stopped = reconciler?.run(late.signal)
  late.abort()
  await stopped
  stop.abort()
  await clock.advance(1_000)
  await running
})

test('CTL-01 one key that fails never holds up another, and its tries grow apart', async () => {
  const tries: Record<string, number[]> = { 'x/bad': [], 'x/good': [] }
  const { clock, put, manager } = setUp(async (key) => {
    tries[key]?.push(clock.monotonicMs())
    if (key === 'x/bad') throw new Error('fault')
  })
  put('bad')
  put('good')
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  await clock.advance(100)
  assert.deepEqual(tries['x/good'], [0])
  assert.deepEqual(
    tries['x/bad']?.slice(1).map((ms, i) => ms - (tries['x/bad']?.[i] ?? 0)),
    [5, 10, 20, 40],
  )
  stop.abort()
  await running
})

test('CTL-22 a controller is switched off and on while the others continue, and catches up', async () => {
  const seen: string[] = []
  const { clock, put, manager } = setUp(async (key) => void seen.push(key))
  const stop = new AbortController()
  const running = manager.run(stop.signal)
  await clock.advance(0)
  await manager.setEnabled('test', false)
  assert.deepEqual(manager.running(), [])
  put('late')
  await clock.advance(0)
  assert.deepEqual(seen, [])
  await manager.setEnabled('test-controller', true)
  await clock.advance(0)
  assert.deepEqual(seen, ['x/late'])
  await assert.rejects(manager.setEnabled('nobody', true), /not in the list of known controllers/)
  stop.abort()
  await running
})

const chosen: { controllers: string[]; want: boolean }[] = [
  { controllers: ['*'], want: true },
  { controllers: ['*', '-test'], want: false },
  { controllers: ['-test-controller', 'test'], want: false },
  { controllers: ['test'], want: true },
  { controllers: ['other'], want: false },
]
for (const { controllers, want } of chosen) {
  test(`CTL-22 --controllers=${controllers} ${want ? 'runs' : 'leaves out'} it`, () => {
    const descriptor = { name: 'test-controller', aliases: ['test'], serviceAccount: 'test', create: () => assert.fail() }
    assert.equal(isEnabled(descriptor, controllers), want)
  })
}

test('CTL-22 no two controllers share a name or an alias', () => {
  const names = controllers.flatMap(({ name, aliases }) => [name, ...aliases])
  assert.equal(new Set(names).size, names.length)
})
