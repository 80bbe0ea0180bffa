import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Node, Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { kubernetesRelease } from '#base/version'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import { createKubelet, type Kubelet } from '#kubelet/kubelet'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import { defaultProfile, type SimulatedProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime, type SimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { createPrometheusMetrics, type PrometheusMetrics } from '#main/prometheus'
import { simulatedMachine } from '../support/simulatedMachine.ts'
import { KubeletApi } from './kubeletApi.ts'

interface World {
  readonly api: KubeletApi
  readonly clock: VirtualClock
  readonly kubelet: Kubelet
  readonly runtime: SimulatedRuntime
  readonly metrics: PrometheusMetrics
}

async function withKubelet(
  run: (world: World) => Promise<void>,
  profile: Partial<SimulatedProfile> = {},
  traits: Partial<SimulatedRuntime> = {},
): Promise<void> {
  const clock = new VirtualClock()
  const api = new KubeletApi(() => clock.now())
  const random = seededRandom(7)
  const runtime = { ...createSimulatedRuntime({ clock, random, profile: { ...defaultProfile, ...profile }, podCidr: '10.244.0.0/24' }), ...traits }
  const metrics = createPrometheusMetrics()
  const deps = { client: createClient(api), clock, random, log: noLog, metrics, runtime, machine: simulatedMachine }
  const kubelet = createKubelet(deps, { nodeName: 'sim-1', nodeIPs: ['192.0.2.1'], clusterDNS: ['10.96.0.10'] })
  const stop = new AbortController()
  const running = kubelet.run(stop.signal)
  try {
    await clock.advance(1000)
    await run({ api, clock, kubelet, runtime, metrics })
  } finally {
    stop.abort()
    await clock.advance(1000)
    await running
  }
}

function pod(name: string, spec: Partial<Pod['spec']> = {}, annotations: Record<string, string> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', generation: 1, annotations },
    spec: { nodeName: 'sim-1', restartPolicy: 'Always', containers: [{ name: 'main', image: 'example.com/app:1' }], ...spec },
    status: { phase: 'Pending', qosClass: 'BestEffort' },
  }
}

const reasons = (api: KubeletApi) => api.list<Event>('events').map((event) => event.reason)
const getPod = (api: KubeletApi, name: string) => api.get<Pod>('pods', 'default', name)

test('KUB-01 the node registers complete and renews its lease', () =>
  withKubelet(async ({ api, clock }) => {
    const node = api.get<Node>('nodes', '', 'sim-1')
    assert.deepEqual(node?.metadata.labels, {
      'kubernetes.io/hostname': 'sim-1',
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'beta.kubernetes.io/os': 'linux',
      'beta.kubernetes.io/arch': 'amd64',
    })
    assert.deepEqual(node?.status.capacity, {
      cpu: '4',
      'ephemeral-storage': '104857600Ki',
      'hugepages-1Gi': '0',
      'hugepages-2Mi': '0',
      memory: '8388608Ki',
      pods: '110',
    })
    assert.deepEqual(
      node?.status.conditions?.map(({ type, status }) => [type, status]),
      [
        ['MemoryPressure', 'False'],
        ['DiskPressure', 'False'],
        ['PIDPressure', 'False'],
        ['Ready', 'True'],
      ],
    )
    assert.equal(node?.status.nodeInfo?.kubeletVersion, kubernetesRelease)
    const renewals = () => api.requests.filter((request) => request.method === 'PUT' && request.path.includes('/leases/')).length
    const before = renewals()
    await clock.advance(60_000)
    assert.equal(renewals() - before, 6)
  }))

test('KUB-26 a pod runs and its status is Ready, with events in order', () =>
  withKubelet(async ({ api, clock }) => {
    api.put('pods', pod('web'))
    await clock.advance(5_000)
    const { status } = getPod(api, 'web') ?? {}
    assert.equal(status?.phase, 'Running')
    assert.deepEqual(Object.fromEntries((status?.conditions ?? []).map((condition) => [condition.type, condition.status])), {
      PodReadyToStartContainers: 'True',
      Initialized: 'True',
      Ready: 'True',
      ContainersReady: 'True',
      PodScheduled: 'True',
    })
    assert.equal(status?.containerStatuses?.[0]?.ready, true)
    assert.match(status?.podIP ?? '', /^10\.244\.0\.\d+$/)
    assert.equal(status?.hostIP, '192.0.2.1')
    assert.equal(status?.observedGeneration, 1)
    assert.deepEqual(
      reasons(api).filter((reason) => reason !== 'Starting' && !reason?.startsWith('Node')),
      ['Pulling', 'Pulled', 'Created', 'Started'],
    )
  }))

