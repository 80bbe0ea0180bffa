import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, PodStatus } from '#api/gen/types/core.v1'
import type { PodSandbox, RuntimeContainer } from '#grpc/criTypes'
import { kubeletConfig } from './core/config.ts'
import { containersToRemove, sandboxesToRemove } from './gc.ts'
import { initialNode, type NodeFacts, nodeAllocatable, nodeStatus, registrationPatch, statusChanged } from './node/nodeStatus.ts'
import { initialProbeState, nextProbeState, type ProbeKind, type ProbeOutcome, type ProbeState, probeIsDone } from './probes/probeState.ts'
import { attributesOf } from './server/auth.ts'
import { logContainerId, logOptions } from './server/logs.ts'

const outcomes = { s: 'Success', f: 'Failure' } as const
const probeCases: { kind: ProbeKind; probe: { failureThreshold?: number; successThreshold?: number }; seen: string; want: string }[] = [
  { kind: 'readiness', probe: {}, seen: 'sfffs', want: 'sssfs' },
  { kind: 'readiness', probe: { successThreshold: 2 }, seen: 'ssfffs', want: 'fsssff' },
  { kind: 'liveness', probe: { failureThreshold: 2 }, seen: 'fsff', want: 'sssf' },
  { kind: 'startup', probe: { failureThreshold: 2 }, seen: 'fs', want: '-s' },
  { kind: 'startup', probe: { failureThreshold: 2 }, seen: 'ff', want: '-f' },
]
for (const c of probeCases) {
  test(`KUB-06 ${c.kind} ${JSON.stringify(c.probe)} after ${c.seen}`, () => {
    let state: ProbeState = initialProbeState(c.kind)
    const results = [...c.seen].map((letter) => {
      state = nextProbeState(state, outcomes[letter as keyof typeof outcomes] as ProbeOutcome, c.probe)
      return state.result === undefined ? '-' : state.result === 'Success' ? 's' : 'f'
    })
    assert.equal(results.join(''), c.want)
  })
}

test('KUB-06 a failed liveness probe and an ended startup probe rest; readiness never does', () => {
  const done = (kind: ProbeKind, result: ProbeOutcome) => probeIsDone(kind, { result, last: result, run: 1 })
  assert.deepEqual(
    [done('liveness', 'Failure'), done('liveness', 'Success'), done('startup', 'Success'), done('readiness', 'Failure')],
    [true, false, true, false],
  )
})

const machine = {
  cpus: 2,
  memoryBytes: 4 * 2 ** 30,
  ephemeralStorageBytes: 10 * 2 ** 30,
  architecture: 'amd64',
  kernelVersion: 'k',
  osImage: 'o',
  machineID: 'm',
  systemUUID: 's',
  bootID: 'b',
}
const config = kubeletConfig({ nodeName: 'n1', nodeIPs: ['192.0.2.1'], registerWithTaints: [{ key: 'k', effect: 'NoSchedule' }], nodeLabels: { zone: 'a' } })
const facts: NodeFacts = {
  machine,
  runtime: { runtimeName: 'containerd', runtimeVersion: '1.6.20~ds1 1.6.20', runtimeApiVersion: 'v1' },
  problems: ['container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized'],
  images: [{ id: 'x', repoTags: ['a:1'], repoDigests: ['a@sha256:1'], size: 10, uid: null, username: '', pinned: false }],
  pressure: { memory: false, disk: true, pid: false },
  nowMs: 0,
}

test('KUB-01 a node without isolation of local storage reports no ephemeral storage', () => {
  const { capacity, allocatable } = nodeStatus(undefined, facts, { ...config, localStorageCapacityIsolation: false })
  assert.deepEqual([capacity?.['ephemeral-storage'], allocatable?.['ephemeral-storage']], [undefined, undefined])
  assert.equal(nodeStatus(undefined, facts, config).capacity?.['ephemeral-storage'], '10485760Ki')
})

test('KUB-01 allocatable is capacity less reservations and eviction thresholds', () => {
  const reserved = { ...config, systemReserved: { cpu: '100m', memory: '1Gi' } }
  const { cpu, memory, pods } = nodeAllocatable(machine, reserved)
  assert.deepEqual({ cpu, memory, pods }, { cpu: '1900m', memory: `${(3 * 1024 - 100) * 1024}Ki`, pods: '110' })
})

