/** Simulated pods with behaviour set by annotations and code, under virtual time. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import type { Container, PodSpec } from '#api/gen/types/core.v1'
import { csiNodes, events, jobs, nodes, pods } from '#client/builtIn'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import type { TestCluster } from '#testing/cluster'
import { testKubectl, withoutKubectl } from '../../support/kubectl.ts'
import { withCluster } from './withCluster.ts'
import { podSpec } from './workloads.ts'

type Says = Partial<Record<keyof typeof simulatedAnnotations, string>>

const annotationsOf = (says: Says) => Object.fromEntries(Object.entries(says).map(([key, value]) => [simulatedAnnotations[key as keyof Says], value]))

const ref = { namespace: 'default', name: 'pod' }

async function addPod({ client }: TestCluster, says: Says, spec: Partial<PodSpec> = {}, more: Record<string, string> = {}): Promise<void> {
  await client.of(pods).create({ metadata: { ...ref, annotations: { ...annotationsOf(says), ...more } }, spec: podSpec(spec) })
}

const statusOf = async ({ client }: TestCluster) => (await client.of(pods).get(ref)).status
const mainOf = async (cluster: TestCluster) => (await statusOf(cluster))?.containerStatuses?.[0]
const isReady = async (cluster: TestCluster) => (await mainOf(cluster))?.ready === true

/** When `check` came true, in seconds from now. */
async function secondsUntil({ clock, until }: TestCluster, check: () => Promise<boolean>): Promise<number> {
  const sinceMs = clock.now()
  await until(async () => (await check()) || undefined)
  return (clock.now() - sinceMs) / 1000
}

const near = (seconds: number, wanted: number) => assert.ok(seconds >= wanted && seconds < wanted + 2, `${seconds} s instead of ${wanted}`)

test('X2 annotations set how long a simulated pod takes to pull and to start', () =>
  withCluster({}, async (cluster) => {
    await addPod(cluster, { pullSeconds: '30', startSeconds: '12' })
    near(await secondsUntil(cluster, () => isReady(cluster)), 42)
  }))

test('X2 a span of seconds is drawn from, by the seed', async () => {
  const taken = async (seed: number) => {
    let seconds = 0
    await withCluster({ seed }, async (cluster) => {
      await addPod(cluster, { startSeconds: '5-50' })
      seconds = await secondsUntil(cluster, () => isReady(cluster))
    })
    return seconds
  }
  const first = await taken(1)
  assert.ok(first >= 5 && first < 52)
  assert.equal(await taken(1), first)
  assert.notEqual(await taken(2), first)
})

test('KUB-10 X2 pulls that fail a few times are tried again until they succeed', () =>
  withCluster({}, async (cluster) => {
    await addPod(cluster, { pullError: 'registry is away', pullFailures: '2' })
    await cluster.until(async () => ((await mainOf(cluster))?.state?.waiting?.reason === 'ImagePullBackOff' ? true : undefined))
    assert.ok((await secondsUntil(cluster, () => isReady(cluster))) < 60)
    const { items } = await cluster.client.of(events).list({ namespace: 'default' })
    const failed = items.filter(({ message }) => message === 'Failed to pull image "example.com/app:1": registry is away')
    assert.equal(
      failed.reduce((sum, { count = 1 }) => sum + count, 0),
      2,
    )
  }))

test('X2 user need 10: a container crashes a few times with its exit code, then runs', () =>
  withCluster({}, async (cluster) => {
    await addPod(cluster, { exitAfterSeconds: '0.25', exitCode: '3', exitTimes: '2' })
    await cluster.until(async () => ((await mainOf(cluster))?.restartCount === 2 && (await isReady(cluster)) ? true : undefined))
    assert.equal((await mainOf(cluster))?.lastState?.terminated?.exitCode, 3)
    await cluster.clock.advance(3_600_000)
    assert.equal((await mainOf(cluster))?.restartCount, 2)
  }))

test('X2 user need 10: a container that uses more memory than it may is killed for it', () =>
  withCluster({}, async (cluster) => {
    const main: Container = { name: 'main', image: 'example.com/app:1', resources: { limits: { memory: '64Mi' } } }
    await addPod(cluster, { memoryBytes: String(65 * 2 ** 20) }, { containers: [main] })
    await cluster.until(async () => ((await mainOf(cluster))?.restartCount === 1 ? true : undefined))
    const ended = (await mainOf(cluster))?.lastState?.terminated
    assert.deepEqual([ended?.exitCode, ended?.reason], [137, 'OOMKilled'])
  }))