test('KUB-02 a look at a pod that finds nothing to do asks the runtime once and writes nothing', () =>
  withKubelet(async ({ api, clock, metrics }) => {
    api.put('pods', pod('web'))
    await clock.advance(5_000)
    const asked = (operation: string) =>
      Number(new RegExp(`^kubelet_runtime_operations_total{operation_type="${operation}"} (\\d+)`, 'm').exec(metrics.render())?.[1])
    const looks = () => Number(/^kubelet_pod_worker_duration_seconds_count{operation_type="sync"} (\d+)/m.exec(metrics.render())?.[1] ?? 0)
    const writes = () => api.requests.filter(({ method, path }) => method !== 'GET' && path.includes('/pods/')).length
    const before = { asked: asked('container_status'), looks: looks(), writes: writes() }
    await clock.advance(10 * 60_000)
    // As upstream, a minute with up to half of it more at random lies between two looks.
    const found = looks() - before.looks
    assert.ok(found >= 6 && found <= 10, String(found))
    assert.equal(asked('container_status') - before.asked, found)
    assert.equal(writes(), before.writes)
  }))

for (const [how, profile] of [
  ['at once', {}],
  ['while the runtime is relisted', { pullDelayMs: 15_000 }],
] as const) {
  test(`KUB-02 a pod that starts ${how} is not looked at again, but once its container has ended`, () =>
    withKubelet(
      async ({ api, clock, runtime, metrics }) => {
        const looks = () => Number(/^kubelet_pod_worker_duration_seconds_count{operation_type="sync"} (\d+)/m.exec(metrics.render())?.[1] ?? 0)
        api.put('pods', pod('web'))
        await clock.advance(30_000)
        assert.equal(getPod(api, 'web')?.status?.phase, 'Running')
        assert.equal(looks(), 0)
        const [container] = await runtime.listContainers()
        const stopped = runtime.stopContainer(container?.id ?? '', 0)
        await clock.advance(20_000)
        await stopped
        assert.equal(getPod(api, 'web')?.status?.containerStatuses?.[0]?.restartCount, 1)
        assert.ok(looks() > 0)
      },
      profile,
      // As containerd: whose stream of events may miss something, so that it is asked for everything from time to time.
      { eventsAreComplete: false },
    ))
}

test('KUB-03 KUB-04 init containers run one by one, a sidecar stays, then the rest starts', () =>
  withKubelet(async ({ api, clock }) => {
    const initContainers = [
      { name: 'first', image: 'a:1' },
      { name: 'side', image: 'b:1', restartPolicy: 'Always' },
      { name: 'last', image: 'c:1' },
    ]
    api.put('pods', pod('staged', { initContainers }))
    await clock.advance(15_000)
    const status = getPod(api, 'staged')?.status
    assert.equal(status?.phase, 'Running')
    assert.deepEqual(
      status?.initContainerStatuses?.map((container) => [container.name, Object.keys(container.state ?? {})[0], container.ready]),
      [
        ['first', 'terminated', true],
        ['side', 'running', true],
        ['last', 'terminated', true],
      ],
    )
    const started = api
      .list<Event>('events')
      .filter((event) => event.reason === 'Started')
      .map((event) => event.involvedObject.fieldPath)
    assert.deepEqual(started, ['spec.initContainers{first}', 'spec.initContainers{side}', 'spec.initContainers{last}', 'spec.containers{main}'])
  }))

