import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerStatus, Pod, PodSpec, PodStatus } from '#api/gen/types/core.v1'
import type { RuntimeContainerStatus } from '#grpc/criTypes'
import { containersReadyCondition, initializedCondition, readyCondition } from '../core/podConditions.ts'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import { podPhase } from './podPhase.ts'
import { generatePodStatus, mergeConditions, type PodStatusInput } from './podStatus.ts'
import { mergePodStatus, statusPatch } from './statusManager.ts'

function pod(spec: Partial<PodSpec> = {}): Pod {
  const metadata = { name: 'p', namespace: 'n', uid: 'u', generation: 3 }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'a' }, { name: 'b' }], restartPolicy: 'Always', ...spec }, status: {} }
}

type Short = 'running' | 'waiting' | number | `last${number}`

function statusesOf(states: Record<string, Short>): ContainerStatus[] {
  return Object.entries(states).map(([name, state]) => {
    const base = { name, image: '', imageID: '', restartCount: 0, ready: state === 'running' || state === 0, started: state === 'running' }
    if (state === 'running') return { ...base, state: { running: {} } }
    if (state === 'waiting') return { ...base, state: { waiting: {} } }
    if (typeof state === 'number') return { ...base, state: { terminated: { exitCode: state } } }
    return { ...base, state: { waiting: {} }, lastState: { terminated: { exitCode: Number(state.slice(4)) } } }
  })
}

const phases: { name: string; spec?: Partial<PodSpec>; states: Record<string, Short>; terminal?: true; initialized?: true; want: string }[] = [
  { name: 'nothing known', states: {}, want: 'Pending' },
  { name: 'one waits', states: { a: 'running', b: 'waiting' }, want: 'Pending' },
  { name: 'all run', states: { a: 'running', b: 'running' }, want: 'Running' },
  { name: 'one runs, one ended', states: { a: 'running', b: 1 }, want: 'Running' },
  { name: 'all are about to restart', states: { a: 1, b: 'last1' }, want: 'Running' },
  { name: 'all succeeded under Never', spec: { restartPolicy: 'Never' }, states: { a: 0, b: 0 }, want: 'Succeeded' },
  { name: 'one failed under Never', spec: { restartPolicy: 'Never' }, states: { a: 0, b: 2 }, want: 'Failed' },
  { name: 'one failed under OnFailure', spec: { restartPolicy: 'OnFailure' }, states: { a: 0, b: 2 }, want: 'Running' },
  { name: 'all succeeded under OnFailure', spec: { restartPolicy: 'OnFailure' }, states: { a: 0, b: 0 }, want: 'Succeeded' },
  { name: 'a terminated pod succeeds under Always too', states: { a: 0, b: 0 }, terminal: true, want: 'Succeeded' },
  { name: 'a terminated pod fails', states: { a: 137, b: 0 }, terminal: true, want: 'Failed' },
  { name: 'an init container runs', spec: { initContainers: [{ name: 'i' }] }, states: { i: 'running', a: 'waiting', b: 'waiting' }, want: 'Pending' },
  { name: 'a failed init container is final under Never', spec: { restartPolicy: 'Never', initContainers: [{ name: 'i' }] }, states: { i: 1 }, want: 'Failed' },
  {
    name: 'a failed init container runs again',
    spec: { initContainers: [{ name: 'i' }] },
    states: { i: 'last1', a: 'waiting', b: 'waiting' },
    want: 'Pending',
  },
  {
    name: 'a sidecar that restarts does not take a running pod back',
    spec: { initContainers: [{ name: 's', restartPolicy: 'Always' }] },
    states: { s: 'last1', a: 'running', b: 'running' },
    initialized: true,
    want: 'Running',
  },
  {
    name: 'a sidecar alone does not keep a pod from succeeding',
    spec: { restartPolicy: 'Never', initContainers: [{ name: 's', restartPolicy: 'Always' }] },
    states: { s: 137, a: 0, b: 0 },
    want: 'Succeeded',
  },
]
for (const c of phases) {
  test(`KUB-09 phase: ${c.name}`, () => assert.equal(podPhase(pod(c.spec), statusesOf(c.states), c.terminal ?? false, c.initialized ?? false), c.want))
}

