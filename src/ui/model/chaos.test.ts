/** Faults of simulated clusters: what the patches write and restore, which pods are chosen, and what is in force. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  candidates,
  type FaultyNode,
  type FaultyPod,
  failureOf,
  faultOf,
  faultPatch,
  namesOf,
  type PodFault,
  podFaults,
  removalOf,
  someOf,
  undoPatch,
  zonesOf,
} from './chaos.ts'

const prefix = 'skiff.dev/simulated-'

type Patch = { metadata: { uid?: string; labels: Record<string, string | null>; annotations: Record<string, string | null> } }

function pod(annotations: Record<string, string> = {}, more: Partial<FaultyPod> = {}): FaultyPod {
  return {
    metadata: { namespace: 'shop', name: 'web', uid: 'u-1', annotations },
    spec: { nodeName: 'n1', containers: [{ name: 'main', readinessProbe: {} }, { name: 'side' }] },
    status: { phase: 'Running', containerStatuses: [{ name: 'main', restartCount: 4 }, { name: 'side' }] },
    ...more,
  }
}

/** The pod after a merge patch. */
function patched(before: FaultyPod, patch: object | undefined): FaultyPod {
  const { metadata } = patch as Patch
  const merged = (old: Readonly<Record<string, string>> = {}, changes: Record<string, string | null>) =>
    Object.fromEntries(Object.entries({ ...old, ...changes }).filter(([, value]) => value !== null)) as Record<string, string>
  const { labels, annotations } = before.metadata
  return { ...before, metadata: { ...before.metadata, labels: merged(labels, metadata.labels), annotations: merged(annotations, metadata.annotations) } }
}

const said = ({ metadata }: FaultyPod) => Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => key.startsWith(prefix)))

test('X10 each fault of a pod is undone to the annotations that were there, whatever the pod said before', () => {
  for (const annotations of [{}, { [`${prefix}readiness.main`]: 'pass', [`${prefix}exit-code.main`]: '3', [`${prefix}logs`]: 'x', other: 'y' }])
    for (const fault of podFaults) {
      const before = pod(annotations)
      const faulty = patched(before, faultPatch(before, fault))
      assert.equal(faulty.metadata.labels?.['skiff.dev/chaos'], fault)
      assert.notDeepEqual(said(faulty), said(before))
      const after = patched(faulty, undoPatch(faulty))
      assert.deepEqual([after.metadata.annotations, after.metadata.labels], [annotations, {}])
    }
})

test('X10 a second fault takes the place of the first, and its undo restores what was before both', () => {
  const before = pod({ [`${prefix}exit-code.main`]: '3' })
  const faulty = patched(before, faultPatch(before, 'crash'))
  const twice = patched(faulty, faultPatch(faulty, 'unready'))
  assert.deepEqual(said(twice), { [`${prefix}exit-code.main`]: '3', [`${prefix}readiness.main`]: 'fail' })
  assert.deepEqual(patched(twice, undoPatch(twice)).metadata.annotations, before.metadata.annotations)
})

test('X10 the fault to exit once carries the count of restarts, and a container with a long name gets the annotation for all containers', () => {
  const name = 'a'.repeat(40)
  const { metadata } = faultPatch(pod({}, { spec: { containers: [{ name: 'main' }] } }), 'exit') as Patch
  assert.equal(metadata.annotations[`${prefix}exit-times.main`], '5')
  const long = faultPatch(pod({}, { spec: { containers: [{ name }] } }), 'oom') as Patch
  assert.deepEqual([long.metadata.annotations[`${prefix}exit-after-seconds`], long.metadata.annotations[`${prefix}exit-times.${name}`]], ['1', '1000000000'])
})

