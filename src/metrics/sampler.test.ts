import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import { type ClusterObjects, createSampler, type MeasureNode } from './sampler.ts'
import type { NodeSample } from './samples.ts'
import { UsageStore } from './usageStore.ts'

interface Fixture {
  readonly clock: VirtualClock
  readonly store: UsageStore
  /** Names of nodes in the order in which they were measured, with the second. */
  readonly measured: string[]
  setNodes(names: readonly string[]): void
  /** Undefined: there is no APIService. */
  setService(service: object | 'none' | undefined): void
  end(): Promise<void>
}

/** A sampler over nodes that `measure` answers for. */
function started(names: readonly string[], measure: (name: string, signal: AbortSignal, clock: VirtualClock) => ReturnType<MeasureNode>): Fixture {
  const clock = new VirtualClock()
  const store = new UsageStore()
  const measured: string[] = []
  let nodes = names
  let service: object | 'none' | undefined = 'none'
  let changed = (_change: { readonly object: never }) => {}
  const objects = {
    get: () => service && { spec: service === 'none' ? {} : { service } },
    list: () => nodes.map((name) => ({ metadata: { name } }) as KubeObject),
    onChange: (_resource: unknown, fn: typeof changed) => {
      changed = fn
      return () => {}
    },
  } as unknown as ClusterObjects
  const stop = new AbortController()
  const counting: MeasureNode = (name, signal) => {
    measured.push(`${name} ${clock.monotonicMs() / 1000}`)
    return measure(name, signal, clock)
  }
  const running = createSampler({ objects, measure: counting, store, clock, log: noLog, metrics: noMetrics }).run(stop.signal)
  return {
    clock,
    store,
    measured,
    setNodes(now) {
      nodes = now
      changed({ object: undefined as never })
    },
    setService(now) {
      service = now
      changed({ object: undefined as never })
    },
    end() {
      stop.abort()
      return running
    },
  }
}

/** Half a core, at the time of the call. */
function halfCore(clock: VirtualClock): NodeSample {
  const atMs = clock.now()
  return { node: { startedAtMs: 0, atMs, cpuNs: clock.monotonicMs() * 5e5 + 1, memoryBytes: 7 }, pods: new Map() }
}

test('AUT-02 each node is measured every 15 seconds, and its usage is the rate between', async () => {
  const { clock, store, measured, end } = started(['a', 'b'], async (_name, _signal, clock) => halfCore(clock))
  await clock.advance(14_000)
  assert.deepEqual([measured, store.node('a')], [['a 0', 'b 0'], undefined])
  await clock.advance(16_000)
  assert.deepEqual(measured, ['a 0', 'b 0', 'a 15', 'b 15', 'a 30', 'b 30'])
  assert.deepEqual(store.node('b'), { timestamp: '2026-01-01T00:00:30Z', window: '15s', usage: { cpu: '500m', memory: '7' } })
  await end()
})

test('AUT-02 without nodes no timer runs, and a node that joins is measured at once', async () => {
  const { clock, measured, setNodes, end } = started([], async (_name, _signal, clock) => halfCore(clock))
  await clock.advance(3_600_000)
  assert.deepEqual(measured, [])
  setNodes(['a'])
  await clock.advance(1)
  assert.deepEqual(measured, ['a 3600'])
  await end()
})

test('AUT-02 no node is measured while another server answers the group, or none does, and the samples are forgotten', async () => {
  const { clock, store, measured, setService, end } = started(['a'], async (_name, _signal, clock) => halfCore(clock))
  await clock.advance(15_000)
  assert.ok(store.node('a'))
  for (const service of [{ name: 'metrics-server', namespace: 'kube-system' }, undefined]) {
    setService(service)
    await clock.advance(3_600_000)
    assert.deepEqual([measured.length, store.node('a')], [2, undefined])
  }
  setService('none')
  await clock.advance(1)
  assert.equal(measured.length, 3)
  await end()
})

test('AUT-02 a node that hangs ends after 10 seconds, and its usage is forgotten; the others keep theirs', async () => {
  let isHanging = false
  const hang = () => new Promise<never>(() => {})
  const { clock, store, end } = started(['a', 'b'], async (name, _signal, clock) => (name === 'a' && isHanging ? hang() : halfCore(clock)))
  await clock.advance(15_000)
  assert.ok(store.node('a'))
  isHanging = true
  await clock.advance(24_999)
  assert.ok(store.node('a'), 'until the time is over')
  await clock.advance(1)
  assert.equal(store.node('a'), undefined)
  assert.equal(store.node('b')?.timestamp, formatTime(clock.now() - 10_000))
  await end()
})

test('AUT-02 32 nodes are measured at a time, and nodes that did not answer are last in the next round', async () => {
  const silent = Array.from({ length: 40 }, (_, index) => `silent-${index}`)
  let most = 0
  let now = 0
  const { clock, measured, store, end } = started([...silent, 'well'], async (name, signal, clock) => {
    most = Math.max(most, ++now)
    if (name === 'well') return halfCore(clock)
    return new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })).finally(() => now--)
  })
  await clock.advance(14_000)
  assert.deepEqual([measured.length, most], [41, 32])
  await clock.advance(1_000)
  assert.equal(measured[41], 'well 15')
  await clock.advance(15_000)
  assert.ok(store.node('well'))
  await end()
})

test('AUT-02 a node that is deleted is forgotten', async () => {
  const { clock, store, setNodes, end } = started(['a', 'b'], async (_name, _signal, clock) => halfCore(clock))
  await clock.advance(15_000)
  assert.ok(store.node('a'))
  setNodes(['b'])
  await clock.advance(15_000)
  assert.equal(store.node('a'), undefined)
  assert.ok(store.node('b'))
  await end()
})
