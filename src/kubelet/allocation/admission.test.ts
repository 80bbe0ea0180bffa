import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { admitPod, type NodeRoom } from './admission.ts'
import { podsToPreempt } from './preemption.ts'
import { checkAllowedSysctls, dottedSysctl, forbiddenSysctl } from './sysctls.ts'

function pod(name: string, requests: Record<string, string> = {}, more: Partial<Pod['spec']> = {}, phase = 'Running'): Pod {
  const containers = [{ name: 'c', resources: { requests } }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'n', uid: name }, spec: { containers, ...more }, status: { phase } }
}

const node = {
  metadata: { name: 'here', labels: { disk: 'fast' } },
  spec: {
    taints: [
      { key: 'broken', effect: 'NoExecute' },
      { key: 'other', effect: 'NoSchedule' },
    ],
  },
  status: { allocatable: { 'example.com/lamp': '1' } },
} as unknown as Node
const tolerations = [{ key: 'broken', operator: 'Exists' }]
const calm = { memory: false, disk: false, pid: false }
const room: NodeRoom = { allocatable: { cpu: '1', memory: '1Gi', pods: '2' }, pressure: calm }
const onNode: NodeRoom = { ...room, node, appArmor: false, allowedUnsafeSysctls: ['net.core.*'] }
const port = (hostIP?: string) => [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80, ...(hostIP ? { hostIP } : {}) }] }]
const sysctl = (name: string) => ({ securityContext: { sysctls: [{ name, value: '1' }] } })
const labelled: Pod = { ...pod('a'), metadata: { name: 'a', namespace: 'n', uid: 'a', labels: { 'kubernetes.io/os': 'windows' } } }
const asStatic = (it: Pod): Pod => ({ ...it, metadata: { ...it.metadata, annotations: { 'kubernetes.io/config.source': 'file' } } })

interface Case {
  name: string
  pod: Pod
  others?: Pod[]
  room?: NodeRoom
  want: [reason: string, message: string] | undefined
}

const cases: Case[] = [
  { name: 'room enough', pod: pod('a', { cpu: '500m' }), others: [pod('b', { cpu: '500m' })], want: undefined },
  {
    name: 'no cpu left',
    pod: pod('a', { cpu: '600m' }),
    others: [pod('b', { cpu: '500m' })],
    want: ['OutOfcpu', "Node didn't have enough resource: cpu, requested: 600, used: 500, capacity: 1000"],
  },
  { name: 'finished pods that hold nothing', pod: pod('a', { cpu: '600m' }), others: [pod('b', { cpu: '500m' }, {}, 'Succeeded')], want: undefined },
  {
    name: 'too many pods, reported before other missing resources',
    pod: pod('a', { cpu: '2' }),
    others: [pod('b'), pod('c')],
    want: ['OutOfpods', "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"],
  },
  {
    name: 'its port taken on another address of the node',
    pod: pod('a', {}, { containers: port('10.0.0.1') }),
    others: [pod('b', {}, { containers: port() })],
    want: ['NodePorts', "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"],
  },
  { name: 'only the pod itself on it', pod: pod('a', { cpu: '1' }), others: [pod('a', { cpu: '1' })], want: undefined },
  { name: 'an extended resource that others set', pod: pod('a', { 'example.com/lamp': '1' }, { tolerations }), room: onNode, want: undefined },
  {
    name: 'an extended resource that is used up',
    pod: pod('a', { 'example.com/lamp': '1' }, { tolerations }),
    others: [pod('b', { 'example.com/lamp': '1' })],
    room: onNode,
    want: ['OutOfexample.com/lamp', "Node didn't have enough resource: example.com/lamp, requested: 1, used: 1, capacity: 1"],
  },
  { name: 'a resource that only the cluster knows', pod: pod('a', { 'example.com/else': '1' }, { tolerations }), room: onNode, want: undefined },
  {
    name: 'other labels than the selector asks for',
    pod: pod('a', {}, { tolerations, nodeSelector: { disk: 'slow' } }),
    room: onNode,
    want: ['NodeAffinity', "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"],
  },
  {
    name: 'another name than the pod asks for',
    pod: pod('a', {}, { tolerations, nodeName: 'there' }),
    room: onNode,
    want: ['NodeName', "Predicate NodeName failed: node(s) didn't match the requested node name"],
  },
  {
    name: 'a NoExecute taint',
    pod: pod('a'),
    room: onNode,
    want: ['TaintToleration', "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"],
  },
  { name: 'a NoExecute taint, for a static pod', pod: asStatic(pod('a')), room: onNode, want: undefined },
  {
    name: 'another system by label',
    pod: labelled,
    want: ['PodOSSelectorNodeLabelDoesNotMatch', "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"],
  },
  {
    name: 'another system by spec',
    pod: pod('a', {}, { os: { name: 'windows' } }),
    want: ['PodOSNotSupported', "Failed to admit pod as the OS field doesn't match node OS"],
  },
  {
    name: 'a runtime without strict supplemental groups',
    pod: pod('a', {}, { tolerations, securityContext: { supplementalGroupsPolicy: 'Strict' } }),
    room: onNode,
    want: ['SupplementalGroupsPolicyNotSupported', 'SupplementalGroupsPolicy=Strict is not supported in this node'],
  },
  {
    name: 'a kernel without AppArmor',
    pod: pod('a', {}, { tolerations, securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
    room: onNode,
    want: ['AppArmor', 'Cannot enforce AppArmor: AppArmor is not enabled on the host'],
  },
  {
    name: 'no AppArmor, for an unconfined pod',
    pod: pod('a', {}, { tolerations, securityContext: { appArmorProfile: { type: 'Unconfined' } } }),
    room: onNode,
    want: undefined,
  },
  {
    name: 'a sysctl that is not on the allow list',
    pod: pod('a', {}, sysctl('kernel.msgmax')),
    want: ['SysctlForbidden', 'forbidden sysctl: "kernel.msgmax" not allowlisted'],
  },
]
for (const c of cases) {
  const [reason, message] = c.want ?? []
  test(`KUB-02 a node with ${c.name}`, () => assert.deepEqual(admitPod(c.pod, c.others ?? [], c.room ?? room), c.want && { reason, message }))
}

test('KUB-13 a node under pressure refuses: all pods for disk, best-effort pods for memory, never critical pods', () => {
  const under = (pressure: Partial<typeof calm>, candidate: Pod) => admitPod(candidate, [], { ...room, pressure: { ...calm, ...pressure } })?.message
  assert.equal(under({ disk: true }, pod('a', { cpu: '1m' })), 'The node had condition: [DiskPressure]. ')
  assert.equal(under({ memory: true }, pod('a')), 'The node had condition: [MemoryPressure]. ')
  assert.equal(under({ memory: true }, pod('a', { cpu: '1m' })), undefined)
  assert.equal(under({ memory: true }, pod('a', {}, { tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }] })), undefined)
  assert.equal(under({ disk: true, memory: true }, pod('a', {}, { priority: 2_000_000_000 })), undefined)
  assert.equal(under({ disk: true }, asStatic(pod('a'))), undefined)
})

