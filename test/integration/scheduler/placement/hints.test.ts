/** Which events bring a pod back that a plugin refused, case by case: the hints of each plugin. Upstream: EventsToRegister, isSchedulableAfter… (v1.36). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { actions, type ClusterEvent, type EventResource } from '#scheduler/framework/clusterEvent'
import { defaultPluginArgs } from '#scheduler/framework/pluginArgs'
import { defaultPlugins } from '#scheduler/plugins/index'
import { schedulerFixture } from '#testing/schedulerFixture'
import { node, pod } from './table.ts'
import { claim, storageClass, user, using, volume } from './volumeObjects.ts'

interface Hint {
  readonly name: string
  readonly pod: Pod
  readonly event: readonly [EventResource, keyof typeof actions]
  readonly old?: KubeObject
  readonly object?: KubeObject
  /** Whether the pod is tried again. */
  readonly want: boolean
}

function hints(plugin: string, cases: readonly Hint[]): void {
  for (const { name, pod: waiting, event, old, object, want } of cases)
    test(`SCH-17 ${plugin}: ${name}`, () => {
      const { handle } = schedulerFixture()
      const definition = defaultPlugins.find((one) => one.definition.name === plugin)?.definition
      const args = (defaultPluginArgs as Readonly<Record<string, unknown>>)[plugin] ?? {}
      const { requeueOn = [] } = definition?.create(args, handle) ?? {}
      const [resource, action] = event
      const told = { resource, action: actions[action], old, object } as ClusterEvent
      const heard = requeueOn.filter((one) => one.resource === resource && (one.actions & actions[action]) !== 0)
      assert.equal(
        heard.some(({ hint }) => hint === undefined || hint(waiting, told)),
        want,
      )
    })
}

const asking = (requests: Record<string, string>, on?: string) => pod({ asks: [requests], ...(on ? { on } : {}) })
const sized = (cpu: string) => node('a', { has: { cpu } })
const added = ['Node', 'Add'] as const
const gone = ['AssignedPod', 'Delete'] as const

hints('NodeResourcesFit', [
  { name: 'a node that is large enough', pod: asking({ cpu: '2' }), event: added, object: sized('4'), want: true },
  { name: 'a node that is too small', pod: asking({ cpu: '8' }), event: added, object: sized('4'), want: false },
  { name: 'a node without the resource', pod: asking({ 'example.com/gpu': '1' }), event: added, object: sized('4'), want: false },
  { name: 'a node that grew', pod: asking({ cpu: '2' }), event: ['Node', 'UpdateNodeAllocatable'], old: sized('1'), object: sized('4'), want: true },
  {
    name: 'a node that grew, not enough',
    pod: asking({ cpu: '8' }),
    event: ['Node', 'UpdateNodeAllocatable'],
    old: sized('1'),
    object: sized('4'),
    want: false,
  },
  { name: 'a node that shrank', pod: asking({ cpu: '1' }), event: ['Node', 'UpdateNodeAllocatable'], old: sized('4'), object: sized('2'), want: false },
  {
    name: 'a node that grew in something else',
    pod: asking({ memory: '1Gi' }),
    event: ['Node', 'UpdateNodeAllocatable'],
    old: sized('1'),
    object: sized('4'),
    want: false,
  },
  {
    name: 'a node that takes more pods',
    pod: pod(),
    event: ['Node', 'UpdateNodeAllocatable'],
    old: node('a', { has: { pods: '1' } }),
    object: node('a'),
    want: true,
  },
  { name: 'a node with another label', pod: pod(), event: ['Node', 'UpdateNodeLabel'], old: node('a'), object: node('a'), want: false },
  { name: 'a pod that ended', pod: asking({ cpu: '1' }), event: gone, old: asking({ cpu: '1' }, 'a'), want: true },
  {
    name: 'a pod that needs less',
    pod: asking({ cpu: '1' }),
    event: ['AssignedPod', 'UpdatePodScaleDown'],
    old: asking({ cpu: '2' }, 'a'),
    object: asking({ cpu: '1' }, 'a'),
    want: true,
  },
  {
    name: 'a pod that needs less of something else',
    pod: asking({ memory: '1' }),
    event: ['AssignedPod', 'UpdatePodScaleDown'],
    old: asking({ cpu: '2' }, 'a'),
    object: asking({ cpu: '1' }, 'a'),
    want: false,
  },
  { name: 'the pod itself needs less', pod: asking({ cpu: '1' }), event: ['TargetPod', 'UpdatePodScaleDown'], want: true },
  { name: 'a new pod takes nothing away', pod: pod(), event: ['AssignedPod', 'Add'], object: pod({ on: 'a' }), want: false },
])

