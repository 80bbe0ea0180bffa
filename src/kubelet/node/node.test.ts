import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { createExec } from '#host/exec'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { kubeletConfig } from '../core/config.ts'
import type { KubeletContext } from '../core/context.ts'
import type { KubeletHost } from '../core/host.ts'
import type { PodEnding } from '../pods/podTable.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'
import { ensureInhibitDelay } from './inhibitDelay.ts'
import { createNodeShutdown, graceSecondsOf, shutdownGroups, shutdownPeriods } from './nodeShutdown.ts'
import { statusChanged, transitions } from './nodeStatus.ts'
import { oomVictims } from './oomWatcher.ts'
import { createRuntimeHealth, plegProblems } from './runtimeHealth.ts'
import { preparesForShutdown, watchForShutdown } from './shutdownSignal.ts'

const ready = { type: 'RuntimeReady', status: true, reason: '', message: '' }
const noNetwork = { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'cni plugin not initialized' }

test('KUB-01 a runtime that does not answer is down after half a minute, and back at once', async () => {
  const clock = new VirtualClock()
  let answer: (typeof ready)[] | undefined
  const ask = async <T>(value: T): Promise<T> => (answer ? value : Promise.reject(new Error('connection refused')))
  const runtime = {
    version: () => ask({ runtimeName: 'containerd', runtimeVersion: '1' }),
    status: () => ask({ conditions: answer, handlers: [] }),
  } as unknown as KubeletContext['runtime']
  const health = createRuntimeHealth({ runtime, clock }, () => undefined)
  assert.deepEqual(await health.problems(), ['container runtime status check may not have completed yet'])
  answer = [ready, noNetwork]
  const network = 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized'
  assert.deepEqual([await health.problems(), health.version()?.runtimeVersion], [[network], '1'])
  answer = [ready]
  assert.deepEqual(await health.problems(), [])
  answer = undefined
  await clock.advance(30_000)
  assert.deepEqual(await health.problems(), [])
  await clock.advance(1)
  assert.deepEqual(await health.problems(), ['container runtime is down'])
  answer = [ready]
  assert.deepEqual(await health.problems(), [])
})

test('KUB-02 a kubelet that has not relisted its pods for three minutes is not Ready', () => {
  assert.deepEqual([plegProblems(undefined, 1e9), plegProblems(1_000, 181_000)], [[], []])
  assert.deepEqual(plegProblems(1_000, 200_500), ['PLEG is not healthy: pleg was last seen active 3m19.5s ago; threshold is 3m0s'])
})

test('STO-10 volumes that a controller has attached are no change of the kubelet, volumes that it uses are', () => {
  const volumesAttached = [{ name: 'a', devicePath: '' }]
  assert.equal(statusChanged({ volumesAttached, volumesInUse: ['a'] }, { volumesInUse: ['a'] }), false)
  assert.equal(statusChanged({ volumesAttached }, { volumesInUse: ['a'] }), true)
})

test('KUB-01 changed conditions are recorded as events', () => {
  const condition = (type: string, status: string) => ({ type, status })
  assert.deepEqual(transitions(undefined, [condition('MemoryPressure', 'False'), condition('Ready', 'True'), condition('Other', 'True')]), [
    'NodeHasSufficientMemory',
    'NodeReady',
  ])
  assert.deepEqual(
    transitions([condition('DiskPressure', 'False'), condition('PIDPressure', 'True')], [condition('DiskPressure', 'True'), condition('PIDPressure', 'True')]),
    ['NodeHasDiskPressure'],
  )
})

const kernel = [
  {
    name: 'the whole machine',
    line: '3,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/a,task=stress,pid=42,uid=0',
    want: [{ pid: 42, name: 'stress' }],
  },
  { name: 'a container', line: '3,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a,task=stress,pid=42,uid=0', want: [] },
  { name: 'an old kernel', line: '3,1,2,-;Out of memory: Kill process 7 (a b) score 1', want: [{ pid: 7, name: 'a b' }] },
  { name: 'a container on an old kernel', line: '3,1,2,-;Memory cgroup out of memory: Killed process 7 (x)', want: [] },
  { name: 'something else', line: '6,1,2,-;eth0: link up', want: [] },
]
for (const { name, line, want } of kernel) test(`RES-06 short of memory: ${name}`, () => assert.deepEqual(oomVictims(`${line}\n`), want))

function pod(name: string, priority?: number, terminationGracePeriodSeconds = 30): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name },
    spec: { containers: [], terminationGracePeriodSeconds, ...(priority === undefined ? {} : { priority }) },
  } as unknown as Pod
}

const byPriority = [
  { priority: 1000, shutdownGracePeriodSeconds: 20 },
  { priority: 0, shutdownGracePeriodSeconds: 10 },
]
const simple = { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000, shutdownGracePeriodByPodPriority: [] }
test('KUB-08 a shutdown has a time for each priority, the lower ones first', () => {
  assert.deepEqual(shutdownPeriods(simple), [
    { priority: 0, shutdownGracePeriodSeconds: 20 },
    { priority: 2_000_000_000, shutdownGracePeriodSeconds: 10 },
  ])
  assert.deepEqual(shutdownPeriods({ ...simple, shutdownGracePeriodMs: 0 }), [])
  const periods = shutdownPeriods({ ...simple, shutdownGracePeriodByPodPriority: byPriority })
  const groups = shutdownGroups(periods, [pod('low', -5), pod('none'), pod('between', 999), pod('high', 1000), pod('higher', 2000)])
  assert.deepEqual(
    groups.map((group) => [group.period.priority, group.pods.map(({ metadata }) => metadata.name).join(' ')]),
    [
      [0, 'low none between'],
      [1000, 'high higher'],
    ],
  )
  const [lowest] = periods
  assert.ok(lowest)
  assert.deepEqual([graceSecondsOf(pod('a', 0, 5), lowest), graceSecondsOf(pod('b', 0, 60), lowest)], [5, 10])
})