test('ContainersReady names the containers that are not', () => {
  assert.deepEqual(containersReadyCondition(pod(), statusesOf({ a: 'waiting' }), 'Pending'), {
    type: 'ContainersReady',
    status: 'False',
    reason: 'ContainersNotReady',
    message: 'containers with unknown status: [b], containers with unready status: [a]',
  })
  assert.deepEqual(containersReadyCondition(pod(), statusesOf({ a: 0, b: 0 }), 'Succeeded'), {
    type: 'ContainersReady',
    status: 'False',
    reason: 'PodCompleted',
  })
})

test('Ready waits for the readiness gates', () => {
  const gated = pod({ readinessGates: [{ conditionType: 'x/ready' }] })
  const ready = { type: 'ContainersReady', status: 'True' } as const
  assert.deepEqual(readyCondition(gated, ready, []), {
    type: 'Ready',
    status: 'False',
    reason: 'ReadinessGatesNotReady',
    message: 'corresponding condition of pod readiness gate "x/ready" does not exist.',
  })
  assert.deepEqual(readyCondition(gated, ready, [{ type: 'x/ready', status: 'True' }]), { type: 'Ready', status: 'True' })
})

test('Initialized names what is missing, and stays true once containers ran', () => {
  const spec = { initContainers: [{ name: 'i' }] }
  assert.deepEqual(initializedCondition(pod(spec), statusesOf({ i: 'waiting', a: 'waiting', b: 'waiting' }), 'Pending'), {
    type: 'Initialized',
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: 'containers with incomplete status: [i]',
  })
  assert.deepEqual(initializedCondition(pod(spec), statusesOf({ i: 'waiting', a: 'running' }), 'Running'), { type: 'Initialized', status: 'True' })
})