test('KUB-06 X2 user need 10: probes pass and fail over time, of whatever kind they are', () =>
  withCluster({}, async (cluster) => {
    const main: Container = {
      name: 'main',
      image: 'example.com/app:1',
      startupProbe: { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 60 },
      readinessProbe: { httpGet: { port: 80 }, periodSeconds: 1, failureThreshold: 1 },
      livenessProbe: { grpc: { port: 80 }, periodSeconds: 1, failureThreshold: 1 },
    }
    await addPod(cluster, { startup: 'fail 20s, pass', readiness: 'pass 40s, fail 10s, pass', liveness: 'pass 2m, fail' }, { containers: [main] })
    near(await secondsUntil(cluster, () => isReady(cluster)), 20)
    near(await secondsUntil(cluster, async () => !(await isReady(cluster))), 20)
    near(await secondsUntil(cluster, () => isReady(cluster)), 10)
    near(await secondsUntil(cluster, async () => (await mainOf(cluster))?.restartCount === 1), 70)
  }))

test('KUB-08 X2 a container that does not end on SIGTERM is killed when its grace period ends', () =>
  withCluster({}, async (cluster) => {
    for (const [stopSeconds, grace, taken] of [
      ['7', 30, 7],
      ['100', 20, 20],
    ] as const) {
      await addPod(cluster, { stopSeconds }, { terminationGracePeriodSeconds: grace })
      await secondsUntil(cluster, () => isReady(cluster))
      await cluster.client.of(pods).delete(ref)
      near(await secondsUntil(cluster, async () => (await cluster.client.of(pods).list({ namespace: 'default' })).items.length === 0), taken)
    }
  }))

test('KUB-09 X2 a bare pod with restartPolicy Never succeeds after a second, others run on, and an annotation sets time and code', () =>
  withCluster({}, async ({ client, clock, until }) => {
    const add = (name: string, spec: Partial<PodSpec>, annotations: Record<string, string> = {}) =>
      client.of(pods).create({ metadata: { namespace: 'default', name, annotations }, spec: podSpec(spec) })
    const phase = async (name: string) => (await client.of(pods).get({ namespace: 'default', name })).status?.phase
    await add('once', { restartPolicy: 'Never' })
    await add('scripted', { restartPolicy: 'Never' }, annotationsOf({ exitAfterSeconds: '60', exitCode: '4' }))
    await add('on-failure', { restartPolicy: 'OnFailure' })
    await add('always', {})
    await until(async () => (await phase('once')) === 'Succeeded')
    await clock.advance(30_000)
    assert.deepEqual([await phase('scripted'), await phase('on-failure'), await phase('always')], ['Running', 'Running', 'Running'])
    await clock.advance(60_000)
    assert.equal(await phase('scripted'), 'Failed')
  }))

test("X2 an annotation sets the exit code of a Job's pods", () =>
  withCluster({}, async ({ client, until }) => {
    const job = { namespace: 'default', name: 'job' }
    const template = { metadata: { annotations: annotationsOf({ exitAfterSeconds: '60', exitCode: '4' }) }, spec: podSpec({ restartPolicy: 'Never' }) }
    await client.of(jobs).create({ metadata: job, spec: { backoffLimit: 1, template } })
    await until(async () => ((await client.of(jobs).get(job)).status?.conditions?.some(({ type }) => type === 'Failed') ? true : undefined))
    assert.equal((await client.of(jobs).get(job)).status?.failed, 2)
  }))

test('X2 an annotation may be about one container, an init container too', () =>
  withCluster({}, async (cluster) => {
    const containers = ['main', 'side'].map((name) => ({ name, image: 'example.com/app:1' }))
    const initContainers = [{ name: 'first', image: 'example.com/app:1' }]
    const own = { [`${simulatedAnnotations.exitAfterSeconds}.first`]: '90', [`${simulatedAnnotations.exitAfterSeconds}.side`]: '5' }
    await addPod(cluster, {}, { containers, initContainers }, own)
    near(await secondsUntil(cluster, () => isReady(cluster)), 90)
    await cluster.clock.advance(8_000)
    const restarts = (await statusOf(cluster))?.containerStatuses?.map(({ name, restartCount }) => [name, restartCount])
    assert.deepEqual(restarts, [
      ['main', 0],
      ['side', 1],
    ])
  }))

