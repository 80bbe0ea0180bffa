import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod, PodSpec } from '#api/gen/types/core.v1'
import type { PodSandboxStatus, RuntimeContainerStatus } from '#grpc/criTypes'
import type { ContainerRecord, PodRuntimeStatus } from '../core/podRuntimeStatus.ts'
import type { ProbeView } from '../core/probeResults.ts'
import { containerHash } from '../core/runtimeLabels.ts'
import { computePodActions, type PodActions } from './podActions.ts'

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: 'i:1', ...more })
const sidecar = (name: string, more: Partial<Container> = {}) => container(name, { restartPolicy: 'Always', ...more })

function pod(spec: Partial<PodSpec>): Pod {
  const metadata = { name: 'p', namespace: 'n', uid: 'u' }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [container('a'), container('b')], restartPolicy: 'Always', ...spec }, status: {} }
}

const sandbox = (id = 's1', attempt = 0, more: Partial<PodSandboxStatus> = {}): PodSandboxStatus => ({
  id,
  metadata: { name: 'p', namespace: 'n', uid: 'u', attempt },
  state: 'SANDBOX_READY',
  createdAt: attempt,
  labels: {},
  annotations: {},
  runtimeHandler: '',
  network: { ip: '10.0.0.1', additionalIps: [] },
  ...more,
})

type State = 'running' | 'created' | 'unknown' | number

function record(name: string, state: State, more: Partial<ContainerRecord> = {}): ContainerRecord {
  return {
    id: `id-${name}`,
    name,
    sandboxId: 's1',
    state: typeof state === 'number' ? 'exited' : state,
    restartCount: 0,
    hash: containerHash({ name, image: 'i:1' }),
    createdAtMs: 1,
    startedAtMs: 1,
    finishedAtMs: 1,
    exitCode: typeof state === 'number' ? state : 0,
    reason: '',
    message: '',
    image: '',
    imageId: '',
    status: {} as RuntimeContainerStatus,
    ...more,
  }
}

const status = (containers: ContainerRecord[], sandboxes: PodSandboxStatus[] = [sandbox()]): PodRuntimeStatus => ({ uid: 'u', sandboxes, containers })
const noProbes: ProbeView = { liveness: () => undefined, startup: () => undefined }

interface Summary {
  kill?: string[]
  killPod?: true
  createSandbox?: true
  init?: string[]
  start?: string[]
  ephemeral?: string[]
  attempt?: number
}

function summary(actions: PodActions): Summary {
  const names = (list: readonly { name: string }[]) => list.map(({ name }) => name)
  return {
    ...(actions.killPod ? { killPod: true } : {}),
    ...(actions.createSandbox ? { createSandbox: true, attempt: actions.attempt } : {}),
    ...(actions.initContainersToStart.length ? { init: names(actions.initContainersToStart) } : {}),
    ...(actions.containersToStart.length ? { start: names(actions.containersToStart) } : {}),
    ...(actions.ephemeralContainersToStart.length ? { ephemeral: names(actions.ephemeralContainersToStart) } : {}),
    ...(actions.containersToKill.length ? { kill: actions.containersToKill.map((kill) => `${kill.record.name}: ${kill.message}`) } : {}),
  }
}

const inits = [container('i1'), container('i2')]
const mixed = [container('i1'), sidecar('s'), container('i2')]
const running = [record('a', 'running'), record('b', 'running')]
const failing = (what: 'liveness' | 'startup'): ProbeView => ({ ...noProbes, [what]: (id: string) => (id === 'id-a' ? 'Failure' : undefined) })