test('KUB-24 podsPerCore allows as many pods as the CPUs do, and no more than maxPods', () => {
  const podsOf = (podsPerCore: number) => nodeStatus(undefined, facts, { ...config, podsPerCore }).capacity?.pods
  assert.deepEqual([podsOf(0), podsOf(10), podsOf(100)], ['110', '20', '110'])
})

test('KUB-01 a kubelet that starts again corrects what it knows best of its Node, and leaves the labels that people changed', () => {
  const wanted = initialNode(nodeStatus(undefined, facts, config), machine, config)
  assert.equal(wanted.metadata.annotations?.['volumes.kubernetes.io/controller-managed-attach-detach'], 'true')
  assert.equal(registrationPatch(wanted, wanted), undefined)
  const labels = { ...wanted.metadata.labels, 'kubernetes.io/arch': 'arm64', zone: 'b' }
  assert.deepEqual(registrationPatch({ ...wanted, metadata: { ...wanted.metadata, labels } }, wanted), {
    metadata: { labels: { 'kubernetes.io/arch': 'amd64' } },
  })
  const own = { ...config, enableControllerAttachDetach: false }
  const unmanaged = initialNode(nodeStatus(undefined, facts, own), machine, own)
  assert.equal(unmanaged.metadata.annotations, undefined)
  assert.deepEqual(registrationPatch(wanted, unmanaged), { metadata: { annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': null } } })
})

test('KUB-01 with an external cloud provider a new node waits for it, and its addresses stay', () => {
  const cloud = { ...config, externalCloudProvider: true }
  const first = nodeStatus(undefined, facts, cloud)
  assert.deepEqual(initialNode(first, machine, cloud).spec.taints?.[1], {
    key: 'node.cloudprovider.kubernetes.io/uninitialized',
    value: 'true',
    effect: 'NoSchedule',
  })
  const addresses = [{ type: 'ExternalIP', address: '203.0.113.1' }]
  assert.deepEqual(nodeStatus({ ...first, addresses }, facts, cloud).addresses, addresses)
  assert.deepEqual(nodeStatus({ ...first, addresses }, facts, config).addresses, first.addresses)
})

test('KUB-01 a node without a ready network is not Ready and has a taint', () => {
  const status = nodeStatus(undefined, facts, config)
  const node = initialNode(status, machine, config)
  assert.deepEqual(node.spec.taints, [
    { key: 'k', effect: 'NoSchedule' },
    { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
  ])
  assert.equal(node.metadata.labels?.zone, 'a')
  assert.deepEqual(
    status.conditions?.map(({ type, status: value, reason }) => [type, value, reason]),
    [
      ['MemoryPressure', 'False', 'KubeletHasSufficientMemory'],
      ['DiskPressure', 'True', 'KubeletHasDiskPressure'],
      ['PIDPressure', 'False', 'KubeletHasSufficientPID'],
      ['Ready', 'False', 'KubeletNotReady'],
    ],
  )
  assert.equal(status.nodeInfo?.containerRuntimeVersion, 'containerd://1.6.20~ds1')
  assert.deepEqual(status.images, [{ names: ['a@sha256:1', 'a:1'], sizeBytes: 10 }])
})

test('KUB-01 a node reports its runtime’s features, or none when the runtime does not report them', () => {
  const { runtimeHandlers, features } = nodeStatus(
    undefined,
    {
      ...facts,
      runtimeStatus: {
        conditions: [],
        handlers: [
          { name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: false } },
          { name: 'old', features: null },
        ],
        features: { supplementalGroupsPolicy: true },
      },
    },
    config,
  )
  assert.deepEqual(runtimeHandlers, [
    { name: '', features: { recursiveReadOnlyMounts: true, userNamespaces: false } },
    { name: 'old', features: { recursiveReadOnlyMounts: false, userNamespaces: false } },
  ])
  assert.deepEqual(features, { supplementalGroupsPolicy: true })
  const silent = nodeStatus(undefined, { ...facts, runtimeStatus: { conditions: [], handlers: [] } }, config)
  assert.ok(!('runtimeHandlers' in silent) && !('features' in silent))
})

test('KUB-01 heartbeats alone are not worth a request; extended resources stay', () => {
  const before: Node['status'] = { ...nodeStatus(undefined, facts, config), capacity: { 'example.com/gpu': '2' } }
  const after = nodeStatus(before, { ...facts, nowMs: 60_000 }, config)
  assert.equal(after.capacity?.['example.com/gpu'], '2')
  assert.equal(statusChanged(after, nodeStatus(after, { ...facts, nowMs: 120_000 }, config)), false)
  assert.equal(statusChanged(after, nodeStatus(after, { ...facts, pressure: { memory: true, disk: true, pid: false } }, config)), true)
})

const container = (id: string, name: string, createdAt: number, state: RuntimeContainer['state'] = 'CONTAINER_EXITED'): RuntimeContainer => ({
  id,
  podSandboxId: 's',
  metadata: { name, attempt: createdAt },
  image: { image: '' },
  imageRef: '',
  state,
  createdAt,
  labels: { 'io.kubernetes.pod.uid': 'u' },
  annotations: {},
})

test('the newest exited instance of each container stays', () => {
  const all = [container('a1', 'a', 1), container('a2', 'a', 2), container('a3', 'a', 3), container('a4', 'a', 4, 'CONTAINER_RUNNING'), container('b1', 'b', 1)]
  assert.deepEqual(
    containersToRemove(all).map(({ id }) => id),
    ['a2', 'a1'],
  )
})

test('of stopped sandboxes without containers the newest of each pod stays', () => {
  const sandbox = (id: string, createdAt: number, state: PodSandbox['state'] = 'SANDBOX_NOTREADY'): PodSandbox => ({
    id,
    metadata: { name: 'p', uid: 'u', namespace: 'n', attempt: createdAt },
    state,
    createdAt,
    labels: {},
    annotations: {},
    runtimeHandler: '',
  })
  const held = { ...container('c', 'c', 1), podSandboxId: 'held' }
  assert.deepEqual(
    sandboxesToRemove([sandbox('old', 1), sandbox('held', 2), sandbox('newest', 3)], [held]).map(({ id }) => id),
    ['old'],
  )
  assert.deepEqual(sandboxesToRemove([sandbox('ready', 1, 'SANDBOX_READY')], []), [])
})

const attributeCases = [
  ['GET', '/stats/summary', ['get stats']],
  ['GET', '/metrics/resource', ['get metrics']],
  ['GET', '/pods', ['get pods', 'get proxy']],
  ['GET', '/healthz', ['get healthz', 'get proxy']],
  ['POST', '/exec/ns/pod/c', ['create proxy']],
  ['GET', '/containerLogs/ns/pod/c', ['get proxy']],
] as const
for (const [method, path, want] of attributeCases) {
  test(`KUB-17 ${method} ${path} needs ${want.join(' or ')}`, () =>
    assert.deepEqual(
      attributesOf(method, path).map(({ verb, subresource }) => `${verb} ${subresource}`),
      want,
    ))
}

const status = (state: object, lastState: object = {}): PodStatus => ({
  containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, containerID: 'containerd://now', state, lastState }],
})
const ended = { terminated: { exitCode: 1, containerID: 'containerd://before' } }
const logCases: { name: string; status: PodStatus; previous?: true; want: string | RegExp }[] = [
  { name: 'a running container', status: status({ running: {} }), want: 'now' },
  { name: 'a terminated container', status: status(ended), want: 'before' },
  { name: 'a container that waits to restart', status: status({ waiting: { reason: 'CrashLoopBackOff' } }, ended), want: 'before' },
  { name: 'the previous run', status: status({ running: {} }, ended), previous: true, want: 'before' },
  {
    name: 'a missing previous instance',
    status: status({ running: {} }),
    previous: true,
    want: /previous terminated container "c" in pod "p" not found/,
  },
  {
    name: 'a container whose image cannot be pulled',
    status: status({ waiting: { reason: 'ImagePullBackOff' } }),
    want: /waiting to start: trying and failing to pull image/,
  },
  { name: 'a container that is being created', status: status({ waiting: { reason: 'ContainerCreating' } }), want: /waiting to start: ContainerCreating/ },
  { name: 'an unknown container', status: {}, want: /container "c" in pod "p" is not available/ },
]
for (const c of logCases) {
  test(`KUB-25 the log of ${c.name}`, () => {
    const find = () => logContainerId('p', c.status, 'c', c.previous ?? false)
    if (typeof c.want === 'string') assert.equal(find(), c.want)
    else assert.throws(find, c.want)
  })
}

test('KUB-25 log options are read from the query', () => {
  const query = new URLSearchParams('follow=true&tailLines=5&sinceSeconds=10&limitBytes=100')
  assert.deepEqual(logOptions(query, 60_000), { follow: true, timestamps: false, tailLines: 5, limitBytes: 100, sinceMs: 50_000 })
  assert.throws(() => logOptions(new URLSearchParams('tailLines=x'), 0), /Unable to decode query/)
})
