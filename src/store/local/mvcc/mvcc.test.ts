/** The pure parts of the store, each against the plainest thing that does the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import type { Op } from '../../store.ts'
import { MvccEngine } from './engine.ts'
import { compactHistory, type KeyHistory, type Version, versionAt, versionBefore } from './keyHistory.ts'
import { WatcherIndex } from './watcherIndex.ts'

const change = (modRevision: number, version: number): Version => ({
  key: 'k',
  modRevision,
  sub: 0,
  createRevision: 2,
  version,
  lease: 0,
  bytes: 1,
  value: undefined,
})
/** put@2 put@4 delete@6 put@9: the worked example of keyHistory.ts. */
const example = (): KeyHistory => [change(2, 1), change(4, 2), change(6, 0), change(9, 1)]

test('ETC-04 a history answers for every revision', () => {
  const seen = [1, 2, 3, 4, 5, 6, 8, 9, 100].map((revision) => versionAt(example(), revision)?.modRevision)
  assert.deepEqual(seen, [undefined, 2, 2, 4, 4, undefined, undefined, 9, 9])
  const history = example()
  assert.deepEqual(
    history.map((version) => versionBefore(history, version)?.modRevision),
    [undefined, 2, 4, undefined],
  )
})

for (const { at, forgotten } of [
  { at: 2, forgotten: [] },
  { at: 4, forgotten: [2] },
  { at: 5, forgotten: [2] },
  { at: 6, forgotten: [2, 4] },
  { at: 7, forgotten: [2, 4, 6] },
  { at: 9, forgotten: [2, 4, 6] },
  { at: 10, forgotten: [2, 4, 6] },
]) {
  test(`ETC-12 compact(${at}) forgets ${forgotten.join(', ') || 'nothing'}`, () => {
    const history = example()
    const before = [...history]
    const gone = compactHistory(history, at)
    assert.deepEqual(
      gone.map((version) => version.modRevision),
      forgotten,
    )
    for (let revision = at; revision < 12; revision++) assert.equal(versionAt(history, revision), versionAt(before, revision))
  })
}

for (let seed = 1; seed <= 20; seed++) {
  test(`ETC-12 a compaction leaves what etcd's leaves, after others and after a restart (seed ${seed})`, () => {
    const random = seededRandom(seed)
    const all: Version[] = []
    let compacted = 0
    const kept = () => all.filter((one) => one.modRevision > compacted || isLeft(one))
    // What etcd 3.6 leaves of a key at and before the compaction: its newest change, and a deletion only at the compaction itself.
    const isLeft = (one: Version) => {
      const newest = all.filter(({ key, modRevision }) => key === one.key && modRevision <= compacted).at(-1)
      return newest === one && (one.version > 0 || one.modRevision === compacted)
    }
    let engine = new MvccEngine(() => undefined)
    for (let round = 0; round < 30; round++) {
      for (let at = random.int(12); at >= 0; at--) {
        const key = String.fromCharCode(97 + random.int(6))
        const success: Op[] =
          random.int(3) === 0 ? [{ type: 'delete', from: key, to: random.int(2) ? 'z' : undefined }] : [{ type: 'put', key, value: new Uint8Array(1) }]
        const { versions } = engine.write(success, () => {})
        engine.commit(versions)
        all.push(...versions)
      }
      if (random.int(4) === 0) {
        // A restart finds what was left.
        engine = new MvccEngine(() => undefined)
        engine.restore(kept())
        engine.advanceTo(all.at(-1)?.modRevision ?? 1)
        if (compacted > 0) engine.startCompaction(compacted)
        while (engine.compactSome(2)) {}
      }
      const target = engine.durableRevision - random.int(4)
      if (target <= compacted) continue
      compacted = target
      engine.startCompaction(compacted)
      // A new compaction may begin before the one before has ended.
      if (random.int(5) === 0) continue
      while (engine.compactSome(2)) {}
      assert.deepEqual(engine.changes('', '\0', 1, engine.durableRevision), kept())
    }
  })
}

test('a watcher index finds exactly the watchers of a key', () => {
  const random = seededRandom(9)
  const index = new WatcherIndex<number>()
  const letter = () => String.fromCharCode(97 + random.int(10))
  const model: { id: number; from: string; to: string | undefined }[] = []
  for (let id = 0; id < 300; id++) {
    const from = letter() + letter()
    const single = random.int(4) === 0
    const to = random.int(8) === 0 ? undefined : letter() + letter()
    if (single) index.addKey(from, id)
    else index.addRange(from, to, id)
    model.push({ id, from, to: single ? `${from}\0` : to })
    if (random.int(3) > 0) continue
    const [gone] = model.splice(random.int(model.length), 1)
    if (gone) {
      index.removeKey(gone.from, gone.id)
      index.removeRange(gone.id)
    }
  }
  for (const a of 'abcdefghij') {
    for (const b of 'abcdefghij') {
      const key = a + b
      const found: number[] = []
      index.forKey(key, (id) => found.push(id))
      const wanted = model.filter(({ from, to }) => key >= from && (to === undefined || key < to)).map(({ id }) => id)
      assert.deepEqual(
        found.sort((x, y) => x - y),
        wanted.sort((x, y) => x - y),
        key,
      )
    }
  }
})

test('what did not become durable is taken back without a trace', () => {
  const engine = new MvccEngine(() => undefined)
  const put = (key: string, value: number) => engine.write([{ type: 'put', key, value: new Uint8Array([value]) }], () => {})
  engine.commit(put('a', 1).versions)
  const bytes = [engine.totalBytes, engine.liveBytes]
  const lost = [put('a', 2), put('b', 1), engine.write([{ type: 'delete', from: 'a', to: 'z' }], () => {})]
  // Not yet durable: readers do not see it, transactions do.
  assert.deepEqual([engine.durableRevision, engine.range('a', 'z').count, engine.writtenVersion('a')], [2, 1, undefined])
  for (const { versions } of lost.toReversed()) for (const version of versions.toReversed()) engine.rollback(version)
  assert.deepEqual([engine.writtenVersion('a')?.version, engine.writtenVersion('b'), engine.totalBytes, engine.liveBytes], [1, undefined, ...bytes])
  assert.equal(put('a', 3).revision, 3, 'the revisions are used again')
})