const sysctls: [name: string, spec: Partial<Pod['spec']>, want: string | undefined][] = [
  ['net.ipv4.tcp_syncookies', {}, undefined],
  ['net/ipv4/tcp_syncookies', {}, undefined],
  ['net.ipv4.tcp_syncookies', { hostNetwork: true }, 'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host net enabled'],
  ['kernel.shm_rmid_forced', { hostIPC: true }, 'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled'],
  ['net.core.somaxconn', {}, undefined],
  ['net.core.somaxconn', { hostNetwork: true }, 'forbidden sysctl: "net.core.somaxconn" not allowed with host net enabled'],
  ['vm.swappiness', {}, 'forbidden sysctl: "vm.swappiness" not allowlisted'],
]
for (const [name, spec, want] of sysctls) {
  test(`KUB-19 sysctl ${name} ${JSON.stringify(spec)}`, () => assert.equal(forbiddenSysctl(pod('a', {}, { ...sysctl(name), ...spec }), ['net.core.*']), want))
}

test('KUB-19 the first separator decides how a sysctl is written, and only namespaced sysctls may be allowed', () => {
  assert.deepEqual(['net/ipv4/conf/eth0.1/x', 'net.ipv4.conf.eth0/1.x', 'a'].map(dottedSysctl), ['net.ipv4.conf.eth0/1.x', 'net.ipv4.conf.eth0/1.x', 'a'])
  checkAllowedSysctls(['net.core.somaxconn', 'kernel.msg*', 'fs.mqueue.*', 'kernel/sem'])
  assert.throws(() => checkAllowedSysctls(['vm.swappiness']), /not known to be namespaced/)
  assert.throws(() => checkAllowedSysctls(['net.*.x']), /use a sysctl's name/)
})

const critical = pod('critical', {}, { priority: 2_000_001_000 })
const guaranteed = (name: string, cpu: string) => {
  const amounts = { cpu, memory: '1Mi' }
  return pod(name, {}, { containers: [{ name: 'c', resources: { requests: amounts, limits: amounts } }] })
}
const preemptions: { name: string; pods: Pod[]; missing: Record<string, number>; want: string[] | undefined }[] = [
  {
    name: 'the smallest that frees enough',
    pods: [pod('big', { cpu: '900m' }), pod('fits', { cpu: '300m' }), pod('tiny', { cpu: '10m' })],
    missing: { cpu: 200 },
    want: ['fits'],
  },
  { name: 'burstable before guaranteed', pods: [guaranteed('precious', '200m'), pod('cheap', { cpu: '900m' })], missing: { cpu: 200 }, want: ['cheap'] },
  {
    name: 'both when one is not enough',
    pods: [guaranteed('precious', '200m'), pod('cheap', { cpu: '300m' })],
    missing: { cpu: 400 },
    want: ['cheap', 'precious'],
  },
  { name: 'a best-effort pod for its place', pods: [pod('idle'), pod('busy', { cpu: '1' })], missing: { pods: 1 }, want: ['idle'] },
  { name: 'no pod, where all together free too little', pods: [pod('a', { cpu: '1' })], missing: { memory: 1 }, want: undefined },
  { name: 'no critical pod', pods: [{ ...critical, metadata: { name: 'x', uid: 'x' } }], missing: { pods: 1 }, want: undefined },
]
for (const c of preemptions) {
  test(`KUB-02 a critical pod preempts ${c.name}`, () => {
    const missing = Object.entries(c.missing).map(([resource, amount]) => ({ resource, amount }))
    assert.deepEqual(
      podsToPreempt(critical, c.pods, missing)?.map(({ metadata }) => metadata.name),
      c.want,
    )
  })
}