test('X2 an invalid annotation keeps the container from starting, and the error names it', () =>
  withCluster({}, async (cluster) => {
    await addPod(cluster, { exitAfterSeconds: 'soon' })
    const waiting = await cluster.until(async () => {
      const state = (await mainOf(cluster))?.state?.waiting
      return state?.message ? state : undefined
    })
    assert.match(waiting.message ?? '', /annotation skiff\.dev\/simulated-exit-after-seconds: "soon" is not seconds/)
  }))

for (const [name, value] of [
  ['no JSON', 'ls'],
  ['a list', '[]'],
  ['an answer that is a text', '{"ls": "bin"}'],
  ['an unknown member', '{"ls": {"out": "bin"}}'],
  ['an exit code that is too large', '{"ls": {"exitCode": 256}}'],
] as const) {
  test(`X2 the exec annotation keeps the container from starting, it holds ${name}`, () =>
    withCluster({}, async (cluster) => {
      await addPod(cluster, { exec: value })
      const message = await cluster.until(async () => (await mainOf(cluster))?.state?.waiting?.message)
      assert.match(message, /annotation skiff\.dev\/simulated-exec: ".*" is not a JSON object from command line to/)
    }))
}

test('X2 a pod with runAsNonRoot starts, its image runs as root only by annotation', () =>
  withCluster({}, async (cluster) => {
    const securityContext = { runAsNonRoot: true }
    await addPod(cluster, {}, { securityContext })
    await cluster.until(async () => (await isReady(cluster)) || undefined)
    const root = { namespace: 'default', name: 'root' }
    const annotations = { [simulatedAnnotations.pullUser]: '0' }
    const containers = [{ name: 'main', image: 'example.com/root:1' }]
    await cluster.client.of(pods).create({ metadata: { ...root, annotations }, spec: podSpec({ securityContext, containers }) })
    const message = await cluster.until(async () => (await cluster.client.of(pods).get(root)).status?.containerStatuses?.[0]?.state?.waiting?.message)
    assert.match(message, /container has runAsNonRoot and image will run as root/)
    assert.match((await mainOf(cluster))?.containerID ?? '', /^simulated:\/\//)
  }))

test('X2 a simulated node has a CSINode that its Node owns, also after the Node was deleted and created again', () =>
  withCluster({}, async ({ client, until, node }) => {
    const name = 'n1'
    const owned = async () => {
      const { metadata } = await client.of(nodes).get({ name })
      const csiNode = await client.of(csiNodes).get({ name })
      assert.match(csiNode.metadata.annotations?.['storage.alpha.kubernetes.io/migrated-plugins'] ?? '', /^kubernetes\.io\/aws-ebs,/)
      return csiNode.metadata.ownerReferences?.[0]?.uid === metadata.uid ? metadata.uid : undefined
    }
    const before = await until(owned)
    node(name).crash()
    await client.of(nodes).delete({ name })
    node(name).start()
    assert.notEqual(await until(owned), before)
  }))

test('STO-11 a kubelet that starts replaces the CSINode of an earlier Node with its drivers, and completes its own without losing drivers', () =>
  withCluster({ controllers: false }, async ({ client, until, node }) => {
    const name = 'n1'
    const annotation = 'storage.alpha.kubernetes.io/migrated-plugins'
    const { metadata } = await until(() => client.of(csiNodes).get({ name }))
    const drivers = [{ name: 'disk.example.com', nodeID: 'n1', topologyKeys: [] }]
    const restartWith = async (change: object) => {
      node(name).crash()
      await client.of(csiNodes).patch({ name }, 'merge', { metadata: { annotations: { [annotation]: 'old' }, ...change }, spec: { drivers } })
      node(name).start()
      return until(async () => {
        const csiNode = await client.of(csiNodes).get({ name })
        return csiNode.metadata.annotations?.[annotation] === metadata.annotations?.[annotation] && csiNode
      })
    }
    const own = await restartWith({})
    assert.deepEqual([own.metadata.uid, own.spec.drivers.map((driver) => driver.name)], [metadata.uid, ['disk.example.com']])
    const foreign = [{ ...metadata.ownerReferences?.[0], uid: '9f6e2c52-8f6b-4f5e-a0a5-9a6f7f6f0001' }]
    const replaced = await restartWith({ ownerReferences: foreign })
    assert.notEqual(replaced.metadata.uid, metadata.uid)
    assert.deepEqual([replaced.spec.drivers, replaced.metadata.ownerReferences], [[], metadata.ownerReferences])
  }))

test('X2 a lifecycle hook succeeds without an answer, and fails by the answer of the exec annotation', () =>
  withCluster({}, async (cluster) => {
    const lifecycle = { postStart: { exec: { command: ['warm', 'up'] } } }
    const spec = podSpec({ containers: [{ name: 'main', image: 'example.com/app:1', lifecycle }] })
    await addPod(cluster, {}, spec)
    await cluster.until(async () => (await isReady(cluster)) || undefined)
    const name = { namespace: 'default', name: 'cold' }
    const annotations = { [simulatedAnnotations.exec]: '{"warm up": {"exitCode": 3}}' }
    await cluster.client.of(pods).create({ metadata: { ...name, annotations }, spec })
    const failed = async () => {
      const { items } = await cluster.client.of(events).list({ namespace: 'default' })
      return items.filter(({ reason }) => reason === 'FailedPostStartHook').map(({ involvedObject }) => involvedObject.name)
    }
    assert.deepEqual([...new Set(await cluster.until(async () => ((await failed()).length > 0 ? failed() : undefined)))], ['cold'])
  }))

test('KUB-03 a container of a pod starts when the postStart hook of the one before it has ended', () =>
  withCluster({}, async (cluster) => {
    const hookSeconds = 7
    const lifecycle = { postStart: { sleep: { seconds: hookSeconds } } }
    const containers = ['a', 'b', 'c'].map((name) => ({ name, image: 'example.com/app:1', ...(name === 'c' ? {} : { lifecycle }) }))
    await addPod(cluster, {}, podSpec({ containers }))
    await cluster.until(async () => (await isReady(cluster)) || undefined)
    const { status } = await cluster.client.of(pods).get(ref)
    const startedSeconds = containers.map(({ name }) => {
      const { state } = status?.containerStatuses?.find((one) => one.name === name) ?? {}
      return Date.parse(state?.running?.startedAt ?? '') / 1000
    })
    const [first = 0, second = 0, third = 0] = startedSeconds
    assert.deepEqual([second - first, third - second], [hookSeconds, hookSeconds])
  }))

test('X2 user need 10: code sets how pods behave, and can change it later', async () => {
  let isHealthy = true
  const behave = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) =>
    labels.app === 'moody' ? { readiness: [{ passes: isHealthy }] } : { exitAfterMs: 500, exitCode: 1 }
  await withCluster({ profile: { behave } }, async (cluster) => {
    const readinessProbe = { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 1 }
    const spec = podSpec({ containers: [{ name: 'main', image: 'example.com/app:1', readinessProbe }] })
    await cluster.client.of(pods).create({ metadata: { ...ref, labels: { app: 'moody' } }, spec })
    await cluster.client.of(pods).create({ metadata: { namespace: 'default', name: 'other' }, spec: podSpec() })
    await secondsUntil(cluster, () => isReady(cluster))
    isHealthy = false
    near(await secondsUntil(cluster, async () => !(await isReady(cluster))), 0)
    const other = async () => (await cluster.client.of(pods).get({ namespace: 'default', name: 'other' })).status?.containerStatuses?.[0]
    await cluster.until(async () => ((await other())?.lastState?.terminated?.exitCode === 1 ? true : undefined))
  })
})