const cordoned = node('a', { unschedulable: true })
hints('NodeUnschedulable', [
  { name: 'a node', pod: pod(), event: added, object: node('a'), want: true },
  { name: 'a cordoned node', pod: pod(), event: added, object: cordoned, want: false },
  { name: 'a node that takes pods again', pod: pod(), event: ['Node', 'UpdateNodeTaint'], old: cordoned, object: node('a'), want: true },
  { name: 'a node that was not cordoned', pod: pod(), event: ['Node', 'UpdateNodeTaint'], old: node('a'), object: node('a'), want: false },
  { name: 'a node with another label', pod: pod(), event: ['Node', 'UpdateNodeLabel'], old: cordoned, object: node('a'), want: false },
  {
    name: 'the pod tolerates it now',
    pod: pod(),
    event: ['TargetPod', 'UpdatePodToleration'],
    old: pod(),
    object: pod({ spec: { tolerations: [{ operator: 'Exists' }] } }),
    want: true,
  },
  {
    name: 'the pod tolerates something else now',
    pod: pod(),
    event: ['TargetPod', 'UpdatePodToleration'],
    old: pod(),
    object: pod({ spec: { tolerations: [{ key: 'x', operator: 'Exists' }] } }),
    want: false,
  },
])

const taint = { key: 'gpu', effect: 'NoSchedule' }
const tainted = node('a', { taints: [taint] })
hints('TaintToleration', [
  { name: 'a node', pod: pod(), event: added, object: node('a'), want: true },
  { name: 'a tainted node', pod: pod(), event: added, object: tainted, want: false },
  { name: 'a tainted node that the pod tolerates', pod: pod({ spec: { tolerations: [{ operator: 'Exists' }] } }), event: added, object: tainted, want: true },
  { name: 'a taint that went', pod: pod(), event: ['Node', 'UpdateNodeTaint'], old: tainted, object: node('a'), want: true },
  {
    name: 'a taint that did not matter',
    pod: pod({ spec: { tolerations: [{ operator: 'Exists' }] } }),
    event: ['Node', 'UpdateNodeTaint'],
    old: tainted,
    object: node('a'),
    want: false,
  },
  { name: 'another taint', pod: pod(), event: ['Node', 'UpdateNodeTaint'], old: tainted, object: node('a', { taints: [{ ...taint, key: 'x' }] }), want: false },
  { name: 'the pod tolerates more', pod: pod(), event: ['TargetPod', 'UpdatePodToleration'], old: pod(), object: pod(), want: true },
])

const selecting = pod({ spec: { nodeSelector: { disk: 'fast' } } })
const fast = node('a', { labels: { disk: 'fast' } })
hints('NodeAffinity', [
  { name: 'a node that matches', pod: selecting, event: added, object: fast, want: true },
  { name: 'a node that does not', pod: selecting, event: added, object: node('a'), want: false },
  { name: 'a node that matches now', pod: selecting, event: ['Node', 'UpdateNodeLabel'], old: node('a'), object: fast, want: true },
  { name: 'a node that matched before', pod: selecting, event: ['Node', 'UpdateNodeLabel'], old: fast, object: fast, want: false },
  { name: 'a node that matches no longer', pod: selecting, event: ['Node', 'UpdateNodeLabel'], old: fast, object: node('a'), want: false },
])

const holding = (hostPort: number, on?: string) =>
  pod({ ...(on ? { on } : {}), spec: { containers: [{ name: 'c', image: 'app:1', ports: [{ containerPort: 80, hostPort }] }] } })
