import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeCondition, Pod, Taint, Toleration } from '#api/gen/types/core.v1'
import { createCidrSet } from './cidrSet.ts'
import { observeNode, silentConditions, wantedLabels, wantedTaints } from './health.ts'
import { cidrSetsFor } from './ipam.ts'
import { evictionTime } from './taintEviction.ts'

const start = Date.UTC(2026, 0, 1)
const ready = (status: string, heartbeat = 'h1'): NodeCondition => ({ type: 'Ready', status, reason: 'KubeletReady', lastHeartbeatTime: heartbeat })
const node = (conditions: NodeCondition[], taints: Taint[] = [], unschedulable = false): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { taints, ...(unschedulable ? { unschedulable } : {}) },
  status: { conditions },
})
const lease = (renewTime: string) => ({ apiVersion: 'v1', kind: 'Lease', metadata: {}, spec: { renewTime } })
const grace = { gracePeriodMs: 50_000, startupGracePeriodMs: 60_000 }

test('CTL-09 a node is alive as long as its heartbeat or its lease moves', () => {
  let health = observeNode(undefined, node([ready('True')]), lease('1'), start)
  health = observeNode(health, node([ready('True')]), lease('2'), start + 10_000)
  assert.equal(health.probeMs, start + 10_000)
  health = observeNode(health, node([ready('True', 'h2')]), lease('2'), start + 20_000)
  assert.equal(health.probeMs, start + 20_000)
  health = observeNode(health, node([ready('True', 'h2')]), lease('2'), start + 30_000)
  assert.equal(health.probeMs, start + 20_000)
})

test('CTL-09 after 50 s of silence the conditions become Unknown; a node that never spoke has 60 s', () => {
  const spoke = node([ready('True')])
  const health = observeNode(undefined, spoke, undefined, start)
  assert.equal(silentConditions(spoke, health, grace, start + 50_000), undefined)
  const after = silentConditions(spoke, health, grace, start + 50_001)
  assert.deepEqual(
    after?.map(({ type, status, reason }) => [type, status, reason]),
    [
      ['Ready', 'Unknown', 'NodeStatusUnknown'],
      ['MemoryPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['DiskPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['PIDPressure', 'Unknown', 'NodeStatusNeverUpdated'],
    ],
  )
  assert.equal(silentConditions(node(after ?? []), health, grace, start + 90_000), undefined, 'said once')
  const mute = node([])
  assert.equal(silentConditions(mute, observeNode(undefined, mute, undefined, start), grace, start + 59_000), undefined)
  assert.equal(silentConditions(mute, observeNode(undefined, mute, undefined, start), grace, start + 61_000)?.[0]?.message, 'Kubelet never posted node status.')
})

const timeAdded = '2026-01-01T00:00:00Z'
const taintCases: { name: string; node: Node; evicting?: boolean; want: Taint[] | undefined }[] = [
  { name: 'a ready node needs none', node: node([ready('True')]), want: undefined },
  {
    name: 'an unreachable node gets both effects',
    node: node([ready('Unknown')]),
    want: [
      { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule', timeAdded },
      { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded },
    ],
  },
  {
    name: 'a recovered node loses ours and keeps others',
    node: node(
      [ready('True')],
      [
        { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
        { key: 'mine', effect: 'NoExecute' },
      ],
    ),
    want: [{ key: 'mine', effect: 'NoExecute' }],
  },
  {
    name: 'no pod is evicted while every node is unreachable',
    node: node([ready('Unknown')], [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }]),
    evicting: false,
    want: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule', timeAdded }],
  },
  { name: 'cordoning', node: node([ready('True')], [], true), want: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule', timeAdded }] },
]
for (const { name, node, evicting = true, want } of taintCases)
  test(`CTL-09 taints: ${name}`, () => assert.deepEqual(wantedTaints(node, evicting, start), want))

const taint: Taint = { key: 'k', effect: 'NoExecute', timeAdded }
const evictionCases: { name: string; tolerations: Toleration[]; want: number | undefined }[] = [
  { name: 'untolerated: at once', tolerations: [], want: start + 5 },
  { name: 'a toleration without an end: never', tolerations: [{ operator: 'Exists' }], want: undefined },
  {
    name: 'the shortest of several',
    tolerations: [300, 20].map((tolerationSeconds) => ({ key: 'k', operator: 'Exists', tolerationSeconds })),
    want: start + 20_000,
  },
]
for (const { name, tolerations, want } of evictionCases) {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: { containers: [], tolerations }, status: {} } as Pod
  test(`CTL-09 eviction: ${name}`, () => assert.equal(evictionTime(pod, [taint], start + 5), want))
}

test('CTL-09 blocks are given once, released blocks are reused last, and the range can be exhausted', () => {
  const blocks = createCidrSet('10.0.0.0/22', 24)
  blocks.occupy('10.0.1.0/24')
  assert.deepEqual([blocks.take(), blocks.take()], ['10.0.0.0/24', '10.0.2.0/24'])
  blocks.release('10.0.0.0/24')
  assert.deepEqual([blocks.take(), blocks.take(), blocks.take()], ['10.0.3.0/24', '10.0.0.0/24', undefined])
})

test('CTL-09 blocks of IPv6, and ranges that cover several blocks or none', () => {
  const blocks = createCidrSet('fd00:10::/62', 64)
  blocks.occupy('fd00:10::/63')
  blocks.occupy('10.0.0.0/8')
  blocks.occupy('fd00:99::/64')
  assert.deepEqual([blocks.take(), blocks.take(), blocks.take()], ['fd00:10:0:2::/64', 'fd00:10:0:3::/64', undefined])
  const whole = createCidrSet('10.0.0.0/23', 24)
  whole.occupy('10.0.0.0/8')
  assert.equal(whole.take(), undefined)
})

test('CTL-09 the ranges of a cluster: one, or one of each family', () => {
  const first = (options: Parameters<typeof cidrSetsFor>[0]) => cidrSetsFor(options).map((set) => set.take())
  assert.deepEqual(first({}), ['10.244.0.0/24'])
  assert.deepEqual(first({ clusterCidr: '10.1.0.0/16', nodeCidrMaskSize: 26, serviceCidr: '10.1.0.0/25' }), ['10.1.0.128/26'])
  assert.deepEqual(first({ clusterCidr: '10.1.0.0/16,fd00::/56', nodeCidrMaskSizeIpv4: 25 }), ['10.1.0.0/25', 'fd00::/64'])
  assert.throws(() => cidrSetsFor({ clusterCidr: '10.1.0.0/16,10.2.0.0/16' }), /both IP families/)
  assert.throws(() => cidrSetsFor({ clusterCidr: '10.1.0.0/16', nodeCidrMaskSize: 12 }), /invalid node mask size/)
})

test('CTL-09 older labels follow the newer ones', () => {
  const labelled = (labels: Record<string, string>): Node => ({ ...node([]), metadata: { name: 'n', labels } })
  assert.deepEqual(wantedLabels(labelled({ 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64', 'beta.kubernetes.io/arch': 'amd64' })), {
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': 'arm64',
  })
  assert.equal(wantedLabels(labelled({ 'beta.kubernetes.io/os': 'linux' })), undefined)
})
