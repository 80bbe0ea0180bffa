import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isPodActive } from '#api/helpers/pods'
import { selectorOf } from '#api/machinery/labelSelector'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { Indexer } from '#client/cache/indexer'
import { decide } from '../shared/claim.ts'
import { controllerUidIndex, podControllerIndexers } from '../shared/indexes.ts'
import { countsOfPods, countsOfTally, replicaTallies, replicaTally } from './replicaCounts.ts'

const namespace = 'default'
const now = Date.parse('2026-01-01T01:00:00Z')

function set(spec: object = {}): Frozen<ReplicaSet> {
  const labels = { app: 'web', tier: 'front' }
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { namespace, name: 'web', uid: 'set' },
    spec: { replicas: 3, selector: { matchLabels: { app: 'web' } }, template: { metadata: { labels }, spec: { containers: [] } }, ...spec },
  } as unknown as Frozen<ReplicaSet>
}

interface PodState {
  readonly name?: string
  readonly owner?: string | undefined
  readonly labels?: Readonly<Record<string, string>>
  readonly phase?: string
  readonly ready?: boolean
  readonly deleted?: boolean
}

function pod({ name = 'p', owner = 'set', labels = { app: 'web', tier: 'front' }, phase = 'Running', ready = false, deleted = false }: PodState): Frozen<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ namespace, name, labels },
      ...(owner === '' ? {} : { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: owner, controller: true }] }),
      ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { containers: [] },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }] },
  } as unknown as Frozen<Pod>
}

function storeOf(pods: readonly Frozen<Pod>[]): Indexer<Pod> {
  const store = new Indexer<Pod>(podControllerIndexers)
  store.addTallies(replicaTallies)
  for (const one of pods) store.set(one)
  return store
}

function tallied(store: Indexer<Pod>, of: Frozen<ReplicaSet>) {
  const sight = { owned: store.tally(replicaTally, 'set'), orphans: store.tally(replicaTally, `orphan:${namespace}`) }
  return countsOfTally(of, selectorOf(of.spec.selector), sight)
}

/** As a sync without the tally counts them. */
function counted(store: Indexer<Pod>, of: Frozen<ReplicaSet>) {
  const owned = store.byIndex(controllerUidIndex, 'set')
  const selector = selectorOf(of.spec.selector)
  return countsOfPods(
    of,
    owned,
    owned.filter((one) => isPodActive(one) && decide(one, of, selector) === 'keep'),
    now,
  )
}

test('CTL-03 the tally of a ReplicaSet counts what a pass over its pods counts, after any history', () => {
  const random = seededRandom(11)
  const pick = <T>(choices: readonly T[]): T => choices[random.int(choices.length)] as T
  const store = storeOf([])
  for (let step = 0; step < 2_000; step++) {
    const one = pod({
      name: `p-${random.int(40)}`,
      owner: pick(['set', 'set', 'other']),
      labels: pick([{ app: 'web', tier: 'front' }, { app: 'web' }, { app: 'web', tier: 'front', extra: String(random.int(3)) }] as const),
      phase: pick(['Pending', 'Running', 'Running', 'Failed', 'Succeeded']),
      ready: pick([true, false]),
      deleted: pick([true, false, false]),
    })
    if (random.int(4) === 0) store.delete(keyOf(one))
    else store.set(one)
    assert.deepEqual(tallied(store, set()), counted(store, set()), `after step ${step}`)
  }
  for (const { metadata } of store.list()) store.delete(keyOf({ metadata }))
  assert.deepEqual([...store.tally(replicaTally, 'set')], [])
})

const undecided: readonly { readonly name: string; readonly pods: readonly PodState[]; readonly spec?: object }[] = [
  { name: 'an orphan that the set selects', pods: [{ owner: '' }] },
  { name: 'a pod of the set whose labels it does not select', pods: [{ labels: { app: 'other' } }] },
  { name: 'a set with minReadySeconds', pods: [{ ready: true }], spec: { minReadySeconds: 5 } },
]
for (const { name, pods, spec } of undecided) {
  test(`CTL-03 the tally of a ReplicaSet leaves the count to a pass over its pods, with ${name}`, () => {
    assert.equal(tallied(storeOf(pods.map(pod)), set(spec)), undefined)
  })
}

test('CTL-03 the tally of a ReplicaSet passes over orphans that the set does not select, and orphans that have ended', () => {
  const orphans = [pod({ name: 'a', owner: '', labels: { app: 'other' } }), pod({ name: 'b', owner: '', phase: 'Failed' })]
  assert.deepEqual(tallied(storeOf([...orphans, pod({ ready: true })]), set()), { active: 1, fullyLabeled: 1, ready: 1, available: 1, terminating: 0 })
})
