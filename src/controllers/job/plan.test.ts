import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { msUntilRetry } from './failures.ts'
import { completionIndexAnnotation, formatIndexes, IndexSet, parseIntervals } from './indexes.ts'
import * as plan from './plan.ts'
import { jobStatus, trackPods } from './status.ts'

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
  assert.equal(formatIndexes(IndexSet.of([0, 1, 2, 4, 6, 7])), '0-2,4,6,7')
  assert.deepEqual(parseIntervals('0-3000000000,x,7', 5), [[0, 4]])
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(40)), (list) => {
      const set = IndexSet.parse(formatIndexes(IndexSet.of(list)), 41)
      const members = Array.from({ length: 41 }, (_, index) => index).filter((index) => set.has(index))
      assert.deepEqual([members, set.size], [[...list].sort((a, b) => a - b), list.length])
      for (const index of members) assert.ok(!set.has(set.nextOutside(index)) && set.nextOutside(index) > index)
      assert.equal(set.countShared(IndexSet.of([3, 4, 9])), members.filter((index) => [3, 4, 9].includes(index)).length)
    }),
  )
})

test('CTL-07 a Job whose status names two thousand million indexes costs no more than one interval', () => {
  const completions = 2 ** 31 - 1
  const almost = `0-${completions - 3}`
  const spec = { completions, parallelism: 10, completionMode: 'Indexed', backoffLimitPerIndex: 1, successPolicy: { rules: [{ succeededIndexes: almost }] } }
  const counts = plan.countPods(job(spec, { completedIndexes: almost, failedIndexes: `${completions - 2}` }), [])
  assert.deepEqual([counts.succeeded, plan.nextIndexes(job(spec), counts, 10)], [completions - 2, [completions - 1]])
  assert.equal(plan.verdictOf(job(spec), counts, now)?.message, 'Matched rules at index 0')
  assert.equal(formatIndexes(counts.succeededIndexes), almost)
})

test('CTL-07 a finished pod is counted once, whatever the order of status and finalizer', () => {
  const track = (status: Job['status'], pods: Pod[]) => {
    const object = job({}, status)
    const counts = plan.countPods(object, pods)
    const tracking = trackPods(object, counts, undefined)
    return { counts, tracking, status: jobStatus(object, { counts, tracking, verdict: undefined, complete: true, nowMs: now }) }
  }
  const [a, b] = [pod('a', 'Succeeded'), pod('b', 'Failed')]
  const first = track({}, [a, b])
  assert.deepEqual([first.counts.succeeded, first.counts.failed], [1, 1])
  assert.deepEqual(
    [first.tracking.settled, first.tracking.uncounted],
    [
      { succeeded: 0, failed: 0 },
      { succeeded: ['a'], failed: ['b'] },
    ],
  )
  const again = track(first.status, [a, b])
  assert.deepEqual([again.counts.succeeded, again.counts.failed], [1, 1])
  const released = track(first.status, [pod('a', 'Succeeded', false)])
  assert.deepEqual(
    [released.tracking.settled, released.tracking.uncounted],
    [
      { succeeded: 1, failed: 1 },
      { succeeded: [], failed: [] },
    ],
  )
  const settled = track(released.status, [])
  assert.deepEqual([settled.counts.succeeded, settled.counts.failed], [1, 1])
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

test('CTL-07 pods that run twice for an index, or for none, go first', () => {
  const at = (uid: string, index: number | undefined, phase = 'Running'): Pod => {
    const { metadata, ...rest } = pod(uid, phase)
    return { ...rest, metadata: { ...metadata, ...(index === undefined ? {} : { annotations: { [completionIndexAnnotation]: String(index) } }) } }
  }
  const object = job({ completions: 2, completionMode: 'Indexed' })
  const pods = [at('a', 0), at('b', 0, 'Pending'), at('c', 1), at('d', 5), at('e', undefined)]
  const names = (count: number) =>
    plan
      .surplusPods(object, pods, count, now)
      .map(({ metadata }) => metadata.name)
      .sort()
  assert.deepEqual(names(0), ['b', 'd', 'e'])
  assert.equal(names(4).length, 4)
})

test('CTL-07 failures in a row space the next pods out: 10 s, 20 s, … 10 min', () => {
  const ended = (uid: string, phase: string, finishedAt: string): Pod => ({
    ...pod(uid, phase),
    status: {
      phase,
      containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, state: { terminated: { exitCode: 1, finishedAt } } }],
    },
  })
  const failed = (uid: string, time: string) => ended(uid, 'Failed', time)
  assert.equal(msUntilRetry([], now), 0)
  assert.equal(msUntilRetry([failed('a', '2025-12-31T23:59:58Z')], now), 8_000)
  assert.equal(msUntilRetry([failed('a', '2025-12-31T23:59:00Z'), failed('b', '2025-12-31T23:59:58Z')], now), 18_000)
  assert.equal(msUntilRetry([failed('a', '2025-12-31T23:59:00Z'), ended('s', 'Succeeded', '2025-12-31T23:59:30Z')], now), 0)
  assert.equal(
    msUntilRetry(
      Array.from({ length: 12 }, (_, i) => failed(`f${i}`, '2025-12-31T23:59:59Z')),
      now,
    ),
    599_000,
  )
})