test('a transition time changes only with the status; others’ conditions stay', () => {
  const previous = [
    { type: 'Ready', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' },
    { type: 'Initialized', status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' },
    { type: 'PodScheduled', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' },
    { type: 'x/ready', status: 'False' },
  ]
  const merged = mergeConditions(
    previous,
    [
      { type: 'Ready', status: 'True' },
      { type: 'Initialized', status: 'True' },
    ],
    1_600_000_000_000,
    3,
  )
  assert.deepEqual(
    merged.map(({ type, status, lastTransitionTime }) => [type, status, lastTransitionTime]),
    [
      ['x/ready', 'False', undefined],
      ['Initialized', 'True', '2020-09-13T12:26:40Z'],
      ['Ready', 'True', '2020-01-01T00:00:00Z'],
      ['PodScheduled', 'True', '2020-01-01T00:00:00Z'],
    ],
  )
})

const record = (name: string, more: Partial<ContainerRecord>): ContainerRecord => ({
  id: `id-${name}`,
  name,
  sandboxId: 's',
  state: 'running',
  restartCount: 0,
  hash: '',
  createdAtMs: 1000,
  startedAtMs: 2000,
  finishedAtMs: 0,
  exitCode: 0,
  reason: '',
  message: '',
  image: 'img:1',
  imageId: 'sha256:1',
  status: {} as RuntimeContainerStatus,
  ...more,
})

test('KUB-11 a mount is reported as recursively read-only if the runtime was asked for that', () => {
  const mounts = [
    { containerPath: '/deep', hostPath: '/a', readonly: true, recursiveReadOnly: true },
    { containerPath: '/flat', hostPath: '/b', readonly: true },
  ]
  const volumeMounts = [
    { name: 'v', mountPath: '/deep', readOnly: true },
    { name: 'v', mountPath: '/flat', readOnly: true },
    { name: 'v', mountPath: '/open' },
  ]
  const containers = [record('a', { status: { mounts } as unknown as RuntimeContainerStatus })]
  const asked = { ...input({ containers }, {}), pod: pod({ containers: [{ name: 'a', volumeMounts }] }) }
  assert.deepEqual(generatePodStatus(asked).containerStatuses?.[0]?.volumeMounts, [
    { name: 'v', mountPath: '/deep', readOnly: true, recursiveReadOnly: 'Enabled' },
    { name: 'v', mountPath: '/flat', readOnly: true, recursiveReadOnly: 'Disabled' },
    { name: 'v', mountPath: '/open' },
  ])
})

function input(runtime: Partial<PodRuntimeStatus>, previousStatus: PodStatus, more: Partial<PodStatusInput> = {}): PodStatusInput {
  return {
    pod: pod({ containers: [{ name: 'a', image: 'img:1' }] }),
    runtimeStatus: { uid: 'u', sandboxes: [], containers: [], ...runtime },
    runtimeName: 'containerd',
    previousStatus,
    startFailure: () => undefined,
    probes: { ready: () => true, started: () => true },
    podIsTerminal: false,
    nowMs: 3000,
    hostIPs: ['192.0.2.1'],
    ...more,
  }
}

const firstContainer = (status: PodStatus) => status.containerStatuses?.[0]

test('a crashed container that must wait shows why, with its last run', () => {
  const containers = [
    record('a', { state: 'exited', exitCode: 1, finishedAtMs: 2500, restartCount: 2 }),
    record('a', { id: 'older', state: 'exited', exitCode: 9, finishedAtMs: 1500, restartCount: 1 }),
  ]
  const failure = { reason: 'CrashLoopBackOff', message: 'back-off 20s' }
  const status = firstContainer(generatePodStatus(input({ containers }, {}, { startFailure: () => failure })))
  assert.deepEqual(status?.state, { waiting: failure })
  assert.equal(status?.lastState?.terminated?.exitCode, 1)
  assert.equal(status?.restartCount, 2)
})

test('a restarted container keeps its last run as the last state', () => {
  const containers = [record('a', { id: 'new', restartCount: 1 }), record('a', { id: 'old', state: 'exited', exitCode: 3 })]
  const status = firstContainer(generatePodStatus(input({ containers }, {})))
  assert.deepEqual(status?.state, { running: { startedAt: '1970-01-01T00:00:02Z' } })
  assert.equal(status?.lastState?.terminated?.containerID, 'containerd://old')
})

test('a container without a trace that used to run counts a restart', () => {
  const previous = { containerStatuses: [{ name: 'a', image: '', imageID: '', ready: true, restartCount: 4, state: { running: {} } }] }
  const status = firstContainer(generatePodStatus(input({}, previous)))
  assert.equal(status?.restartCount, 5)
  assert.equal(status?.lastState?.terminated?.reason, 'ContainerStatusUnknown')
})

test('KUB-09 statuses of regular containers are sorted by name, statuses of init containers have the order of the spec', () => {
  const spec = { containers: [{ name: 'z' }, { name: 'b' }], initContainers: [{ name: 'y' }, { name: 'x' }] }
  const status = generatePodStatus(input({}, {}, { pod: pod(spec) }))
  const names = (list: PodStatus['containerStatuses']) => list?.map(({ name }) => name)
  assert.deepEqual(
    [names(status.initContainerStatuses), names(status.containerStatuses)],
    [
      ['y', 'x'],
      ['b', 'z'],
    ],
  )
})

test('KUB-22 a container that has ended has what it will be started with', () => {
  const resources = { requests: { cpu: '100m' }, limits: { cpu: '200m' } }
  const asked = { pod: pod({ containers: [{ name: 'a', resources }, { name: 'b' }] }), appliedResources: () => ({ requests: { cpu: '1' } }) }
  const containers = [record('a', { state: 'exited', exitCode: 1 }), record('b', { state: 'exited' })]
  const [a, b] = generatePodStatus(input({ containers }, {}, asked)).containerStatuses ?? []
  assert.deepEqual([a?.resources, a?.allocatedResources, b?.resources, b?.allocatedResources], [resources, resources.requests, {}, undefined])
})

const states: { name: string; record: Partial<ContainerRecord>; before?: ContainerStatus['state']; want: ContainerStatus['state'] }[] = [
  { name: 'created and not started', record: { state: 'created' }, want: { waiting: {} } },
  { name: 'lost track of, never seen running', record: { state: 'unknown' }, want: { waiting: {} } },
  {
    name: 'lost track of while it ran',
    record: { state: 'unknown' },
    before: { running: {} },
    want: {
      terminated: {
        exitCode: 137,
        reason: 'ContainerStatusUnknown',
        message: 'The container could not be located when the pod was terminated',
        startedAt: undefined,
        finishedAt: undefined,
      },
    },
  },
  {
    name: 'ended without ever having started',
    record: { state: 'exited', exitCode: 128, reason: 'StartError', startedAtMs: 0, finishedAtMs: 5000 },
    want: {
      terminated: {
        exitCode: 128,
        reason: 'StartError',
        startedAt: '1970-01-01T00:00:00Z',
        finishedAt: '1970-01-01T00:00:05Z',
        containerID: 'containerd://id-a',
      },
    },
  },
]
for (const c of states) {
  test(`KUB-09 the state of a container that was ${c.name}`, () => {
    const previous = c.before ? { containerStatuses: [{ name: 'a', image: '', imageID: '', ready: false, restartCount: 2, state: c.before }] } : {}
    const status = firstContainer(generatePodStatus(input({ containers: [record('a', c.record)] }, previous)))
    assert.deepEqual(status?.state, c.want)
    assert.equal(status?.restartCount, c.before ? 3 : 0)
  })
}

test('KUB-03 an init container without a record is completed if a regular one was created; a sidecar is not', () => {
  const spec = { containers: [{ name: 'a' }], initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }] }
  const [init, side] = generatePodStatus(input({ containers: [record('a', {})] }, {}, { pod: pod(spec) })).initContainerStatuses ?? []
  assert.deepEqual([init?.state?.terminated?.exitCode, init?.state?.terminated?.reason, init?.ready], [0, 'Completed', true])
  assert.deepEqual(side?.state, { waiting: { reason: 'PodInitializing' } })
})

test('KUB-08 in a finished pod, containers without a known exit have failed; before initialization only init containers count', () => {
  const lost = { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'The container could not be located when the pod was terminated' }
  const terminated = { ...lost, startedAt: undefined, finishedAt: undefined }
  const failure = () => ({ reason: 'ImagePullBackOff', message: 'no such image' })
  const plain = generatePodStatus(input({}, { phase: 'Pending' }, { podIsTerminal: true, startFailure: failure }))
  assert.deepEqual([plain.phase, firstContainer(plain)?.state], ['Failed', { terminated }])
  const spec = { containers: [{ name: 'a' }], initContainers: [{ name: 'i' }, { name: 'j' }] }
  const early = generatePodStatus(input({}, { phase: 'Pending' }, { podIsTerminal: true, pod: pod(spec) }))
  assert.deepEqual(
    [...(early.initContainerStatuses ?? []), ...(early.containerStatuses ?? [])].map(({ state }) => state),
    [{ terminated }, { waiting: { reason: 'PodInitializing' } }, { waiting: { reason: 'PodInitializing' } }],
  )
})

test('KUB-09 conditions of other components are first, then the kubelet’s own in their order, each with its observed generation', () => {
  const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }]
  const spec = { containers: [{ name: 'a', restartPolicy: 'Never', restartPolicyRules }] }
  const previous = {
    conditions: [
      { type: 'PodScheduled', status: 'True', observedGeneration: 1 },
      { type: 'x/ready', status: 'True' },
    ],
  }
  const resizeConditions = [{ type: 'PodResizeInProgress', status: 'True', observedGeneration: 2 }] as const
  const { conditions } = generatePodStatus(input({ containers: [record('a', {})] }, previous, { pod: pod(spec), resizeConditions }))
  assert.deepEqual(
    conditions?.map(({ type, observedGeneration }) => [type, observedGeneration]),
    [
      ['x/ready', undefined],
      ['PodResizeInProgress', 2],
      ['PodReadyToStartContainers', 3],
      ['Initialized', 3],
      ['Ready', 3],
      ['ContainersReady', 3],
      ['PodScheduled', 3],
      ['AllContainersRestarting', undefined],
    ],
  )
})

