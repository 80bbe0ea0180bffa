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

/** Turns of the event loop until a condition holds; a remote store needs many. */
export async function settle(holds: () => boolean): Promise<void> {
  for (const deadlineMs = performance.now() + 10_000; !holds() && performance.now() < deadlineMs; ) await new Promise((resolve) => setImmediate(resolve))
}

/** Runs one random history, with compactions, and compares reads and watches with the model. A local store keeps the order of its callers, and pace. */
export async function checkRandomHistory(store: Store, seed: number, isRemote: boolean): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]) => items[random.int(items.length)] as T
  const log: Change[] = []
  const watchers: Watcher[] = []
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
    const watcher: Watcher = { from, to, first, seen, stop, reached: first - 1, done: Promise.resolve() }
    const onProgress = (revision: number) => {
      watcher.reached = revision
    }
    const onBatch = (batch: StoreEventBatch) => {
      seen.push(batch)
      watcher.reached = batch.revision
    }
    watcher.done = store.watch({ from, to, startRevision: first, onProgress }, onBatch, stop.signal)
    watchers.push(watcher)
  }
  const caughtUp = async (watcher: Watcher) => {
    if (watcher.stop.signal.aborted) return
    const newest = await store.latestRevision()
    await settle(() => watcher.reached >= newest)
    assert.ok(watcher.reached >= newest)
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
    // A remote store may carry out concurrent writes in another order.
    if (isRemote) log.sort((a, b) => a.revision - b.revision)
    const current = await store.latestRevision()
    // Watches of a remote store begin after the compaction: see the driver's.
    const oldest = isRemote ? compacted + 1 : Math.max(compacted, 1)
    if (random.int(5) === 0) startWatch(pick(keys), pick(['ke', 'kz']), oldest + random.int(current - oldest + 2))
    if (random.int(6) === 0) await resumeOne(pick(watchers.length > 0 ? watchers : [undefined]), startWatch, oldest)
    if (random.int(25) === 0 && current > compacted + 5) {
      // A watch of a remote store that has not caught up ends with the compaction.
      if (isRemote) for (const watcher of watchers) await caughtUp(watcher)
      compacted += 1 + random.int(current - compacted - 4)
      await store.compact(compacted)
    }
    const revision = Math.max(compacted, 1) + random.int(current - Math.max(compacted, 1) + 1)
    const { kvs } = await store.range('k', 'l', { revision })
    assert.deepEqual(new Map(kvs.map((kv) => [kv.key, Buffer.from(kv.value).toString()])), new Map([...stateAt(revision)].sort(([a], [b]) => (a < b ? -1 : 1))))
  }
  // A local store has delivered everything a turn later.
  if (!isRemote) await new Promise((resolve) => setImmediate(resolve))
  for (const watcher of watchers) {
    const { seen, stop } = watcher
    const last = stop.signal.aborted ? (seen.at(-1)?.revision ?? 0) : await store.latestRevision()
    if (isRemote) await caughtUp(watcher)
    stop.abort()
    await watcher.done
    const got = seen.flatMap(({ events }) =>
      events.map(({ type, kv }) => ({ revision: kv.modRevision, key: kv.key, value: type === 'delete' ? undefined : Buffer.from(kv.value).toString() })),
    )
    assert.deepEqual(got, log.filter(isOf(watcher, last)))
  }
}

interface Watcher {
  readonly from: string
  readonly to: string
  readonly first: number
  readonly seen: readonly StoreEventBatch[]
  readonly stop: AbortController
  /** Everything up to this revision has been delivered. */
  reached: number
  done: Promise<void>
}

/** Whether a watcher has to have seen a change by revision `last`. */
function isOf({ from, to, first }: Pick<Watcher, 'from' | 'to' | 'first'>, last: number): (change: Change) => boolean {
  return ({ revision, key }) => revision >= first && revision <= last && key >= from && key < to
}

/** Stops a watcher and starts another one right after what it last saw. */
async function resumeOne(watcher: Watcher | undefined, start: (from: string, to: string, first: number) => void, oldest: number): Promise<void> {
  if (!watcher || watcher.stop.signal.aborted) return
  watcher.stop.abort()
  await watcher.done
  const next = (watcher.seen.at(-1)?.revision ?? watcher.first - 1) + 1
  if (next >= oldest) start(watcher.from, watcher.to, next)
}
