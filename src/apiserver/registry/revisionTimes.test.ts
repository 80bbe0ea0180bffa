import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mostMarks, RevisionTimes } from './revisionTimes.ts'

const hourMs = 3_600_000

function noted(marks: readonly (readonly [revision: number, nowMs: number])[]): RevisionTimes {
  const times = new RevisionTimes()
  for (const [revision, nowMs] of marks) times.note(revision, nowMs)
  return times
}

const sample = [
  [5, 10_000],
  [6, 10_400],
  [7, 11_000],
  [9, 20_000],
] as const

test('X5 a time has the newest revision of its second, none before the first mark', () => {
  const times = noted(sample)
  assert.deepEqual(
    [9_999, 10_000, 10_999, 11_000, 19_999, 20_000, 99_000].map((atMs) => times.at(atMs)),
    [undefined, 6, 6, 7, 7, 9, 9],
  )
})

test('X5 a revision has the second in which it was made, unknown before the first mark and after the last', () => {
  const times = noted(sample)
  assert.deepEqual(
    [5, 6, 7, 8, 9, 10].map((revision) => times.of(revision)),
    [10_000, 10_000, 11_000, 20_000, 20_000, undefined],
  )
})

test('X5 all revisions of the first second have a time', () => {
  const times = noted([
    [5, 10_000],
    [9, 10_900],
  ])
  assert.deepEqual([times.of(4), times.of(5), times.of(7), times.of(9)], [undefined, 10_000, 10_000, 10_000])
})

test('X5 compacted revisions lose their marks, and the compaction revision keeps its own', () => {
  const times = noted(sample)
  times.forgetBefore(7)
  assert.deepEqual([times.oldest, times.at(10_999), times.of(6)], [{ atMs: 11_000, revision: 7 }, undefined, undefined])
})

test('X5 marks of an earlier process precede those of this one, and none of them reorders time', () => {
  const times = noted(sample)
  times.restore([
    { atMs: 1_000, revision: 2 },
    { atMs: 3_000, revision: 4 },
    { atMs: 30_000, revision: 4 },
  ])
  assert.deepEqual([times.oldest?.revision, times.at(5_000), times.at(12_000)], [2, 4, 7])
})

test('X5 the marks after the time to which a clock is set back are replaced, so that later writes get marks of their own', () => {
  const times = noted([...sample, [10, 12_000], [11, 14_000]])
  assert.deepEqual([times.at(11_000), times.at(12_000), times.at(13_000), times.at(20_000)], [7, 10, 10, 11])
  assert.deepEqual([times.of(9), times.of(10), times.of(11)], [12_000, 12_000, 14_000])
})

test('X5 restored marks are in the order of time, also when servers with different clocks wrote them', () => {
  const times = new RevisionTimes()
  times.restore([
    { atMs: 60_000, revision: 2 },
    { atMs: 600_000, revision: 3 },
    { atMs: 660_000, revision: 5 },
    { atMs: 120_000, revision: 6 },
    { atMs: 180_000, revision: 7 },
  ])
  assert.deepEqual([times.at(60_000), times.at(130_000), times.at(179_000), times.at(180_000)], [2, 6, 6, 7])
})

test('X5 marks older than an hour are thinned to one a minute, and their number is bounded', () => {
  const times = new RevisionTimes()
  for (let second = 0; second < 4 * 3600; second++) times.note(second + 1, second * 1000)
  assert.equal(times.at(90_000), 60, 'an old second has the state at the end of the minute before')
  assert.equal(times.at(4 * hourMs - 30_000), 4 * 3600 - 29, 'a young second has its own state')
  const old = new RevisionTimes()
  old.restore(Array.from({ length: 2 * mostMarks }, (_, at) => ({ atMs: at * 60_000, revision: at + 1 })))
  assert.equal(old.oldest?.revision, mostMarks + 1)
})
