import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Deployment, DeploymentStatus, ReplicaSet } from '#api/gen/types/apps.v1'
import { newSetAnnotations } from './annotations.ts'
import * as plan from './plan.ts'
import { isComplete, msUntilDeadline, rolloutStatus } from './status.ts'

const now = Date.UTC(2026, 0, 1)
const deployment = (
  replicas: number,
  rollingUpdate: { maxSurge?: number | string; maxUnavailable?: number | string } = {},
  more: Partial<Deployment> = {},
): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd', generation: 1 },
  spec: { replicas, selector: {}, template: {}, strategy: { type: 'RollingUpdate', rollingUpdate }, progressDeadlineSeconds: 600 },
  status: {},
  ...more,
})
const set = (name: string, replicas: number, available = replicas, annotations: Record<string, string> = {}, created = '2026-01-01T00:00:00Z'): ReplicaSet => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name, uid: name, annotations, creationTimestamp: created },
  spec: { replicas, selector: {} },
  status: { replicas, availableReplicas: available, readyReplicas: available },
})

const fenceposts: { replicas: number; maxSurge: number | string; maxUnavailable: number | string; want: { surge: number; unavailable: number } }[] = [
  { replicas: 10, maxSurge: '25%', maxUnavailable: '25%', want: { surge: 3, unavailable: 2 } },
  { replicas: 1, maxSurge: '25%', maxUnavailable: '25%', want: { surge: 1, unavailable: 0 } },
  { replicas: 3, maxSurge: 0, maxUnavailable: '10%', want: { surge: 0, unavailable: 1 } },
]
for (const { replicas, maxSurge, maxUnavailable, want } of fenceposts) {
  test(`CTL-04 ${maxSurge} surge and ${maxUnavailable} unavailable of ${replicas}`, () =>
    assert.deepEqual(plan.fenceposts(deployment(replicas, { maxSurge, maxUnavailable })), want))
}

test('CTL-04 a scaled deployment shares its pods in proportion, the rest to the largest', () => {
  const annotations = { [plan.desiredReplicasAnnotation]: '10', [plan.maxReplicasAnnotation]: '13' }
  const [old, fresh] = [set('old', 8, 8, annotations), set('new', 5, 0, annotations, '2026-01-01T01:00:00Z')]
  const resized = plan.scaleProportionally(deployment(15, { maxSurge: 3 }), fresh, [old])
  assert.deepEqual(
    resized.map(({ set, to }) => [set.metadata.name, to]),
    [
      ['old', 11],
      ['new', 7],
    ],
  )
})

test('CTL-04 any rolling update ends, and never breaks its limits on the way', () => {
  const arbitrary = fc.record({
    replicas: fc.integer({ min: 1, max: 12 }),
    maxSurge: fc.integer({ min: 0, max: 5 }),
    maxUnavailable: fc.integer({ min: 0, max: 5 }),
  })
  fc.assert(
    fc.property(arbitrary, ({ replicas, maxSurge, maxUnavailable }) => {
      const d = deployment(replicas, { maxSurge, maxUnavailable })
      const limits = plan.fenceposts(d)
      let [old, fresh] = [replicas, 0]
      for (let step = 0; step < 100 && (old > 0 || fresh < replicas); step++) {
        const sets = [set('old', old), set('new', fresh)] as const
        const to = plan.newSetReplicas(d, sets, fresh)
        if (to !== fresh) fresh = to
        else for (const resize of plan.shrinkOld(d, [sets[0]], sets[1])) old = resize.to
        assert.equal(old + fresh <= replicas + limits.surge, true, 'too many')
        assert.equal(old + fresh >= replicas - Math.min(limits.unavailable, replicas), true, 'too few')
      }
      assert.deepEqual([old, fresh], [0, replicas])
    }),
  )
})

test('CTL-04 a rolling update keeps enough pods when statuses of ReplicaSets arrive late, in any order', () => {
  const limits = fc.record({
    replicas: fc.integer({ min: 1, max: 6 }),
    maxSurge: fc.integer({ min: 1, max: 3 }),
    maxUnavailable: fc.integer({ min: 0, max: 2 }),
  })
  // The controller of the old ReplicaSet is the slow one.
  const often = fc.constantFrom('deployment', 'new pods', 'new status')
  const rarely = fc.constantFrom('old pods', 'old status')
  const actions = fc.array(fc.oneof({ arbitrary: often, weight: 8 }, { arbitrary: rarely, weight: 1 }), { maxLength: 60, size: 'max' })
  fc.assert(
    fc.property(limits, actions, ({ replicas, maxSurge, maxUnavailable }, steps) => {
      const d = deployment(replicas, { maxSurge, maxUnavailable })
      const least = replicas - plan.maxUnavailable(d)
      const old = { spec: replicas, pods: replicas, status: replicas }
      const fresh = { spec: 0, pods: 0, status: 0 }
      for (const step of steps) {
        if (step === 'old pods') old.pods = old.spec
        else if (step === 'old status') old.status = old.pods
        else if (step === 'new pods') fresh.pods = fresh.spec
        else if (step === 'new status') fresh.status = fresh.pods
        else {
          const sets = [set('old', old.spec, old.status), set('new', fresh.spec, fresh.status)] as const
          const to = plan.newSetReplicas(d, sets, fresh.spec)
          if (to !== fresh.spec) fresh.spec = to
          else for (const resize of plan.shrinkOld(d, [sets[0]], sets[1])) old.spec = resize.to
        }
        assert.ok(old.pods + fresh.pods >= least, `${old.pods} old and ${fresh.pods} new pods of ${least}`)
      }
    }),
    { numRuns: 2000 },
  )
})