/** The answer of the port to `text`. */
/** An attach that has begun: the container's log so far has arrived. `output` resolves when kubectl ends. */
async function attach(env: NodeJS.ProcessEnv, pod: string, container: string): Promise<{ readonly output: Promise<string> }> {
  const attached = spawn('kubectl', ['attach', pod, '-c', container], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  attached.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  const ended = once(attached, 'close').then(() => output)
  await once(attached.stdout, 'data')
  return { output: ended }
}

async function throughPortForward(env: NodeJS.ProcessEnv, pod: string, port: number, text: string): Promise<string> {
  const forward = spawn('kubectl', ['port-forward', pod, `:${port}`, '-v=4'], { env })
  let log = ''
  forward.stderr.on('data', (chunk) => {
    log += chunk
  })
  try {
    const [line] = (await once(createInterface(forward.stdout), 'line')) as [string]
    const socket = connect(Number(/127\.0\.0\.1:(\d+)/.exec(line)?.[1]), '127.0.0.1')
    socket.write(text)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    assert.doesNotMatch(log, /fallback to secondary dialer/)
    return answer.toString()
  } finally {
    forward.kill()
    await once(forward, 'exit')
  }
}

const greeting = () =>
  new Duplex({
    read() {},
    write(chunk, _, done) {
      this.push(`you said ${chunk}`)
      done()
    },
  })

test('KUB-25 X2 kubectl logs and exec work against simulated pods', { skip: withoutKubectl, timeout: 60_000 }, () =>
  withCluster(
    {
      kubeletPorts: true,
      profile: {
        behave: ({ name }) => ({
          logs: [`${name} begins`, { afterMs: 60_000, text: 'a minute later' }],
          ...(name === 'main' ? { exec: (command) => ({ stdout: `ran ${command.join(' ')}\n`, exitCode: command[0] === 'false' ? 1 : 0 }) } : {}),
          connect: (port) => (port === 80 ? greeting() : undefined),
        }),
      },
    },
    async (cluster) => {
      const containers = ['main', 'side'].map((name) => ({ name, image: 'example.com/app:1' }))
      await addPod(cluster, {}, { containers })
      await secondsUntil(cluster, () => isReady(cluster))
      const kubectl = testKubectl(await cluster.listen())
      const run = (...args: readonly string[]) => kubectl.run(args)
      try {
        assert.equal((await run('logs', 'pod', '-c', 'main')).stdout, 'main begins\n')
        await cluster.clock.advance(60_000)
        cluster.node('n1').print(ref, 'said by the test', 'main')
        assert.equal((await run('logs', 'pod', '-c', 'main', '--tail=2')).stdout, 'a minute later\nsaid by the test\n')
        assert.match((await run('logs', 'pod', '-c', 'main', '--timestamps', '--tail=1')).stdout, /^2026-01-01T00:0\d:\d\d\.\d{9}Z said by the test\n$/)
        assert.equal((await run('exec', 'pod', '-c', 'main', '--', 'ls', '/')).stdout, 'ran ls /\n')
        assert.equal((await run('exec', 'pod', '-c', 'main', '--', 'false')).code, 1)
        const unscripted = await run('exec', 'pod', '-c', 'side', '--', 'ls')
        assert.deepEqual([unscripted.code, unscripted.stdout], [126, ''])
        assert.match(unscripted.stderr, /^ls: not run, container side is simulated\n/)
        assert.notEqual((await run('cp', 'pod:/etc/hosts', path.join(tmpdir(), 'never'), '-c', 'side')).code, 0)
        assert.equal((await run('attach', '-i', 'pod', '-c', 'main')).code, 126)
        const attached = await attach(kubectl.env, 'pod', 'main')
        assert.equal(await throughPortForward(kubectl.env, 'pod', 80, 'hello'), 'you said hello')
        const following = run('logs', '-f', 'pod', '-c', 'main', '--since=1h')
        await cluster.clock.advance(1_000)
        cluster.node('n1').print(ref, 'last words', 'main')
        cluster.node('n1').exit(ref, { container: 'main', exitCode: 2 })
        assert.match((await following).stdout, /^main begins\n[\s\S]*last words\n$/)
        assert.match(await attached.output, /^main begins\n[\s\S]*last words\n$/, 'attach stays open until the container ends')
        await cluster.until(async () => ((await mainOf(cluster))?.restartCount === 1 && (await isReady(cluster)) ? true : undefined))
        assert.match((await run('logs', 'pod', '-c', 'main', '--previous')).stdout, /said by the test/)
        assert.equal((await run('logs', 'pod', '-c', 'main')).stdout, 'main begins\n')
      } finally {
        kubectl.remove()
      }
    },
  ),
)

test('KUB-22 a pod is resized whose first container asks for nothing', () =>
  withCluster({ nodes: 1 }, async ({ client, until }) => {
    const ref = { namespace: 'default', name: 'p' }
    const containers = [
      { name: 'a', image: 'i' },
      { name: 'b', image: 'i', resources: { requests: { cpu: '100m' } } },
    ]
    await client.of(pods).create({ apiVersion: 'v1', kind: 'Pod', metadata: ref, spec: { containers } })
    const allocated = async () => (await client.of(pods).get(ref)).status?.containerStatuses?.map((one) => one.allocatedResources?.cpu)
    await until(async () => (await allocated())?.[1] === '100m')
    const body = { spec: { containers: [{ name: 'b', resources: { requests: { cpu: '200m' } } }] } }
    await client.of(pods).patch(ref, 'strategic', body, { subresource: 'resize' })
    await until(async () => (await allocated())?.[1] === '200m')
  }))
