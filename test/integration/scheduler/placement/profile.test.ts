/** The default profile as a whole: its plugins in their order, what weighs how much, and what keeps a pod out of the queue. Upstream: apis/config/v1/default_plugins.go (v1.36). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { defaultPlugins } from '#scheduler/plugins/index'
import { schedulerFixture } from '#testing/schedulerFixture'
import { node, pod } from './table.ts'

test('SCH-01 the default plugins, in upstream order, with their weights', () => {
  const wanted = `SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration=3 NodeAffinity=2 NodePorts NodeResourcesFit=1 VolumeRestrictions
    NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread=2 InterPodAffinity=2 DefaultPreemption NodeResourcesBalancedAllocation=1 ImageLocality=1
    DefaultBinder NodeDeclaredFeatures`.split(/\s+/)
  const told = defaultPlugins.map(({ definition, weight }) => (weight > 0 ? `${definition.name}=${weight}` : definition.name))
  // Resource claims, if enabled, run before preemption.
  assert.deepEqual(
    told.filter((name) => !name.startsWith('DynamicResources')),
    wanted,
  )
})

const softTaint = { key: 'busy', effect: 'PreferNoSchedule' }
const preferring = (disk: string): Pod =>
  pod({
    asks: [{ cpu: '1', memory: '1Gi' }],
    spec: {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: { matchExpressions: [{ key: 'disk', operator: 'In', values: [disk] }] } }],
        },
      },
    },
  })

test('SCH-07 a soft taint weighs more than a preference of the pod', () => {
  const nodes = [node('a', { labels: { disk: 'fast' }, taints: [softTaint] }), node('b')]
  assert.deepEqual(schedulerFixture({ nodes }).decide(preferring('fast')), { on: 'b' })
})

test('SCH-05 a preference of the pod weighs more than an emptier node', () => {
  const nodes = [node('a', { labels: { disk: 'fast' } }), node('b')]
  const placed = [pod({ on: 'a', asks: [{ cpu: '2', memory: '2Gi' }] })]
  assert.deepEqual(schedulerFixture({ nodes, placed }).decide(preferring('fast')), { on: 'a' })
  assert.deepEqual(schedulerFixture({ nodes, placed }).decide(preferring('slow')), { on: 'b' })
})

test('SCH-10 the winner’s score is the sum of each plugin’s score times its weight', () => {
  const nodes = [node('a', { labels: { disk: 'fast' } }), node('b')]
  const result = schedulerFixture({ nodes }).schedule(preferring('fast'))
  assert.ok('placed' in result)
  const given = Object.fromEntries(result.placed.scores.map(({ plugin, score }) => [plugin, score]))
  // Least allocated: 75 of cpu and 87 of memory; balance: from 100 to 93.
  assert.deepEqual(given, { TaintToleration: 300, NodeAffinity: 200, NodeResourcesFit: 81, NodeResourcesBalancedAllocation: 71 })
})

test('SCH-11 a profile that packs puts pods on the fullest node that fits', () => {
  const nodes = [node('a'), node('b'), node('c')]
  const placed = [pod({ on: 'a', asks: [{ cpu: '4', memory: '1Gi' }] }), pod({ on: 'b', asks: [{ cpu: '2', memory: '4Gi' }] })]
  const resources = ['cpu', 'memory'].map((name) => ({ name, weight: 1 }))
  const args = { NodeResourcesFit: { ignoredResources: [], ignoredResourceGroups: [], scoringStrategy: { type: 'MostAllocated', resources } } }
  const decide = (profile: object) => schedulerFixture({ nodes, placed, profile }).decide(pod({ asks: [{ cpu: '1', memory: '2Gi' }] }))
  assert.deepEqual([decide({ args }), decide({})], [{ on: 'b' }, { on: 'c' }])
})

test('SCH-17 scheduling gates keep a pod out of the queue', () => {
  const { profile } = schedulerFixture()
  const gated = pod({ spec: { schedulingGates: [{ name: 'foo' }, { name: 'bar' }] } })
  const gates = profile.points.preEnqueue.find(({ name }) => name === 'SchedulingGates')
  assert.deepEqual(gates?.preEnqueue(gated), { code: 'UnschedulableAndUnresolvable', reasons: ['waiting for scheduling gates: [foo bar]'] })
  assert.equal(gates?.preEnqueue(pod()), undefined)
})

test('SCH-17 higher priority first, then who waited longer', () => {
  const [sort] = schedulerFixture().profile.points.queueSort
  const queued = (name: string, priority: number, sinceMs: number) => ({ pod: pod({ name, spec: { priority } }), sinceMs })
  const waiting = [queued('low', 1, 1), queued('late', 10, 3), queued('early', 10, 2)]
  const order = waiting.sort((a, b) => sort?.less(a, b) ?? 0).map(({ pod: { metadata } }) => metadata.name)
  assert.deepEqual(order, ['early', 'late', 'low'])
})