test('X10 only containers with a readiness probe turn unready; a pod without one is left out', () => {
  const { metadata } = faultPatch(pod(), 'unready') as Patch
  assert.deepEqual(Object.keys(metadata.annotations), [`${prefix}readiness.main`, 'skiff.dev/chaos-undo'])
  assert.equal(faultPatch(pod({}, { spec: { containers: [{ name: 'side' }] } }), 'unready'), undefined)
})

test('X10 an undo restores annotations of simulated pods alone, whatever stands in the record', () => {
  const records = ['{', '[]', 'null', '7', '{"kubernetes.io/x":"y","__proto__":"z"}', `{"${prefix}logs":{"a":1}}`]
  for (const record of records)
    assert.deepEqual((undoPatch(pod({ 'skiff.dev/chaos-undo': record })) as Patch).metadata.annotations, { 'skiff.dev/chaos-undo': null }, record)
})

test('X10 a pod’s fault is named in words, and the label of another writer as it is', () => {
  const labelled = (label: string) => faultOf({ metadata: { labels: { 'skiff.dev/chaos': label } } })
  assert.deepEqual(['crash' satisfies PodFault, 'constructor', 'mine'].map(labelled), ['crash again and again', 'constructor', 'mine'])
})

test('X10 zones count their nodes, those that take pods, and those that the page cordoned', () => {
  const node = (name: string, zone: string | undefined, unschedulable: boolean, annotations: Record<string, string> = {}): FaultyNode => ({
    metadata: { name, annotations, labels: zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone } },
    spec: unschedulable ? { unschedulable } : {},
  })
  const nodes = [
    node('n1', 'b', false, { 'skiff.dev/simulated-failure': 'on purpose' }),
    node('n2', 'a', true),
    node('n3', 'a', true, { 'skiff.dev/chaos-cordon': 'a' }),
    node('n4', 'a', false, { 'skiff.dev/chaos-cordon': 'a' }),
    node('n5', undefined, false),
  ]
  const names = (some: readonly FaultyNode[]) => some.map(({ metadata }) => metadata.name).join()
  assert.deepEqual(
    zonesOf(nodes).map(({ name, nodes: all, open, cordoned }) => [name, names(all), names(open), names(cordoned)]),
    [
      ['a', 'n2,n3,n4', 'n4', 'n3'],
      ['b', 'n1', 'n1', ''],
    ],
  )
  assert.deepEqual(nodes.map(failureOf), ['on purpose', undefined, undefined, undefined, undefined])
})

test('X10 faults choose among running pods of simulated nodes, and among those of kube-system only where it is named', () => {
  const pods = [
    pod(),
    pod({}, { metadata: { namespace: 'kube-system', name: 'dns' } }),
    pod({}, { spec: { nodeName: 'real' } }),
    pod({}, { spec: {} }),
    pod({}, { status: { phase: 'Succeeded' } }),
    pod({}, { metadata: { namespace: 'shop', name: 'gone', deletionTimestamp: '2026-01-01T00:00:00Z' } }),
  ]
  const chosen = (scope: string) => namesOf(candidates(pods, new Set(['n1']), scope))
  assert.deepEqual([chosen(''), chosen('kube-system')], ['shop/web', 'shop/web, kube-system/dns'])
})

test('X10 a draw takes each of them once, and no more than there are', () => {
  const all = [1, 2, 3, 4, 5]
  const draws = [0.99, 0, 0.5, 0, 0]
  assert.deepEqual(
    someOf(all, 3, () => draws.shift() ?? 0),
    [5, 2, 4],
  )
  assert.deepEqual(someOf(all, 9, Math.random).sort(), all)
  assert.deepEqual(someOf([], 2, Math.random), [])
})

test('X10 a pod is removed by its uid, as an eviction or as a deletion', () => {
  assert.deepEqual(removalOf(pod(), true), {
    method: 'POST',
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace: 'shop', name: 'web' }, deleteOptions: { preconditions: { uid: 'u-1' } } },
  })
  assert.deepEqual(removalOf(pod(), false), { method: 'DELETE', body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'u-1' } } })
})