hints('NodePorts', [
  { name: 'the port is free again', pod: holding(80), event: gone, old: holding(80, 'a'), want: true },
  { name: 'another port is free again', pod: holding(80), event: gone, old: holding(81, 'a'), want: false },
  { name: 'a pod without ports ended', pod: holding(80), event: gone, old: pod({ on: 'a' }), want: false },
  { name: 'a node', pod: holding(80), event: added, object: node('b'), want: true },
  { name: 'a label', pod: holding(80), event: ['Node', 'UpdateNodeLabel'], old: node('a'), object: node('a'), want: false },
])

const zone = 'topology.kubernetes.io/zone'
const web = { labelSelector: { matchLabels: { app: 'web' } } }
const spreading = pod({
  labels: { app: 'web' },
  spec: { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', ...web }] },
})
const inZone = (value: string): Node => node('a', { labels: { [zone]: value } })
const running = (app: string, namespace = 'default') => pod({ name: 'other', on: 'a', labels: { app }, namespace })
const spreadingWidely: Pod = {
  ...spreading,
  spec: {
    ...spreading.spec,
    topologySpreadConstraints: Array.from({ length: 65 }, (_, i) => ({
      maxSkew: 1,
      topologyKey: `zone-${i}`,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'web' } },
    })),
  },
}

hints('PodTopologySpread', [
  { name: 'a pod that counts', pod: spreading, event: ['AssignedPod', 'Add'], object: running('web'), want: true },
  { name: 'a pod that does not', pod: spreading, event: ['AssignedPod', 'Add'], object: running('db'), want: false },
  { name: 'a pod that does not, of so many constraints that they are not asked', pod: spreadingWidely, event: gone, old: running('db'), want: true },
  { name: 'a pod of another namespace, of so many constraints', pod: spreadingWidely, event: gone, old: running('web', 'other'), want: false },
  { name: 'a pod of another namespace', pod: spreading, event: ['AssignedPod', 'Add'], object: running('web', 'other'), want: false },
  { name: 'a pod that counted ended', pod: spreading, event: gone, old: running('web'), want: true },
  { name: 'a pod that counts now', pod: spreading, event: ['AssignedPod', 'UpdatePodLabel'], old: running('db'), object: running('web'), want: true },
  { name: 'a pod that counts as before', pod: spreading, event: ['AssignedPod', 'UpdatePodLabel'], old: running('web'), object: running('web'), want: false },
  { name: 'a node of a domain', pod: spreading, event: added, object: inZone('1'), want: true },
  { name: 'a node without the label', pod: spreading, event: added, object: node('a'), want: false },
  { name: 'a node that went', pod: spreading, event: ['Node', 'Delete'], old: inZone('1'), want: true },
  { name: 'a node that moved', pod: spreading, event: ['Node', 'UpdateNodeLabel'], old: inZone('1'), object: inZone('2'), want: true },
  { name: 'a node that stays', pod: spreading, event: ['Node', 'UpdateNodeLabel'], old: inZone('1'), object: inZone('1'), want: false },
])

const company = (key: 'podAffinity' | 'podAntiAffinity'): Partial<PodSpec> => ({
  affinity: { [key]: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: zone, ...web }] } },
})
const social = pod({ spec: company('podAffinity') })
const shy = pod({ spec: company('podAntiAffinity') })
hints('InterPodAffinity', [
  { name: 'the wanted pod came', pod: social, event: ['AssignedPod', 'Add'], object: running('web'), want: true },
  { name: 'another pod came', pod: social, event: ['AssignedPod', 'Add'], object: running('db'), want: false },
  { name: 'a pod became the wanted one', pod: social, event: ['AssignedPod', 'UpdatePodLabel'], old: running('db'), object: running('web'), want: true },
  { name: 'the unwanted pod came', pod: shy, event: ['AssignedPod', 'Add'], object: running('web'), want: false },
  { name: 'the unwanted pod went', pod: shy, event: gone, old: running('web'), want: true },
  { name: 'another pod went', pod: shy, event: gone, old: running('db'), want: false },
  {
    name: 'the pod that it has an anti-affinity to is deleted',
    pod: pod({ labels: { app: 'web' } }),
    event: gone,
    old: pod({ on: 'a', spec: company('podAntiAffinity') }),
    want: true,
  },
  { name: 'a pod is the unwanted one no longer', pod: shy, event: ['AssignedPod', 'UpdatePodLabel'], old: running('web'), object: running('db'), want: true },
  { name: 'a node of a domain', pod: social, event: added, object: inZone('1'), want: true },
  { name: 'a node without the label', pod: social, event: added, object: node('a'), want: false },
  { name: 'a node that moved', pod: shy, event: ['Node', 'UpdateNodeLabel'], old: inZone('1'), object: inZone('2'), want: true },
  { name: 'a node that stays', pod: shy, event: ['Node', 'UpdateNodeLabel'], old: inZone('1'), object: inZone('1'), want: false },
])