test('KUB-05 a container that keeps failing restarts with growing waits and shows CrashLoopBackOff', () =>
  withKubelet(async ({ api, clock }) => {
    api.put('pods', pod('crash', {}, { [simulatedAnnotations.exitAfterSeconds]: '1', [simulatedAnnotations.exitCode]: '3' }))
    const restarts = () => getPod(api, 'crash')?.status.containerStatuses?.[0]?.restartCount
    await clock.advance(5_000)
    assert.equal(restarts(), 1)
    const waiting = getPod(api, 'crash')?.status.containerStatuses?.[0]
    assert.equal(waiting?.state?.waiting?.reason, 'CrashLoopBackOff')
    assert.equal(waiting?.state?.waiting?.message, 'back-off 10s restarting failed container=main pod=crash_default(uid-crash)')
    assert.equal(waiting?.lastState?.terminated?.exitCode, 3)
    // As upstream, up to half of a wait more at random.
    await clock.advance(17_000)
    assert.equal(restarts(), 2)
    await clock.advance(32_000)
    assert.equal(restarts(), 3)
    await clock.advance(3_600_000)
    const all = restarts() ?? 0
    assert.ok(all >= 12 && all <= 17, String(all))
  }))

test('KUB-09 a pod that must not restart succeeds or fails', () =>
  withKubelet(async ({ api, clock }) => {
    const ends = (code: string) => ({ [simulatedAnnotations.exitAfterSeconds]: '1', [simulatedAnnotations.exitCode]: code })
    api.put('pods', pod('good', { restartPolicy: 'Never' }, ends('0')))
    api.put('pods', pod('bad', { restartPolicy: 'Never' }, ends('2')))
    await clock.advance(10_000)
    assert.deepEqual([getPod(api, 'good')?.status.phase, getPod(api, 'bad')?.status.phase], ['Succeeded', 'Failed'])
    assert.equal(getPod(api, 'bad')?.status.containerStatuses?.[0]?.state?.terminated?.exitCode, 2)
    assert.equal(getPod(api, 'good')?.status.conditions?.find((condition) => condition.type === 'Ready')?.reason, 'PodCompleted')
  }))

test('KUB-08 a deleted pod stops and then disappears, leaving nothing in the runtime', () =>
  withKubelet(async ({ api, clock, kubelet }) => {
    api.put('pods', pod('web'))
    await clock.advance(5_000)
    api.deletePod('default', 'web', 30)
    await clock.advance(5_000)
    assert.equal(getPod(api, 'web'), undefined)
    assert.ok(reasons(api).includes('Killing'))
    assert.deepEqual(await kubelet.view.runtime.listContainers(), [])
    assert.deepEqual(await kubelet.view.runtime.listPodSandbox(), [])
    assert.deepEqual(kubelet.view.pods(), [])
  }))

test('KUB-08 a deletion that the API does not answer is tried again', () =>
  withKubelet(async ({ api, clock, kubelet }) => {
    api.put('pods', pod('web'))
    await clock.advance(5_000)
    let refusals = 3
    api.intercept = ({ method }) => {
      if (method === 'DELETE' && refusals-- > 0) throw new Error('connection refused')
    }
    api.deletePod('default', 'web', 30)
    await clock.advance(3_000)
    assert.ok(getPod(api, 'web'))
    // Each retry of a pod worker comes after 10 to 15 seconds.
    await clock.advance(60_000)
    assert.equal(getPod(api, 'web'), undefined)
    assert.deepEqual(kubelet.view.pods(), [])
  }))

test('KUB-06 a kubelet that starts again does not wait once more before it probes a container that has run for long', async () => {
  const clock = new VirtualClock()
  const api = new KubeletApi(() => clock.now())
  const random = seededRandom(7)
  const runtime = createSimulatedRuntime({ clock, random, profile: defaultProfile, podCidr: '10.244.0.0/24' })
  const deps = { client: createClient(api), clock, random, log: noLog, metrics: noMetrics, runtime, machine: simulatedMachine }
  const during = async (act: () => Promise<void>) => {
    const stop = new AbortController()
    const running = createKubelet(deps, { nodeName: 'sim-1', nodeIPs: ['192.0.2.1'] }).run(stop.signal)
    await clock.advance(1_000)
    await act()
    stop.abort()
    await clock.advance(1_000)
    await running
  }
  const ready = () => getPod(api, 'slow')?.status.conditions?.find((condition) => condition.type === 'Ready')?.status
  await during(async () => {
    const readinessProbe = { exec: { command: ['check'] }, initialDelaySeconds: 60, periodSeconds: 1 }
    api.put('pods', pod('slow', { containers: [{ name: 'main', image: 'a:1', readinessProbe }] }))
    await clock.advance(50_000)
    assert.equal(ready(), 'False')
    await clock.advance(20_000)
    assert.equal(ready(), 'True')
  })
  await during(async () => {
    await clock.advance(10_000)
    assert.equal(ready(), 'True')
  })
})

