/** ETC-11: hashes against a plain reading of etcd's rules, on random histories; test/integration compares them with etcd itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32c } from '#base/crc32c'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '../drivers/memory.ts'
import type { Op, StoredChange } from '../store.ts'
import { encodeKeyValue, revisionKey } from './encoding.ts'
import { hashOfKeys } from './hash.ts'

/** All changes ever made; the hash for a compaction and a revision, from the whole history of each key. */
function expectedHash(all: readonly StoredChange[], compacted: number, revision: number): number {
  const newest = (key: string, at: number) => all.filter((one) => one.key === key && one.modRevision <= at).at(-1)
  const isKept = (one: StoredChange) =>
    one.modRevision > compacted || (newest(one.key, compacted) === one && (one.version > 0 || one.modRevision === compacted))
  const kept = all.filter(isKept)
  const live = new Set(kept.filter((one) => one.modRevision <= revision && newest(one.key, revision) === one && one.version > 0))
  const counted = kept.filter((one) => {
    if (one.modRevision > revision || (one.modRevision === compacted && one.version === 0)) return false
    return one.modRevision > compacted || live.size === 0 || live.has(one)
  })
  return counted.reduce(
    (hash, one) => crc32c(encodeKeyValue(one), crc32c(revisionKey(one.modRevision, one.sub, one.version === 0), hash)),
    crc32c(Buffer.from('key')),
  )
}

for (let seed = 1; seed <= 30; seed++) {
  test(`ETC-11 the hash of a random history with compactions is the one of etcd's rules, seed ${seed}`, async () => {
    const random = seededRandom(seed)
    const store = createMemoryStore({ clock: new VirtualClock() })
    const all: StoredChange[] = []
    let compacted = 0
    for (let step = 0; step < 60; step++) {
      const keys = [...new Set([`k${random.int(4)}`, `k${random.int(4)}`])]
      const success = keys.map((key): Op => (random.int(2) ? { type: 'delete', from: key } : { type: 'put', key, value: Buffer.from(String(step)) }))
      await store.transact({ compare: [], success })
      const before = await store.snapshot()
      const newest = new Set(all.map(({ modRevision, sub }) => `${modRevision} ${sub}`))
      for await (const changes of before.changes()) for (const one of changes) if (!newest.has(`${one.modRevision} ${one.sub}`)) all.push(one)
      before.close()
      if (random.int(8) === 0 && store.latestRevision() > compacted + 1) {
        compacted += 1 + random.int(store.latestRevision() - compacted)
        await store.compact(compacted)
      }
      const revision = Math.max(1, compacted) + random.int(store.latestRevision() - Math.max(1, compacted) + 1)
      const snapshot = await store.snapshot()
      assert.equal(await hashOfKeys(snapshot, revision), expectedHash(all, compacted, revision), `step ${step}, compacted ${compacted}, revision ${revision}`)
      snapshot.close()
    }
    await store.close()
  })
}