const changed = ['PersistentVolumeClaim', 'Update'] as const
const allowing = (value: string) => storageClass('late', { allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: [value] }] }] })
const room = (capacity: string, maximumVolumeSize?: string): KubeObject =>
  ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIStorageCapacity', metadata: { name: 'c' }, capacity, maximumVolumeSize }) as KubeObject
const driver = (storageCapacity: boolean): KubeObject =>
  ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: 'd' }, spec: { storageCapacity } }) as KubeObject
const inline = pod({ spec: { volumes: [{ name: 'v', csi: { driver: 'd' } }] } })
hints('VolumeBinding', [
  { name: 'the pod’s claim', pod: user('data'), event: ['PersistentVolumeClaim', 'Add'], object: claim('data'), want: true },
  { name: 'the pod’s claim changed', pod: user('data'), event: changed, old: claim('data'), object: claim('data', { volume: 'v' }), want: true },
  { name: 'another claim', pod: user('data'), event: changed, old: claim('x'), object: claim('x', { volume: 'v' }), want: false },
  { name: 'a claim of that name elsewhere', pod: user('data'), event: changed, object: claim('data', { metadata: { namespace: 'other' } }), want: false },
  { name: 'a volume', pod: user('data'), event: ['PersistentVolume', 'Add'], object: volume('v'), want: true },
  { name: 'a class', pod: user('data'), event: ['StorageClass', 'Add'], object: storageClass('late'), want: true },
  { name: 'a class that allows other nodes', pod: user('data'), event: ['StorageClass', 'Update'], old: allowing('1'), object: allowing('2'), want: true },
  { name: 'a class as before', pod: user('data'), event: ['StorageClass', 'Update'], old: allowing('1'), object: allowing('1'), want: false },
  { name: 'room', pod: user('data'), event: ['CSIStorageCapacity', 'Add'], object: room('1Gi'), want: true },
  { name: 'more room', pod: user('data'), event: ['CSIStorageCapacity', 'Update'], old: room('1Gi'), object: room('2Gi'), want: true },
  { name: 'less room', pod: user('data'), event: ['CSIStorageCapacity', 'Update'], old: room('2Gi'), object: room('1Gi'), want: false },
  {
    name: 'more room, no larger volumes',
    pod: user('data'),
    event: ['CSIStorageCapacity', 'Update'],
    old: room('1Gi', '1Gi'),
    object: room('2Gi', '1Gi'),
    want: false,
  },
  { name: 'a driver publishes its room no longer', pod: inline, event: ['CSIDriver', 'Update'], old: driver(true), object: driver(false), want: true },
  { name: 'a driver publishes its room now', pod: inline, event: ['CSIDriver', 'Update'], old: driver(false), object: driver(true), want: false },
  { name: 'a node', pod: user('data'), event: added, object: node('a'), want: true },
])

const disk = { name: 'd', gcePersistentDisk: { pdName: 'd' } }
hints('VolumeRestrictions', [
  { name: 'the disk is free again', pod: pod({ spec: { volumes: [disk] } }), event: gone, old: pod({ on: 'a', spec: { volumes: [disk] } }), want: true },
  { name: 'another pod ended', pod: pod({ spec: { volumes: [disk] } }), event: gone, old: pod({ on: 'a' }), want: false },
  { name: 'the claim is free again', pod: user('data'), event: gone, old: pod({ on: 'a', spec: { volumes: using('data') } }), want: true },
  { name: 'another claim is free again', pod: user('data'), event: gone, old: pod({ on: 'a', spec: { volumes: using('x') } }), want: false },
  { name: 'elsewhere', pod: user('data'), event: gone, old: pod({ on: 'a', namespace: 'other', spec: { volumes: using('data') } }), want: false },
  { name: 'the claim exists now', pod: user('data'), event: ['PersistentVolumeClaim', 'Add'], object: claim('data'), want: true },
  { name: 'another claim exists now', pod: user('data'), event: ['PersistentVolumeClaim', 'Add'], object: claim('x'), want: false },
])