test('KUB-12 a terminal phase is held back while containers may run, and conditions of other components stay', () => {
  const server = {
    phase: 'Running',
    conditions: [
      { type: 'x/ready', status: 'False' },
      { type: 'Ready', status: 'True' },
    ],
  }
  const conditions = [
    { type: 'x/ready', status: 'True' },
    { type: 'Ready', status: 'False' },
    { type: 'DisruptionTarget', status: 'True' },
  ]
  const own = { phase: 'Failed', reason: 'Evicted', message: 'out of disk', conditions }
  const told = (couldRun: boolean) => {
    const { phase, reason, conditions = [] } = mergePodStatus(server, own, couldRun)
    return [phase, reason, conditions.map(({ type, status }) => `${type}=${status}`).join()]
  }
  assert.deepEqual(told(true), ['Running', undefined, 'x/ready=False,Ready=False'])
  assert.deepEqual(told(false), ['Failed', 'Evicted', 'x/ready=False,DisruptionTarget=True,Ready=False'])
})

test('a terminal phase never changes, and an ending decided here beats the containers', () => {
  const containers = [record('a', {})]
  assert.equal(generatePodStatus(input({ containers }, { phase: 'Failed', reason: 'Evicted' })).phase, 'Failed')
  const ending = { phase: 'Failed', reason: 'Evicted', message: 'out of disk' } as const
  const { phase, reason, message } = generatePodStatus(input({ containers }, { phase: 'Running' }, { ending }))
  assert.deepEqual([phase, reason, message], ['Failed', 'Evicted', 'out of disk'])
})