test('KUB-10 an image that cannot be pulled shows ErrImagePull, then ImagePullBackOff', () =>
  withKubelet(
    async ({ api, clock }) => {
      api.put('pods', pod('noimage'))
      await clock.advance(1_000)
      const waiting = () => getPod(api, 'noimage')?.status.containerStatuses?.[0]?.state?.waiting
      assert.deepEqual(waiting(), { reason: 'ErrImagePull', message: 'no such image' })
      await clock.advance(7_000)
      assert.deepEqual(waiting(), { reason: 'ImagePullBackOff', message: 'Back-off pulling image "example.com/app:1": ErrImagePull: no such image' })
      assert.equal(getPod(api, 'noimage')?.status.phase, 'Pending')
      const failed = api.list<Event>('events').filter((event) => event.reason === 'Failed')
      assert.deepEqual(
        failed.map((event) => event.message),
        ['Failed to pull image "example.com/app:1": no such image', 'Error: ErrImagePull', 'Error: ImagePullBackOff'],
      )
    },
    { pull: () => ({ error: 'no such image' }) },
  ))

test('KUB-06 failing probes: readiness takes the pod out, liveness restarts it', () => {
  let healthy = true
  return withKubelet(
    async ({ api, clock }) => {
      const probe = { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 2 }
      api.put('pods', pod('probed', { containers: [{ name: 'main', image: 'a:1', readinessProbe: probe, livenessProbe: { ...probe, failureThreshold: 5 } }] }))
      await clock.advance(5_000)
      const ready = () => getPod(api, 'probed')?.status.conditions?.find((condition) => condition.type === 'Ready')?.status
      assert.equal(ready(), 'True')
      healthy = false
      await clock.advance(3_000)
      assert.equal(ready(), 'False')
      await clock.advance(4_000)
      healthy = true
      await clock.advance(5_000)
      assert.equal(getPod(api, 'probed')?.status.containerStatuses?.[0]?.restartCount, 1)
      assert.equal(ready(), 'True')
      const killing = api.list<Event>('events').find((event) => event.reason === 'Killing')
      assert.equal(killing?.message, 'Container main failed liveness probe, will be restarted')
    },
    { behave: () => ({ liveness: [{ passes: healthy }], readiness: [{ passes: healthy }] }) },
  )
})

test('KUB-03 PodReadyToStartContainers is True while a slow image is pulled', () =>
  withKubelet(
    async ({ api, clock }) => {
      api.put('pods', pod('slow'))
      await clock.advance(10_000)
      const { phase, conditions } = getPod(api, 'slow')?.status ?? {}
      assert.deepEqual([phase, conditions?.find(({ type }) => type === 'PodReadyToStartContainers')?.status], ['Pending', 'True'])
      await clock.advance(60_000)
      assert.equal(getPod(api, 'slow')?.status.phase, 'Running')
    },
    { pullDelayMs: 30_000 },
  ))

test('KUB-03 without a network only pods with hostNetwork start, and the others get an event', () => {
  let isReady = true
  const condition = () => ({ type: 'NetworkReady', status: isReady, reason: isReady ? '' : 'NetworkPluginNotReady', message: isReady ? '' : 'no plugin' })
  const status = async () => ({ conditions: [{ type: 'RuntimeReady', status: true, reason: '', message: '' }, condition()], handlers: [] })
  return withKubelet(
    async ({ api, clock }) => {
      isReady = false
      await clock.advance(400_000)
      api.put('pods', pod('apart'))
      api.put('pods', pod('shares', { hostNetwork: true }))
      await clock.advance(10_000)
      assert.deepEqual([getPod(api, 'apart')?.status.phase, getPod(api, 'shares')?.status.phase], ['Pending', 'Running'])
      const told = api.list<Event>('events').find(({ reason }) => reason === 'NetworkNotReady')
      const why = 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no plugin'
      assert.deepEqual([told?.involvedObject.name, told?.message], ['apart', `network is not ready: ${why}`])
      isReady = true
      await clock.advance(10_000)
      assert.equal(getPod(api, 'apart')?.status.phase, 'Running')
    },
    {},
    { status } as Partial<SimulatedRuntime>,
  )
})