const limits = (count: number): KubeObject =>
  ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: 'a' },
    spec: { drivers: [{ name: 'd', nodeID: 'a', allocatable: { count } }] },
  }) as KubeObject
hints('NodeVolumeLimits', [
  { name: 'a node’s limits', pod: user('data'), event: ['CSINode', 'Add'], object: limits(1), want: true },
  { name: 'a higher limit', pod: user('data'), event: ['CSINode', 'Update'], old: limits(1), object: limits(2), want: true },
  { name: 'a lower limit', pod: user('data'), event: ['CSINode', 'Update'], old: limits(2), object: limits(1), want: false },
  { name: 'the same limit', pod: user('data'), event: ['CSINode', 'Update'], old: limits(2), object: limits(2), want: false },
  { name: 'a pod with claims ended', pod: user('data'), event: gone, old: pod({ on: 'a', spec: { volumes: using('x') } }), want: true },
  { name: 'a pod without claims ended', pod: user('data'), event: gone, old: pod({ on: 'a' }), want: false },
  { name: 'the claim exists now', pod: user('data'), event: ['PersistentVolumeClaim', 'Add'], object: claim('data'), want: true },
  { name: 'another claim exists now', pod: user('data'), event: ['PersistentVolumeClaim', 'Add'], object: claim('x'), want: false },
])

hints('VolumeZone', [
  { name: 'a class whose claims wait', pod: user('data'), event: ['StorageClass', 'Add'], object: storageClass('late'), want: true },
  {
    name: 'a class whose claims do not',
    pod: user('data'),
    event: ['StorageClass', 'Add'],
    object: storageClass('x', { volumeBindingMode: 'Immediate' }),
    want: false,
  },
  { name: 'the claim changed', pod: user('data'), event: changed, old: claim('data'), object: claim('data', { volume: 'v' }), want: true },
  { name: 'another claim changed', pod: user('data'), event: changed, old: claim('x'), object: claim('x', { volume: 'v' }), want: false },
  { name: 'a volume', pod: user('data'), event: ['PersistentVolume', 'Add'], object: volume('v'), want: true },
  {
    name: 'a volume of another zone now',
    pod: user('data'),
    event: ['PersistentVolume', 'Update'],
    old: volume('v'),
    object: volume('v', { labels: { [zone]: '1' } }),
    want: true,
  },
  {
    name: 'a volume that changed otherwise',
    pod: user('data'),
    event: ['PersistentVolume', 'Update'],
    old: volume('v'),
    object: volume('v', { size: '2Gi' }),
    want: false,
  },
])

const users = (hostUsers: boolean) => pod({ spec: { hostNetwork: true, hostUsers } })
hints('NodeDeclaredFeatures', [
  { name: 'a node', pod: users(false), event: added, object: node('a'), want: true },
  { name: 'a node declares more', pod: users(false), event: ['Node', 'UpdateNodeDeclaredFeature'], old: node('a'), object: node('a'), want: true },
  { name: 'a label', pod: users(false), event: ['Node', 'UpdateNodeLabel'], old: node('a'), object: node('a'), want: false },
  { name: 'the pod needs less now', pod: users(false), event: ['TargetPod', 'UpdatePodOther'], old: users(false), object: users(true), want: true },
  { name: 'the pod needs the same', pod: users(false), event: ['TargetPod', 'UpdatePodOther'], old: users(false), object: users(false), want: false },
])

hints('SchedulingGates', [
  { name: 'the gates are open', pod: pod(), event: ['TargetPod', 'UpdatePodSchedulingGatesEliminated'], want: true },
  { name: 'a node does not open them', pod: pod(), event: added, object: node('a'), want: false },
])
