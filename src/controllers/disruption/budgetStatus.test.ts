import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { budgetStatus, failedStatus, msUntilRecheck, msUntilStale, notDeleted } from './budgetStatus.ts'

const now = Date.UTC(2026, 0, 1)
const pods = (ready: number, total: number): Pod[] =>
  Array.from({ length: total }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p${i}` },
    spec: { containers: [] },
    status: { conditions: [{ type: 'Ready', status: i < ready ? 'True' : 'False' }] },
  }))
const budget = (spec: PodDisruptionBudget['spec'], disruptedPods?: Record<string, string>): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'b', generation: 1 },
  spec,
  status: { disruptedPods, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 },
})

const cases: {
  name: string
  budget: PodDisruptionBudget
  ready: number
  total: number
  expected: number
  want: [allowed: number, healthy: number, desired: number, expected: number]
}[] = [
  { name: 'minAvailable as a number', budget: budget({ minAvailable: 2 }), ready: 3, total: 3, expected: 5, want: [1, 3, 2, 3] },
  {
    name: 'minAvailable as a share of what is wanted, rounded up',
    budget: budget({ minAvailable: '50%' }),
    ready: 3,
    total: 3,
    expected: 5,
    want: [0, 3, 3, 5],
  },
  { name: 'maxUnavailable as a number', budget: budget({ maxUnavailable: 1 }), ready: 3, total: 3, expected: 3, want: [1, 3, 2, 3] },
  { name: 'maxUnavailable as a share, rounded up', budget: budget({ maxUnavailable: '10%' }), ready: 2, total: 3, expected: 3, want: [0, 2, 2, 3] },
  { name: 'no pods allow nothing', budget: budget({ minAvailable: 0 }), ready: 0, total: 0, expected: 0, want: [0, 0, 0, 0] },
  {
    name: 'a pod whose eviction was granted is not healthy',
    budget: budget({ minAvailable: 2 }, { p0: '2025-12-31T23:59:00Z' }),
    ready: 3,
    total: 3,
    expected: 3,
    want: [0, 2, 2, 3],
  },
  {
    name: 'unless it still lives after two minutes',
    budget: budget({ minAvailable: 2 }, { p0: '2025-12-31T23:57:00Z' }),
    ready: 3,
    total: 3,
    expected: 3,
    want: [1, 3, 2, 3],
  },
]
for (const { name, budget, ready, total, expected, want } of cases) {
  test(`CTL-17 ${name}`, () => {
    const status = budgetStatus(budget, pods(ready, total), expected, now)
    assert.deepEqual([status.disruptionsAllowed, status.currentHealthy, status.desiredHealthy, status.expectedPods], want)
    assert.equal(status.conditions?.[0]?.reason, want[0] > 0 ? 'SufficientPods' : 'InsufficientPods')
  })
}

test('CTL-17 an approved eviction is checked again when it expires, and its pod is named', () => {
  const granted = { p0: '2025-12-31T23:59:00Z', p1: '2025-12-31T23:59:30Z' }
  assert.equal(msUntilRecheck(granted, now), 60_001)
  assert.equal(msUntilRecheck({}, now), undefined)
  const late = notDeleted(budget({ minAvailable: 1 }, { ...granted, p2: '2025-12-31T23:00:00Z' }), pods(3, 3), now)
  assert.deepEqual(
    late.map(({ metadata }) => metadata.name),
    ['p2'],
  )
})

test('CTL-17 what cannot be counted allows nothing', () => {
  const status = failedStatus(budget({ maxUnavailable: 1 }), 'found no controllers for pod "p0"', now)
  assert.equal(status.disruptionsAllowed, 0)
  assert.deepEqual(
    status.conditions?.map(({ status, reason, message }) => [status, reason, message]),
    [['False', 'SyncFailed', 'found no controllers for pod "p0"']],
  )
})

test('CTL-17 a mark for disruption is stale after two minutes without a deletion', () => {
  const marked = (reason: string, more: Partial<Pod['metadata']> = {}): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', ...more },
    spec: { containers: [] },
    status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason, lastTransitionTime: '2025-12-31T23:59:00Z' }] },
  })
  assert.equal(msUntilStale(marked('EvictionByEvictionAPI'), now), 60_000)
  assert.equal(msUntilStale(marked('EvictionByEvictionAPI'), now + 600_000), 0)
  assert.equal(msUntilStale(marked('TerminationByKubelet'), now), undefined)
  assert.equal(msUntilStale(marked('EvictionByEvictionAPI', { deletionTimestamp: 'x' }), now), undefined)
})
