import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lifecycle, Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { GrpcError } from '#grpc/grpcError'
import type { KubeletContext } from '../core/context.ts'
import type { ContainerRecord } from '../core/podRuntimeStatus.ts'
import { type KillOptions, killPod } from './killing.ts'

interface Run {
  readonly lines: string[]
  readonly clock: VirtualClock
  readonly context: KubeletContext
}

/** A runtime whose containers take so long to stop, and whose hooks take so long, in seconds. */
function world(stopSeconds: Readonly<Record<string, number>>, hookSeconds = 0, hookExit = 0): Run {
  const clock = new VirtualClock()
  const lines: string[] = []
  const at = () => `${clock.monotonicMs() / 1000}s`
  const context = {
    clock,
    log: noLog,
    metrics: noMetrics,
    config: { nodeIPs: ['192.0.2.1'] },
    recorder: {
      event: (about: { fieldPath?: string }, type: string, reason: string, message: string) => {
        if (type === 'Warning') lines.push(`${at()} ${reason} ${about.fieldPath} ${message}`)
      },
    },
    runtime: {
      execSync: async (id: string, _command: readonly string[], _timeout: number, { signal }: { signal?: AbortSignal }) => {
        lines.push(`${at()} hook ${id}`)
        await clock.sleep(hookSeconds * 1000, signal)
        return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: hookExit }
      },
      stopContainer: async (id: string, timeout: number) => {
        lines.push(`${at()} stop ${id} ${timeout}`)
        await clock.sleep(Math.min(stopSeconds[id] ?? 0, timeout) * 1000)
      },
      stopPodSandbox: async (id: string) => void lines.push(`${at()} stop ${id}`),
    },
  } as unknown as KubeletContext
  return { lines, clock, context }
}

const preStop: Lifecycle = { preStop: { exec: { command: ['x'] } } }
const record = (name: string) => ({ id: name, name, state: 'running', status: { annotations: {} } }) as unknown as ContainerRecord
const sandbox = { id: 'sandbox', state: 'SANDBOX_READY', network: { ip: '10.0.0.1', additionalIps: [] }, metadata: {} }

function pod(containers: Pod['spec']['containers'], initContainers: Pod['spec']['containers'], deletionGracePeriodSeconds: number): Pod {
  const metadata = { name: 'p', namespace: 'n', uid: 'u', deletionGracePeriodSeconds }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, initContainers, terminationGracePeriodSeconds: 30 }, status: {} }
}

async function kill({ clock, context, lines }: Run, it: Pod, options: KillOptions = {}): Promise<string[]> {
  const names = [...(it.spec.initContainers ?? []), ...it.spec.containers].map(({ name }) => name)
  const done = killPod(context, it, { uid: 'u', sandboxes: [sandbox as never], containers: names.map(record) }, options)
  await clock.advance(100_000)
  await done
  return lines
}

const sidecar = (name: string, lifecycle?: Lifecycle) => ({ name, restartPolicy: 'Always', ...(lifecycle ? { lifecycle } : {}) })

test('KUB-04 sidecars stop after the regular containers, the last started first, and share the grace period', async () => {
  const lines = await kill(world({ app: 4, late: 2, early: 1 }), pod([{ name: 'app' }], [sidecar('early'), sidecar('late')], 30))
  assert.deepEqual(lines, ['0s stop app 30', '4s stop late 26', '6s stop early 24', '7s stop sandbox'])
})

test('KUB-04 a sidecar’s preStop hook runs at once; when the grace period is over it is stopped with the least', async () => {
  const lines = await kill(world({ app: 60 }), pod([{ name: 'app' }], [sidecar('side', preStop)], 10))
  assert.deepEqual(lines, ['0s stop app 10', '0s hook side', '10s stop side 2', '10s stop sandbox'])
})

const hooks: { name: string; hook: number; exit?: number; grace: number; options?: KillOptions; want: string[] }[] = [
  { name: 'shares the grace period with the process', hook: 3, grace: 10, want: ['0s hook app', '3s stop app 7', '3s stop sandbox'] },
  { name: 'that takes all of it leaves two seconds', hook: 50, grace: 10, want: ['0s hook app', '10s stop app 2', '10s stop sandbox'] },
  { name: 'is left out when there is no time', hook: 3, grace: 30, options: { graceSeconds: 0 }, want: ['0s stop app 2', '0s stop sandbox'] },
  {
    name: 'that fails is recorded, and the container stops',
    hook: 0,
    exit: 1,
    grace: 10,
    want: ['0s hook app', '0s FailedPreStopHook spec.containers{app} PreStopHook failed', '0s stop app 10', '0s stop sandbox'],
  },
]
for (const c of hooks) {
  test(`KUB-07 a preStop hook ${c.name}`, async () =>
    assert.deepEqual(await kill(world({}, c.hook, c.exit), pod([{ name: 'app', lifecycle: preStop }], [], c.grace), c.options), c.want))
}

const graces: { name: string; deletion?: number; probe?: number; options: KillOptions; want: number }[] = [
  { name: 'the pod’s own', options: {}, want: 30 },
  { name: 'the probe’s own when the probe asked for it', probe: 5, options: { reason: 'LivenessProbe' }, want: 5 },
  { name: 'not another probe’s', probe: 5, options: { reason: 'StartupProbe' }, want: 30 },
  { name: 'the deletion’s before the probe’s', deletion: 7, probe: 5, options: { reason: 'LivenessProbe' }, want: 7 },
  { name: 'at least two seconds', deletion: 7, options: { graceSeconds: 1 }, want: 2 },
]
for (const c of graces) {
  test(`KUB-08 the grace period is ${c.name}`, async () => {
    const container = { name: 'app', livenessProbe: c.probe === undefined ? {} : { terminationGracePeriodSeconds: c.probe } }
    const it = pod([container], [], c.deletion ?? 0)
    if (c.deletion === undefined) delete it.metadata.deletionGracePeriodSeconds
    assert.equal((await kill(world({}), it, c.options))[0], `0s stop app ${c.want}`)
  })
}

test('KUB-08 containers that could not be stopped are reported in one error, and the sandbox is stopped anyway', async () => {
  const run = world({})
  const { runtime } = run.context as unknown as { runtime: { stopContainer(id: string): Promise<void> } }
  runtime.stopContainer = (id) => Promise.reject(new GrpcError('UNKNOWN', `${id} hangs`))
  const text = (name: string) => `failed to "KillContainer" for "${name}" with KillContainerError: "rpc error: code = Unknown desc = ${name} hangs"`
  await assert.rejects(kill(run, pod([{ name: 'a' }, { name: 'b' }], [], 5)), { message: `[${text('a')}, ${text('b')}]` })
  assert.deepEqual(run.lines, ['0s stop sandbox'])
})
