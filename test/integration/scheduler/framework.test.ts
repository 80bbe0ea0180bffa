/** The scheduling framework through the real API server: every extension point in order, waiting, refusing and failing late, and several profiles. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventsV1, nodes } from '#client/builtIn'
import { actions, on } from '#scheduler/framework/clusterEvent'
import type { Handle } from '#scheduler/framework/handle'
import { definePlugin, type PluginDefinition, type SchedulerPlugin } from '#scheduler/framework/plugin'
import type { ProfileConfig } from '#scheduler/framework/profile'
import { pending, unschedulable } from '#scheduler/framework/status'
import { addNode, isBound, isUnschedulable, newNode, newPod, perTest, scheduled, startScheduler, untilPods } from './cluster.ts'

const own = perTest()
const { create, until } = own

/** A profile with one plugin more, at every point that it implements. */
function start(plugin: PluginDefinition, profile: Partial<ProfileConfig> = {}): void {
  const plugins = { multiPoint: { enabled: [{ name: plugin.name }], disabled: [] } }
  own.scheduler = startScheduler(own.api.client, {
    profiles: [{ schedulerName: 'default-scheduler', plugins, args: {}, ...profile }],
    otherPlugins: [plugin],
  })
}

test('SCH-02 every extension point is asked, in upstream order', async () => {
  for (const name of ['a', 'b']) await addNode(own.api.client, newNode(name))
  const trace: string[] = []
  const say = (point: string) => void (trace.at(-1) !== point && trace.push(point))
  const tracer = definePlugin('Tracer', () => ({
    requeueOn: [],
    preEnqueue: () => void say('PreEnqueue'),
    preFilter: () => void say('PreFilter'),
    filter: () => void say('Filter'),
    preScore: () => void say('PreScore'),
    score: () => {
      say('Score')
      return 200
    },
    normalize: (scores) => {
      say('NormalizeScore')
      scores.fill(7)
    },
    reserve: () => void say('Reserve'),
    permit: () => void say('Permit'),
    preBind: async () => void say('PreBind'),
    bind: async () => {
      say('Bind')
      return 'skip'
    },
    postBind: () => void say('PostBind'),
  }))
  start(tracer, {
    plugins: { multiPoint: { enabled: [{ name: 'Tracer' }], disabled: [] }, bind: { enabled: [{ name: 'Tracer' }], disabled: [] } },
  })
  await create(newPod('web'))
  await until('web', isBound)
  await own.scheduler?.stop()
  const order = 'PreEnqueue PreFilter Filter PreScore Score NormalizeScore Reserve Permit PreBind Bind PostBind'
  assert.equal(trace.join(' '), order)
})

test('SCH-02 a pod that Permit holds back is bound when it is allowed, and its node is said before', async () => {
  await addNode(own.api.client, newNode('a'))
  let handle: Handle | undefined
  start(
    definePlugin('Gate', (_args, given) => {
      handle = given
      return { permit: () => ({ waitMs: 3_600_000 }) }
    }),
  )
  await create(newPod('web'))
  const waiting = await until('web', (pod) => pod.status?.nominatedNodeName === 'a')
  assert.equal(waiting.spec.nodeName ?? '', '')
  const held = await eventually(() => handle?.waitingPod(waiting.metadata.uid ?? ''))
  assert.deepEqual(held.pendingPlugins, ['Gate'])
  held.allow('Gate')
  assert.equal((await until('web', isBound)).spec.nodeName, 'a')
})

