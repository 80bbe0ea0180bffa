import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeOf, podOf } from '#testing/schedulerFixture'
import { podInfo } from './framework/podInfo.ts'
import { SchedulerCache } from './schedulerCache.ts'

const zoned = (name: string, zone: string) => nodeOf({ name, labels: { 'topology.kubernetes.io/zone': zone } })
const cpu = { cpu: '1', memory: '1Gi' }

test('SCH-12 zones take turns in the order of nodes, and a node that changes its zone moves', () => {
  const cache = new SchedulerCache()
  for (const [name, zone] of ['a1 a', 'a2 a', 'a3 a', 'b1 b', 'c1 c'].map((text) => text.split(' ') as [string, string])) cache.setNode(zoned(name, zone))
  const names = () => cache.nodes.map(({ name }) => name).join(' ')
  assert.equal(names(), 'a1 b1 c1 a2 a3')
  cache.setNode(zoned('a3', 'b'))
  assert.equal(names(), 'a1 a3 c1 a2 b1')
  cache.removeNode('c1')
  assert.equal(names(), 'a1 a3 a2 b1')
})

test('SCH-19 an assumed pod counts until it is forgotten; one that the API confirmed stays', () => {
  const cache = new SchedulerCache()
  cache.setNode(nodeOf({ name: 'n' }))
  const pod = podOf('p', {}, cpu)
  cache.assume(podInfo(pod), 'n')
  const requested = () => [cache.get('n')?.requestedMilliCpu, cache.get('n')?.podCount, cache.podCount, cache.assumedCount]
  assert.deepEqual(requested(), [1000, 1, 1, 1])
  assert.equal(cache.forget('default/p', 'another'), false, 'another pod of that name')
  assert.equal(cache.forget('default/p', 'p'), true)
  assert.deepEqual(requested(), [0, 0, 0, 0])
  cache.assume(podInfo(pod), 'n')
  cache.setPod({ ...pod, spec: { ...pod.spec, nodeName: 'n' } })
  assert.deepEqual(requested(), [1000, 1, 1, 0])
  assert.equal(cache.forget('default/p', 'p'), false)
  assert.deepEqual(requested(), [1000, 1, 1, 0])
})

test('SCH-19 pods of a node that is deleted or not known yet count when the node appears', () => {
  const cache = new SchedulerCache()
  cache.setPod(podOf('early', { nodeName: 'n' }, cpu))
  assert.deepEqual([cache.nodes.length, cache.get('n')], [0, undefined])
  cache.setNode(nodeOf({ name: 'n' }))
  assert.equal(cache.get('n')?.requestedMilliCpu, 1000)
  cache.removeNode('n')
  cache.setPod(podOf('late', { nodeName: 'n' }, cpu))
  cache.setNode(nodeOf({ name: 'n' }))
  assert.deepEqual([cache.get('n')?.requestedMilliCpu, cache.get('n')?.allocatableMilliCpu], [2000, 4000])
})

test('SCH-19 nodes have slots of their own, used again when they are gone with their pods; clones have none', () => {
  const cache = new SchedulerCache()
  const slots = () => cache.nodes.map(({ name, slot }) => `${name}@${slot}`).sort()
  for (const name of ['a', 'b']) cache.setNode(nodeOf({ name }))
  const pod = podOf('p', { nodeName: 'a' }, cpu)
  cache.setPod(pod)
  cache.removeNode('a')
  cache.setNode(nodeOf({ name: 'c' }))
  assert.deepEqual([slots(), cache.get('b')?.clone().slot], [['b@1', 'c@2'], -1])
  cache.removePod(pod)
  cache.removeNode('b')
  for (const name of ['d', 'e', 'f']) cache.setNode(nodeOf({ name }))
  assert.deepEqual(slots(), ['c@2', 'd@1', 'e@0', 'f@3'])
})

test('SCH-19 an index gets the current pods and nodes, and then each change once', () => {
  const cache = new SchedulerCache()
  cache.setNode(nodeOf({ name: 'n' }))
  cache.setPod(podOf('there', { nodeName: 'n' }, cpu))
  const heard: string[] = []
  cache.maintain({
    podAdded: (pod, node) => heard.push(`+${pod.key}@${node.name}`),
    podRemoved: (pod, node) => heard.push(`-${pod.key}@${node.name}`),
    nodeSet: (node) => heard.push(`node ${node.name}`),
    nodeRemoved: (node) => heard.push(`no ${node.name}`),
  })
  const other = podOf('other', { nodeName: 'n' }, cpu)
  cache.setPod(other)
  cache.setPod({ ...other, status: { phase: 'Running' } })
  cache.setPod({ ...other, metadata: { ...other.metadata, labels: { a: 'b' } } })
  cache.removePod(other)
  cache.removeNode('n')
  assert.deepEqual(heard, [...['+default/there@n', 'node n', '+default/other@n'], ...['-default/other@n', '+default/other@n', '-default/other@n', 'no n']])
})

test('SCH-19 claims, affinities and clones are counted with the pods', () => {
  const cache = new SchedulerCache()
  cache.setNode(nodeOf({ name: 'n' }))
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: {} }
  const pod = podOf('p', {
    nodeName: 'n',
    volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
  })
  cache.setPod(pod)
  const node = cache.get('n')
  assert.ok(node)
  assert.deepEqual([cache.isPvcUsed('default/data'), node.pvcRefCounts.get('default/data'), cache.nodesWithRequiredAntiAffinityPods.has(node)], [true, 1, true])
  const copy = node.clone()
  copy.remove('default/p')
  assert.deepEqual([copy.podCount, copy.podsWithAffinity.size, node.podCount, node.podsWithAffinity.size], [0, 0, 1, 1])
  cache.removePod(pod)
  assert.deepEqual([cache.isPvcUsed('default/data'), node.pvcRefCounts.size, cache.nodesWithRequiredAntiAffinityPods.size], [false, 0, 0])
})

test('SCH-19 a pod whose labels change while it is bound is counted once, and indexes that select pods get the new labels', () => {
  const cache = new SchedulerCache()
  cache.setNode(nodeOf({ name: 'n' }))
  const told: string[] = []
  const zoneOf = (labels: Readonly<Record<string, string>> | undefined) => labels?.zone ?? 'none'
  cache.maintain({
    podAdded: ({ pod }) => void told.push(`+${zoneOf(pod.metadata.labels)}`),
    podRemoved: ({ pod }) => void told.push(`-${zoneOf(pod.metadata.labels)}`),
  })
  const pod = podOf('p', {}, cpu)
  cache.assume(podInfo(pod), 'n')
  const bound = { ...pod, spec: { ...pod.spec, nodeName: 'n' }, metadata: { ...pod.metadata, labels: { zone: 'a' } } }
  cache.setPod(bound)
  assert.deepEqual(told, ['+none', '-none', '+a'])
  assert.deepEqual([cache.get('n')?.requestedMilliCpu, cache.podCount, cache.assumedCount], [1000, 1, 0])
  cache.setPod({ ...bound, status: { phase: 'Running' } })
  assert.deepEqual([told.length, cache.placementOf('default/p')?.info.pod.status?.phase], [3, 'Running'])
})