test('KUB-08 a node that shuts down is not ready, takes no pods, and waits for each group no longer than its time', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-shutdown-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const ended: string[] = []
  const gone = new Map<string, () => void>()
  const workers = {
    list: () => [pod('stuck', 0, 5), pod('quick', 2_000_000_000)],
    end: ({ uid, ending, graceSeconds }: PodEnding) => void ended.push(`${uid} ${ending.reason} ${graceSeconds} at ${clock.monotonicMs()}`),
    ended: (uid: string) => new Promise<void>((resolve) => gone.set(uid, resolve)),
  } as unknown as PodWorkers
  const host = { path: (path: string) => path }
  const config = kubeletConfig({ nodeName: 'n', rootDirectory: directory, ...simple })
  let changes = 0
  const shutdown = createNodeShutdown({ clock, config, host, log: noLog, metrics: noMetrics } as unknown as KubeletContext, () => changes++)
  assert.deepEqual([shutdown.problem(), shutdown.refusal()], [undefined, undefined])
  const startedMs = clock.monotonicMs()
  const done = shutdown.shutDown(workers, new AbortController().signal)
  assert.equal(shutdown.shutDown(workers, new AbortController().signal), done)
  assert.deepEqual([shutdown.problem(), shutdown.refusal()?.reason, changes], ['node is shutting down', 'NodeShutdown', 1])
  while (!gone.has('stuck')) await new Promise((resolve) => setImmediate(resolve))
  await clock.advance(20_000)
  while (!gone.has('quick')) await new Promise((resolve) => setImmediate(resolve))
  gone.get('quick')?.()
  await done
  assert.deepEqual(ended, [`stuck Terminated 5 at ${startedMs}`, `quick Terminated 10 at ${startedMs + 20_000}`])
  const metrics = createRecordedMetrics()
  const next = createNodeShutdown({ clock, config, host, log: noLog, metrics } as unknown as KubeletContext, () => {})
  await next.restore()
  const times = ['start', 'end'].map((which) => metrics.values.get(`kubelet_graceful_shutdown_${which}_time_seconds`))
  assert.deepEqual(times, [Date.parse('2026-01-01T00:00:00Z') / 1000, Date.parse('2026-01-01T00:00:20Z') / 1000])
  const state = JSON.parse(await readFile(join(directory, 'graceful_node_shutdown_state'), 'utf8')) as unknown
  assert.deepEqual(state, { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-01T00:00:20Z' })
  shutdown.cancel()
  assert.deepEqual([shutdown.problem(), shutdown.refusal(), changes], [undefined, undefined, 2])
})

test('KUB-08 a shutdown that logind announces is delayed until the pods have ended', async (t) => {
  const said = (going: boolean) => JSON.stringify({ member: 'PrepareForShutdown', payload: { type: 'b', data: [going] } })
  assert.deepEqual([said(true), said(false), '{"member":"SessionNew","payload":{"data":["x"]}}', 'no JSON'].map(preparesForShutdown), [
    true,
    false,
    undefined,
    undefined,
  ])
  const directory = await mkdtemp(join(tmpdir(), 'skiff-logind-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  // busctl reports a shutdown.
  const programs = {
    busctl: `[ "$2" = status ] && exit 0; [ "$2" = get-property ] && exec echo t 5000000; echo '${said(false)}'; echo '${said(true)}'; exec cat`,
    'systemd-inhibit': 'exec cat',
  }
  for (const [name, script] of Object.entries(programs)) await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const exec = createExec(['env', `PATH=${directory}:/usr/bin:/bin`])
  const stop = new AbortController()
  const order: string[] = []
  const listener = { cancel: () => void order.push('cancelled'), shutDown: async () => void order.push('ended') }
  const clock = new VirtualClock()
  const watching = watchForShutdown({ host: { exec }, clock, log: noLog } as unknown as KubeletContext, listener, 5000, stop.signal)
  while (order.length < 2) await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  await watching
  assert.deepEqual(order, ['cancelled', 'ended'])
})

test('KUB-08 logind’s limit is raised to what pods may take, and left alone where it is high enough', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skiff-inhibit-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'etc/systemd/logind.conf.d/99-kubelet.conf')
  const calls: string[] = []
  let seconds = 5
  const run = async (_program: string, [, verb = '', ...args]: readonly string[]) => {
    calls.push(verb)
    // The signal makes the service reload its configuration.
    if (verb === 'call') seconds = Number(/InhibitDelayMaxSec=(\d+)/.exec(await readFile(file, 'utf8'))?.[1])
    if (verb === 'call') assert.deepEqual(args.slice(-4), ['ssi', 'systemd-logind.service', 'all', '1'])
    return { code: 0, stdout: verb === 'get-property' ? `t ${seconds * 1e6}\n` : '', stderr: '', timedOut: false }
  }
  const host = { exec: { run }, path: (path: string) => join(directory, path) } as unknown as KubeletHost
  const clock = new VirtualClock()
  const ensure = async (wantedMs: number) => {
    let done = false
    const ensured = ensureInhibitDelay({ clock, log: noLog }, host, wantedMs, new AbortController().signal).finally(() => {
      done = true
    })
    while (!done) {
      await clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await ensured
  }
  await ensure(5000)
  assert.deepEqual(calls, ['get-property'])
  await ensure(30_000)
  assert.equal(await readFile(file, 'utf8'), '# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n')
  assert.deepEqual([calls.slice(1), seconds], [['get-property', 'call', 'get-property'], 30])
})