const cases: { name: string; spec?: Partial<PodSpec>; status: PodRuntimeStatus; probes?: ProbeView; want: Summary }[] = [
  { name: 'a new pod gets a sandbox and its containers', status: status([], []), want: { killPod: true, createSandbox: true, attempt: 0, start: ['a', 'b'] } },
  {
    name: 'a new pod with init containers starts with the first',
    spec: { initContainers: inits },
    status: status([], []),
    want: { killPod: true, createSandbox: true, attempt: 0, init: ['i1'] },
  },
  { name: 'what runs is left alone', status: status(running), want: {} },
  { name: 'a missing container is started', status: status([record('a', 'running')]), want: { start: ['b'] } },
  { name: 'an ended container restarts under Always', status: status([record('a', 'running'), record('b', 0)]), want: { start: ['b'] } },
  { name: 'success is final under OnFailure', spec: { restartPolicy: 'OnFailure' }, status: status([record('a', 'running'), record('b', 0)]), want: {} },
  {
    name: 'failure restarts under OnFailure',
    spec: { restartPolicy: 'OnFailure' },
    status: status([record('a', 'running'), record('b', 1)]),
    want: { start: ['b'] },
  },
  { name: 'failure is final under Never', spec: { restartPolicy: 'Never' }, status: status([record('a', 'running'), record('b', 1)]), want: {} },
  {
    name: 'all done under Never: the sandbox goes',
    spec: { restartPolicy: 'Never' },
    status: status([record('a', 0), record('b', 1)]),
    want: { killPod: true },
  },
  {
    name: 'a dead sandbox is replaced',
    status: status([record('a', 137), record('b', 137)], [sandbox('s1', 0, { state: 'SANDBOX_NOTREADY' })]),
    want: { killPod: true, createSandbox: true, attempt: 1, start: ['a', 'b'] },
  },
  {
    name: 'a dead sandbox of a pod that must not restart is not replaced',
    spec: { restartPolicy: 'Never' },
    status: status([record('a', 137), record('b', 0)], [sandbox('s1', 0, { state: 'SANDBOX_NOTREADY' })]),
    want: { killPod: true },
  },
  {
    name: 'a new sandbox under OnFailure leaves out what succeeded',
    spec: { restartPolicy: 'OnFailure' },
    status: status([record('a', 0), record('b', 137)], [sandbox('s1', 0, { state: 'SANDBOX_NOTREADY' })]),
    want: { killPod: true, createSandbox: true, attempt: 1, start: ['b'] },
  },
  {
    name: 'a sandbox that lost its address is replaced',
    status: status(running, [sandbox('s1', 2, { network: null })]),
    want: { killPod: true, createSandbox: true, attempt: 3, start: ['a', 'b'] },
  },
  {
    name: 'a sandbox on the host network has no IP address',
    spec: { hostNetwork: true },
    status: status(running, [sandbox('s1', 0, { network: null })]),
    want: {},
  },
  {
    name: 'two ready sandboxes are one too many',
    status: status(running, [sandbox('s2', 1), sandbox('s1', 0)]),
    want: { killPod: true, createSandbox: true, attempt: 2, start: ['a', 'b'] },
  },
  {
    name: 'a failed liveness probe restarts',
    status: status(running),
    probes: failing('liveness'),
    want: { start: ['a'], kill: ['a: Container a failed liveness probe, will be restarted'] },
  },
  {
    name: 'a failed startup probe restarts',
    status: status(running),
    probes: failing('startup'),
    want: { start: ['a'], kill: ['a: Container a failed startup probe, will be restarted'] },
  },
  {
    name: 'a failed liveness probe under Never only kills',
    spec: { restartPolicy: 'Never' },
    status: status(running),
    probes: failing('liveness'),
    want: { kill: ['a: Container a failed liveness probe'] },
  },
  {
    name: 'a pod of which nothing else runs ends with the container that fails its liveness probe',
    spec: { restartPolicy: 'Never', containers: [container('a')] },
    status: status([record('a', 'running')]),
    probes: failing('liveness'),
    want: { killPod: true },
  },
  {
    name: 'rules do not apply to a container that a probe ends',
    spec: {
      containers: [
        container('a', { restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [137] } }] }),
        container('b'),
      ],
    },
    status: status(running),
    probes: failing('liveness'),
    want: { kill: ['a: Container a failed liveness probe'] },
  },
  {
    name: 'a sidecar that fails its liveness probe is restarted, and called an init container',
    spec: { initContainers: [sidecar('a')], containers: [container('b')] },
    status: status([record('b', 'running'), record('a', 'running')]),
    probes: failing('liveness'),
    want: { init: ['a'], kill: ['a: Init container a failed liveness probe'] },
  },
  {
    name: 'an init container in an unknown state ends a pod that must not restart',
    spec: { initContainers: inits, restartPolicy: 'Never' },
    status: status([record('i1', 'unknown')]),
    want: { killPod: true },
  },
  {
    name: 'a container’s own policy does not bring back the sandbox of a pod that must not restart',
    spec: { restartPolicy: 'Never', containers: [container('a', { restartPolicy: 'Always' })] },
    status: status([record('a', 1)], [sandbox('s1', 0, { state: 'SANDBOX_NOTREADY' })]),
    want: { killPod: true },
  },
  {
    name: 'a new sandbox starts what must not restart, too, unless it succeeded under OnFailure',
    spec: { containers: [container('a', { restartPolicy: 'Never' }), container('b', { restartPolicy: 'OnFailure' })] },
    status: status([record('a', 1), record('b', 0)], [sandbox('s1', 0, { state: 'SANDBOX_NOTREADY' })]),
    want: { killPod: true, createSandbox: true, attempt: 1, start: ['a'] },
  },
  {
    name: 'a changed image restarts whatever the policy',
    spec: { restartPolicy: 'Never', containers: [container('a', { image: 'i:2' })] },
    status: status([record('a', 'running')]),
    want: { start: ['a'], kill: ['a: Container a definition changed, will be restarted'] },
  },
  {
    name: 'an unknown state is killed before the restart',
    status: status([record('a', 'unknown'), record('b', 'running')]),
    want: { start: ['a'], kill: ['a: Container is in "unknown" state, try killing it before restart'] },
  },
  { name: 'a running init container is waited for', spec: { initContainers: inits }, status: status([record('i1', 'running')]), want: {} },
  { name: 'the next init container follows success', spec: { initContainers: inits }, status: status([record('i1', 0)]), want: { init: ['i2'] } },
  {
    name: 'after the last init container the rest starts',
    spec: { initContainers: inits },
    status: status([record('i2', 0), record('i1', 0)]),
    want: { start: ['a', 'b'] },
  },
  { name: 'a failed init container runs again', spec: { initContainers: inits }, status: status([record('i1', 1)]), want: { init: ['i1'] } },
  {
    name: 'a failed init container ends a pod that must not restart',
    spec: { initContainers: inits, restartPolicy: 'Never' },
    status: status([record('i1', 1)]),
    want: { killPod: true },
  },
  {
    name: 'removed records of earlier init containers do not matter',
    spec: { initContainers: inits },
    status: status([record('i2', 0)]),
    want: { start: ['a', 'b'] },
  },
  {
    name: 'a sidecar that runs lets the next one start',
    spec: { initContainers: mixed },
    status: status([record('s', 'running'), record('i1', 0)]),
    want: { init: ['i2'] },
  },
  {
    name: 'a sidecar with a startup probe is waited for',
    spec: { initContainers: [sidecar('s', { startupProbe: {} }), container('i2')] },
    status: status([record('s', 'running')]),
    want: {},
  },
  {
    name: 'a sidecar that ends is restarted while an init container runs',
    spec: { initContainers: mixed },
    status: status([record('i2', 'running'), record('s', 1), record('i1', 0)]),
    want: { init: ['s'] },
  },
  {
    name: 'a sidecar that ends is restarted while regular containers run',
    spec: { initContainers: mixed },
    status: status([...running, record('i2', 0), record('s', 0), record('i1', 0)]),
    want: { init: ['s'] },
  },
  {
    name: 'sidecars go when the others are done',
    spec: { initContainers: [sidecar('s')], restartPolicy: 'Never' },
    status: status([record('a', 0), record('b', 0), record('s', 'running')]),
    want: { killPod: true },
  },
  {
    name: 'init records of an earlier sandbox do not count',
    spec: { initContainers: inits },
    status: status([record('i2', 0, { sandboxId: 's0' }), record('i1', 0, { sandboxId: 's0' })]),
    want: { init: ['i1'] },
  },
  { name: 'an ephemeral container starts once', spec: { ephemeralContainers: [container('debug')] }, status: status(running), want: { ephemeral: ['debug'] } },
  {
    name: 'an ephemeral container never restarts',
    spec: { ephemeralContainers: [container('debug')] },
    status: status([...running, record('debug', 0)]),
    want: {},
  },
  {
    name: 'a container restart rule beats the policy of the pod',
    spec: {
      restartPolicy: 'Never',
      containers: [container('a', { restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }] })],
    },
    status: status([record('a', 42)]),
    want: { start: ['a'] },
  },
]
for (const c of cases) {
  test(`KUB-03 KUB-04 ${c.name}`, () => assert.deepEqual(summary(computePodActions(pod(c.spec ?? {}), c.status, c.probes ?? noProbes)), c.want))
}