const patches: { name: string; before: PodStatus; after: PodStatus; want: unknown }[] = [
  { name: 'no change, no patch', before: { phase: 'Running' }, after: { phase: 'Running' }, want: undefined },
  { name: 'a member that went is null', before: { phase: 'Failed', reason: 'x' }, after: { phase: 'Failed' }, want: { reason: null } },
  {
    name: 'only changed conditions, with what they lost',
    before: {
      conditions: [
        { type: 'A', status: 'False', reason: 'R' },
        { type: 'B', status: 'True' },
      ],
    },
    after: {
      conditions: [
        { type: 'A', status: 'True' },
        { type: 'B', status: 'True' },
      ],
    },
    want: { '$setElementOrder/conditions': [{ type: 'A' }, { type: 'B' }], conditions: [{ type: 'A', status: 'True', reason: null }] },
  },
  {
    name: 'addresses that went are deleted',
    before: { podIPs: [{ ip: '1' }] },
    after: { podIPs: [{ ip: '2' }] },
    want: { '$setElementOrder/podIPs': [{ ip: '2' }], podIPs: [{ ip: '2' }, { $patch: 'delete', ip: '1' }] },
  },
]
for (const c of patches) test(`KUB-12 ${c.name}`, () => assert.deepEqual(statusPatch(c.before, c.after), c.want))

test('KUB-09 the last words of all containers together have 12 KiB', () => {
  const message = 'x'.repeat(4096)
  const terminated = { exitCode: 1, message, containerID: 'containerd://gone' }
  const containers = ['a', 'b', 'c', 'd'].map((name) => ({ name }))
  const containerStatuses = containers.map(({ name }) => ({ name, image: '', imageID: '', ready: false, restartCount: 0, state: { terminated } }))
  const status = generatePodStatus({
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', uid: 'u' }, spec: { containers, restartPolicy: 'Never' }, status: {} },
    runtimeStatus: { uid: 'u', sandboxes: [], containers: [] },
    runtimeName: 'containerd',
    previousStatus: { phase: 'Failed', containerStatuses },
    startFailure: () => undefined,
    probes: { ready: () => true, started: () => true },
    podIsTerminal: true,
    nowMs: 0,
    hostIPs: [],
  })
  assert.deepEqual(
    status.containerStatuses?.map(({ state }) => state?.terminated?.message?.length),
    [3072, 3072, 3072, 3072],
  )
})
