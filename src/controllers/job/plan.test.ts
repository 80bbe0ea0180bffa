import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { formatIndexes, parseIndexes } from './indexes.ts'
import * as plan from './plan.ts'

const now = Date.UTC(2026, 0, 1)
const job = (spec: Partial<Job['spec']>, status: Job['status'] = {}): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'j' },
  spec: { template: {}, ...spec },
  status,
})
const pod = (uid: string, phase: string, tracked = true): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, uid, ...(tracked ? { finalizers: [plan.trackingFinalizer] } : {}) },
  spec: { containers: [] },
  status: { phase },
})

test('CTL-07 indexes are written as runs, and read back', () => {
  assert.equal(formatIndexes(new Set([0, 1, 2, 4, 6, 7])), '0-2,4,6,7')
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(40)), (list) => {
      assert.deepEqual(parseIndexes(formatIndexes(new Set(list)), 41), new Set([...list].sort((a, b) => a - b)))
    }),
  )
})

test('CTL-07 a finished pod is counted once, whatever the order of status and finalizer', () => {
  const [a, b] = [pod('a', 'Succeeded'), pod('b', 'Failed')]
  const first = plan.countPods(job({}), [a, b])
  assert.deepEqual([first.succeeded, first.failed, first.settled, first.uncounted], [1, 1, { succeeded: 0, failed: 0 }, { succeeded: ['a'], failed: ['b'] }])
  const written = plan.jobStatus(job({}), first, undefined, now)
  const again = plan.countPods(job({}, written), [a, b])
  assert.deepEqual([again.succeeded, again.failed], [1, 1])
  const released = plan.countPods(job({}, written), [pod('a', 'Succeeded', false)])
  assert.deepEqual(
    [released.settled, released.uncounted],
    [
      { succeeded: 1, failed: 1 },
      { succeeded: [], failed: [] },
    ],
  )
  const settled = plan.countPods(job({}, plan.jobStatus(job({}, written), released, undefined, now)), [])
  assert.deepEqual([settled.succeeded, settled.failed], [1, 1])
})

test('CTL-07 verdicts: completions, backoff limit, deadline', () => {
  const verdict = (spec: Partial<Job['spec']>, pods: Pod[], status: Job['status'] = {}) =>
    plan.verdictOf(job(spec, status), plan.countPods(job(spec, status), pods), now)?.reason
  assert.equal(verdict({ completions: 2 }, [pod('a', 'Succeeded')]), undefined)
  assert.equal(verdict({ completions: 2 }, [pod('a', 'Succeeded'), pod('b', 'Succeeded')]), 'CompletionsReached')
  assert.equal(verdict({}, [pod('a', 'Succeeded'), pod('b', 'Running')]), undefined)
  assert.equal(verdict({}, [pod('a', 'Succeeded')]), 'CompletionsReached')
  assert.equal(verdict({ backoffLimit: 1 }, [pod('a', 'Failed'), pod('b', 'Failed')]), 'BackoffLimitExceeded')
  assert.equal(verdict({ activeDeadlineSeconds: 60 }, [], { startTime: '2025-12-31T23:58:00Z' }), 'DeadlineExceeded')
})

test('CTL-07 failures in a row space the next pods out: 10 s, 20 s, …', () => {
  const failed = (uid: string, time: string): Pod => ({ ...pod(uid, 'Failed'), status: { phase: 'Failed', startTime: time } })
  assert.equal(plan.msUntilRetry([], now), 0)
  assert.equal(plan.msUntilRetry([failed('a', '2025-12-31T23:59:58Z')], now), 8_000)
  assert.equal(plan.msUntilRetry([failed('a', '2025-12-31T23:59:00Z'), failed('b', '2025-12-31T23:59:58Z')], now), 18_000)
})
