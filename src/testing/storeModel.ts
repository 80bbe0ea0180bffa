/**
 * A naive model of the store (testing): a list of all changes, searched from the start. A random history is run on both and compared;
 * watchers start at random revisions, resume where they stopped, and must see exactly the model's changes.
 */
import assert from 'node:assert/strict'
import { seededRandom } from '#base/random'
import type { Op, Store, StoreEventBatch } from '#store/store'

interface Change {
  readonly revision: number
  readonly key: string
  readonly value: string | undefined
}

const keys = Array.from({ length: 12 }, (_, i) => `k${String.fromCharCode(97 + i)}`)

/** Runs one random history, with compactions, and compares reads and watches with the model. */
export async function checkRandomHistory(store: Store, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]) => items[random.int(items.length)] as T
  const log: Change[] = []
  const watchers: { from: string; to: string; first: number; seen: StoreEventBatch[]; stop: AbortController; done: Promise<void> }[] = []
  let compacted = 0
  const stateAt = (revision: number) => {
    const state = new Map<string, string>()
    for (const change of log) {
      if (change.revision > revision) break
      if (change.value === undefined) state.delete(change.key)
      else state.set(change.key, change.value)
    }
    return state
  }
  const startWatch = (from: string, to: string, first: number) => {
    const stop = new AbortController()
    const seen: StoreEventBatch[] = []
    const done = store.watch({ from, to, startRevision: first }, (batch) => void seen.push(batch), stop.signal)
    watchers.push({ from, to, first, seen, stop, done })
  }
  for (let step = 0; step < 150; step++) {
    const writes = Array.from({ length: 1 + random.int(4) }, (_, i): { op: Op; change: Omit<Change, 'revision'> } => {
      const key = pick(keys)
      if (random.int(3) === 0) return { op: { type: 'delete', from: key }, change: { key, value: undefined } }
      const value = `${step}.${i}`
      return { op: { type: 'put', key, value: new Uint8Array(Buffer.from(value)) }, change: { key, value } }
    })
    const results = await Promise.all(writes.map(({ op }) => store.transact({ compare: [], success: [op] })))
    results.forEach(({ revision, responses }, i) => {
      const [response] = responses
      if (response?.type === 'delete' && response.deleted === 0) return
      const { key, value } = (writes[i] as (typeof writes)[number]).change
      log.push({ revision, key, value })
    })
    const current = await store.latestRevision()
    if (random.int(5) === 0) startWatch(pick(keys), pick(['ke', 'kz']), Math.max(compacted, 1) + random.int(current - Math.max(compacted, 1) + 2))
    if (random.int(6) === 0) await resumeOne(pick(watchers.length > 0 ? watchers : [undefined]), startWatch, compacted)
    if (random.int(25) === 0 && current > compacted + 5) {
      compacted += 1 + random.int(current - compacted - 4)
      await store.compact(compacted)
    }
    const revision = Math.max(compacted, 1) + random.int(current - Math.max(compacted, 1) + 1)
    const { kvs } = await store.range('k', 'l', { revision })
    assert.deepEqual(new Map(kvs.map((kv) => [kv.key, Buffer.from(kv.value).toString()])), new Map([...stateAt(revision)].sort(([a], [b]) => (a < b ? -1 : 1))))
  }
  await new Promise((resolve) => setImmediate(resolve))
  for (const { from, to, first, seen, stop, done } of watchers) {
    const last = stop.signal.aborted ? (seen.at(-1)?.revision ?? 0) : await store.latestRevision()
    stop.abort()
    await done
    const got = seen.flatMap(({ events }) =>
      events.map(({ type, kv }) => ({ revision: kv.modRevision, key: kv.key, value: type === 'delete' ? undefined : Buffer.from(kv.value).toString() })),
    )
    const wanted = log.filter(({ revision, key }) => revision >= first && revision <= last && key >= from && key < to)
    assert.deepEqual(got, wanted)
  }
}

interface Watcher {
  readonly from: string
  readonly to: string
  readonly first: number
  readonly seen: readonly StoreEventBatch[]
  readonly stop: AbortController
  readonly done: Promise<void>
}

/** Stops a watcher and starts another one right after what it last saw. */
async function resumeOne(watcher: Watcher | undefined, start: (from: string, to: string, first: number) => void, compacted: number): Promise<void> {
  if (!watcher || watcher.stop.signal.aborted) return
  watcher.stop.abort()
  await watcher.done
  const next = (watcher.seen.at(-1)?.revision ?? watcher.first - 1) + 1
  if (next >= compacted) start(watcher.from, watcher.to, next)
}
