import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RevisionTimes } from './revisionTimes.ts'

test('a revision has the time of the last mark at or before it', () => {
  const times = new RevisionTimes()
  for (const [revision, nowMs] of [
    [5, 10_000],
    [6, 10_400],
    [7, 11_000],
    [9, 20_000],
  ] as const)
    times.note(revision, nowMs)
  assert.deepEqual(
    [4, 5, 6, 7, 8, 9, 100].map((revision) => times.of(revision)),
    [undefined, 10_000, 10_000, 11_000, 11_000, 20_000, 20_000],
  )
})

test('marks of compacted revisions are dropped, the one in force stays', () => {
  const times = new RevisionTimes()
  for (const revision of [1, 2, 3, 4]) times.note(revision, revision * 1_000)
  times.forgetBefore(3)
  assert.deepEqual(
    [1, 2, 3, 4].map((revision) => times.of(revision)),
    [undefined, undefined, 3_000, 4_000],
  )
})