/** What `find` finds, looking again after each turn of the event loop. */
async function eventually<T>(find: () => T | undefined): Promise<T> {
  const stop = AbortSignal.timeout(60_000)
  for (;;) {
    stop.throwIfAborted()
    const found = find()
    if (found !== undefined) return found
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const late: { point: 'reserve' | 'permit' | 'preBind'; refuse: (refusal: () => ReturnType<typeof unschedulable> | undefined) => Partial<SchedulerPlugin> }[] = [
  { point: 'reserve', refuse: (refusal) => ({ reserve: () => refusal() }) },
  { point: 'permit', refuse: (refusal) => ({ permit: () => refusal() }) },
  { point: 'preBind', refuse: (refusal) => ({ preBind: async () => refusal() }) },
]
for (const { point, refuse } of late) {
  test(`SCH-19 a refusal by ${point} gives the room back, takes the reservation back, and an event brings the pod back`, async () => {
    await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
    let refusing = true
    let unreserved = 0
    const plugin = definePlugin('Late', () => ({
      requeueOn: [on('Node', actions.UpdateNodeLabel)],
      unreserve: () => void unreserved++,
      reserve: () => undefined,
      ...refuse(() => (refusing ? unschedulable('not now') : undefined)),
    }))
    start(plugin)
    await create(newPod('first', '900m'))
    const refused = await until('first', isUnschedulable)
    assert.equal(scheduled(refused)?.message, '0/1 nodes are available: 1 not now.')
    assert.equal(refused.status?.nominatedNodeName ?? '', '', 'the node is not expected any more')
    assert.equal(unreserved, 1)
    refusing = false
    // The room is free: another pod can have it.
    await create(newPod('second', '900m'))
    await until('second', isBound)
    await addNode(own.api.client, newNode('b', { cpu: '1', memory: '1Gi', pods: '10' }))
    await own.api.client.of(nodes).patch({ name: 'b' }, 'merge', { metadata: { labels: { x: 'y' } } })
    assert.equal((await until('first', isBound)).spec.nodeName, 'b')
  })
}

for (const point of ['reserve', 'permit'] as const) {
  test(`SCH-19 a plugin that throws in ${point} has its pod reported, undone, and tried again`, async () => {
    await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
    let failing = true
    let unreserved = 0
    const fail = () => {
      if (failing) throw new Error('the devices are gone')
      return undefined
    }
    start(definePlugin('Late', () => ({ requeueOn: [], unreserve: () => void unreserved++, reserve: () => undefined, [point]: fail })))
    await create(newPod('web', '900m'))
    const failed = await until('web', isUnschedulable)
    const { reason, message } = scheduled(failed) ?? {}
    assert.deepEqual([reason, message], ['SchedulerError', 'the devices are gone'])
    assert.ok(unreserved > 0)
    failing = false
    assert.equal((await until('web', isBound)).spec.nodeName, 'a')
  })
}

test('SCH-19 a binding that fails is reported as an error, undone, and tried again', async () => {
  await addNode(own.api.client, newNode('a', { cpu: '1', memory: '1Gi', pods: '10' }))
  let down = true
  const flaky = definePlugin('FlakyBinder', () => ({
    bind: async () => {
      if (down) throw new Error('the network is down')
      return 'skip' as const
    },
  }))
  start(flaky, { plugins: { multiPoint: { enabled: [{ name: 'FlakyBinder' }], disabled: [] }, bind: { enabled: [{ name: 'FlakyBinder' }], disabled: [] } } })
  await create(newPod('web', '900m'))
  const failed = await until('web', isUnschedulable)
  const { reason, message } = scheduled(failed) ?? {}
  assert.deepEqual([reason, message], ['SchedulerError', 'binding rejected: the network is down'])
  down = false
  assert.equal((await until('web', isBound)).spec.nodeName, 'a')
})

test("SCH-17 a pod that waits for a plugin's pending operation is requeued by its event, without back-off", async () => {
  await addNode(own.api.client, newNode('a'))
  let ready = false
  const plugin = definePlugin('Preparer', () => ({
    requeueOn: [on('Node', actions.UpdateNodeLabel)],
    reserve: () => (ready ? undefined : pending('preparing')),
  }))
  start(plugin)
  await create(newPod('web'))
  await until('web', isUnschedulable)
  ready = true
  await own.api.client.of(nodes).patch({ name: 'a' }, 'merge', { metadata: { labels: { prepared: 'yes' } } })
  await until('web', isBound)
})

test('SCH-14 two profiles share one queue and place pods by their own plugins', async () => {
  await addNode(own.api.client, newNode('a', { cpu: '4', memory: '8Gi', pods: '110' }))
  await addNode(own.api.client, newNode('b', { cpu: '4', memory: '8Gi', pods: '110' }))
  const onlyB = definePlugin('OnlyB', () => ({ filter: (_state, _pod, node) => (node.name === 'b' ? undefined : unschedulable('is not b')) }))
  const second: ProfileConfig = { schedulerName: 'second', plugins: { multiPoint: { enabled: [{ name: 'OnlyB' }], disabled: [] } }, args: {} }
  own.scheduler = startScheduler(own.api.client, { profiles: [{ schedulerName: 'default-scheduler', plugins: {}, args: {} }, second], otherPlugins: [onlyB] })
  for (let i = 0; i < 6; i++) {
    await create(newPod(`first-${i}`))
    await create(newPod(`second-${i}`, '100m', { schedulerName: 'second' }))
  }
  const names = Array.from({ length: 6 }, (_, i) => [`first-${i}`, `second-${i}`]).flat()
  const placed = await untilPods(own.api.client, names, isBound)
  const on = (prefix: string) => new Set([...placed].filter(([name]) => name.startsWith(prefix)).map(([, pod]) => pod.spec.nodeName))
  assert.deepEqual(on('second'), new Set(['b']))
  assert.ok(on('first').has('a'), 'the first profile uses both')
  const reporters = new Map<string, string | undefined>()
  while (reporters.size < names.length) {
    const told = await own.api.client.of(eventsV1).list({ namespace: 'default' })
    for (const { reason, regarding, reportingController } of told.items) if (reason === 'Scheduled') reporters.set(regarding?.name ?? '', reportingController)
  }
  assert.deepEqual([reporters.get('first-0'), reporters.get('second-0')], ['default-scheduler', 'second'])
})