test('CTL-04 an old ReplicaSet does not shrink again before its status shows the last step', () => {
  const d = deployment(4, { maxSurge: 1, maxUnavailable: 0 })
  // Its controller has not deleted the fourth pod yet.
  assert.deepEqual(plan.shrinkOld(d, [set('old', 3, 4)], set('new', 2, 2)), [])
  const broken = set('broken', 2, 0, {}, '2025-01-01T00:00:00Z')
  const resized = plan.shrinkOld(deployment(4, { maxSurge: 4, maxUnavailable: 0 }), [broken, set('old', 3, 4)], set('new', 3, 3))
  assert.deepEqual(
    resized.map(({ set, to }) => [set.metadata.name, to]),
    [['broken', 0]],
    'unhealthy pods of an older set still go',
  )
})

test('CTL-04 unhealthy old pods go first, even when nothing may become unavailable', () => {
  const broken = set('broken', 3, 0)
  const resized = plan.shrinkOld(deployment(3, { maxSurge: 1, maxUnavailable: 0 }), [set('good', 3, 3, {}, '2025-01-01T00:00:00Z'), broken], set('new', 1, 1))
  assert.deepEqual(
    resized.map(({ set, to }) => [set.metadata.name, to]),
    [
      ['good', 2],
      ['broken', 0],
    ],
  )
})

test('CTL-04 a set that is rolled back to keeps its earlier revisions; kubectl’s annotations are not copied', () => {
  const d = deployment(1, {}, { metadata: { annotations: { note: 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' } } })
  assert.deepEqual(newSetAnnotations(d, set('s', 1, 1, { [plan.revisionAnnotation]: '2', [plan.revisionHistoryAnnotation]: '1' }), 4n), {
    note: 'x',
    [plan.revisionAnnotation]: '4',
    [plan.revisionHistoryAnnotation]: '1,2',
  })
})

const revisions = [
  { name: 'of no set is 1', sets: [], want: 1n },
  { name: 'follows the greatest, not the last', sets: ['7', '12', '3'], want: 13n },
  { name: 'keeps 64 bits', sets: ['3546343826724305832', '3546343826724305831'], want: 3546343826724305833n },
  { name: 'wraps around after the last int64', sets: ['9223372036854775807'], want: -9223372036854775808n },
  { name: 'leaves out what is no int64', sets: ['9223372036854775808', 'seven', '', '+5'], want: 6n },
]
for (const { name, sets, want } of revisions) {
  test(`CTL-04 the next revision ${name}`, () => {
    assert.equal(plan.nextRevision(sets.map((revision, at) => set(`s${at}`, 1, 1, { [plan.revisionAnnotation]: revision }))), want)
  })
}

test('CTL-04 a set takes a revision of 64 bits, and keeps one that is no number', () => {
  const annotated = (revision: string) => newSetAnnotations(deployment(1, {}), set('s', 1, 1, { [plan.revisionAnnotation]: revision }), 3546343826724305833n)
  assert.equal(annotated('3546343826724305832')[plan.revisionAnnotation], '3546343826724305833')
  assert.equal(annotated('seven')[plan.revisionAnnotation], 'seven')
})

test('CTL-04 a rollout that stands still is reported after its deadline', () => {
  const progressing = (time: string) => ({ type: 'Progressing', status: 'True', reason: 'ReplicaSetUpdated', lastUpdateTime: time, lastTransitionTime: time })
  const status: DeploymentStatus = {
    replicas: 1,
    updatedReplicas: 1,
    unavailableReplicas: 1,
    observedGeneration: 1,
    conditions: [progressing('2025-12-31T23:50:01Z')],
  }
  const d = deployment(1, {}, { status })
  assert.equal(msUntilDeadline(d, status, now), 2_000)
  const after = rolloutStatus(d, [set('s', 1, 0)], set('s', 1, 0), now + 2_000)
  const condition = after.conditions?.find(({ type }) => type === 'Progressing')
  assert.deepEqual(
    [condition?.status, condition?.reason, condition?.message],
    ['False', 'ProgressDeadlineExceeded', 'ReplicaSet "s" has timed out progressing.'],
  )
  assert.equal(isComplete(d, after), false)
})

test('CTL-04 history beyond the limit goes, oldest revision first, but never a set with pods', () => {
  const sets = [1, 2, 3, 4].map((revision) => ({
    ...set(`r${revision}`, revision === 1 ? 1 : 0),
    metadata: { name: `r${revision}`, annotations: { [plan.revisionAnnotation]: String(revision) } },
  }))
  const d = deployment(1)
  const cleaned = plan.setsToClean({ ...d, spec: { ...d.spec, revisionHistoryLimit: 1 } }, sets)
  assert.deepEqual(
    cleaned.map(({ metadata }) => metadata.name),
    ['r2', 'r3'],
  )
})