test('KUB-09 a pod whose phase another client set to Failed is stopped, and keeps that status', () =>
  withKubelet(async ({ api, clock, runtime }) => {
    api.put('pods', pod('lost'))
    await clock.advance(10_000)
    const lost = getPod(api, 'lost')
    assert.equal(lost?.status.phase, 'Running')
    api.put('pods', { ...lost, status: { ...lost.status, phase: 'Failed', reason: 'NodeLost', message: 'gone' } } as Pod)
    await clock.advance(40_000)
    const { phase, reason, message, containerStatuses } = getPod(api, 'lost')?.status ?? {}
    assert.deepEqual([phase, reason, message, containerStatuses?.[0]?.state?.running], ['Failed', 'NodeLost', 'gone', undefined])
    assert.deepEqual(
      (await runtime.listContainers()).filter(({ state }) => state === 'CONTAINER_RUNNING'),
      [],
    )
  }))

test('a pod past its activeDeadlineSeconds fails', () =>
  withKubelet(async ({ api, clock }) => {
    api.put('pods', pod('slow', { activeDeadlineSeconds: 20 }))
    await clock.advance(10_000)
    assert.equal(getPod(api, 'slow')?.status.phase, 'Running')
    await clock.advance(15_000)
    const { phase, reason } = getPod(api, 'slow')?.status ?? {}
    assert.deepEqual([phase, reason], ['Failed', 'DeadlineExceeded'])
  }))

test('KUB-05 an exit that matches a RestartAllContainers rule restarts all containers: counts grow, the sandbox and its address stay', () =>
  withKubelet(async ({ api, clock, runtime }) => {
    const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }]
    const containers = [
      { name: 'main', image: 'a:1', restartPolicy: 'Never', restartPolicyRules },
      { name: 'other', image: 'a:1' },
    ]
    // Its containers run until the test ends one: without this they would succeed after a second.
    const staying = { [`${simulatedAnnotations.exitAfterSeconds}.main`]: '1000000', [`${simulatedAnnotations.exitAfterSeconds}.other`]: '1000000' }
    api.put('pods', pod('whole', { restartPolicy: 'Never', initContainers: [{ name: 'prepare', image: 'a:1' }], containers }, staying))
    await clock.advance(20_000)
    const before = getPod(api, 'whole')
    assert.equal(before?.status.phase, 'Running')
    const seen: string[] = []
    const counts = () => {
      const { containerStatuses = [], initContainerStatuses = [] } = getPod(api, 'whole')?.status ?? {}
      return [...initContainerStatuses, ...containerStatuses].map(({ restartCount }) => restartCount)
    }
    const reference = { namespace: 'default', name: 'whole' }
    assert.equal(runtime.exit(reference, { container: 'main', exitCode: 42 }), 1)
    for (let step = 0; step < 2000; step++) {
      await clock.advance(step < 1000 ? 1 : 20)
      const status = getPod(api, 'whole')?.status
      const restarting = status?.conditions?.find(({ type }) => type === 'AllContainersRestarting')
      const line = `${restarting?.status} ${restarting?.reason ?? ''} ${status?.phase}`
      if (seen.at(-1) !== line) seen.push(line)
    }
    assert.ok(seen.includes('True RestartAllContainersStarted Running'), seen.join(', '))
    assert.equal(seen.at(-1), 'False  Running')
    const after = getPod(api, 'whole')
    assert.deepEqual(counts(), [1, 1, 1])
    assert.deepEqual([after?.status.podIP, after?.metadata.uid], [before?.status.podIP, before?.metadata.uid])
    const last = after?.status.containerStatuses?.map(({ lastState }) => [lastState?.terminated?.exitCode, lastState?.terminated?.reason])
    assert.deepEqual(last, [
      [137, 'RestartingAllContainers'],
      [137, 'RestartingAllContainers'],
    ])
    assert.ok(api.list<Event>('events').some((event) => event.reason === 'Killing' && event.message === 'killing'))
    assert.equal(after?.status.conditions?.find(({ type }) => type === 'Initialized')?.status, 'True')
    // The runtime has forgotten how it ended: there is nothing to back off from.
    runtime.exit(reference, { container: 'main', exitCode: 42 })
    await clock.advance(5_000)
    assert.deepEqual(counts(), [2, 2, 2])
    assert.equal(getPod(api, 'whole')?.status.phase, 'Running')
  }))
