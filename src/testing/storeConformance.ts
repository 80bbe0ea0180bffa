/**
 * What every store driver must do (testing): one suite over all of them. A driver's test file calls describeStore with a way to open one.
 * Time is virtual where the driver's is: the suite decides when leases expire.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { LeaseId, Op, Store, StoreError, StoreEventBatch, StoreWatchOptions } from '#store/store'
import { checkRandomHistory, settle } from './storeModel.ts'

export interface StoreUnderTest {
  readonly name: string
  /** A new, empty store. */
  open(clock: VirtualClock): Promise<Store>
  /**
   * Requests travel to the store: it may carry out concurrent ones in another order, delivers events some time after the write was acknowledged, and its
   * time is real. A local store is held to more: the order of its callers, and events before the acknowledgement.
   */
  readonly isRemote?: boolean | undefined
  /** Why the store cannot be opened here: the suite is then one skipped test. */
  readonly skip?: string | false | undefined
  /** Lets time pass for the store. Default: the virtual clock advances. */
  readonly advance?: ((clock: VirtualClock, ms: number) => Promise<void>) | undefined
}

export const bytes = (text: string) => new Uint8Array(Buffer.from(text))
export const text = (value: Uint8Array) => Buffer.from(value).toString()
export const put = (key: string, value: string, lease: LeaseId = 0): Op => ({ type: 'put', key, value: bytes(value), lease })
export const remove = (from: string, to?: string): Op => ({ type: 'delete', from, to })

/** One or more changes in one revision; returns it. */
export async function write(store: Store, ...success: Op[]): Promise<number> {
  return (await store.transact({ compare: [], success })).revision
}

const failsWith = (code: StoreError['code']) => (error: unknown) => (error as StoreError).code === code

/** Short form of a range's answer: key=value@create/mod/version. */
export async function show(store: Store, ...range: Parameters<Store['range']>): Promise<string> {
  const { kvs } = await store.range(...range)
  return kvs.map((kv) => `${kv.key}=${text(kv.value)}@${kv.createRevision}/${kv.modRevision}/${kv.version}`).join(' ')
}

/** Collects the events of a watch until `until` returns true. */
export async function collect(store: Store, options: StoreWatchOptions, until: (seen: readonly StoreEventBatch[]) => boolean): Promise<StoreEventBatch[]> {
  const seen: StoreEventBatch[] = []
  const stop = new AbortController()
  const onBatch = (batch: StoreEventBatch) => {
    seen.push(batch)
    if (until(seen)) stop.abort()
  }
  await store.watch(options, onBatch, stop.signal)
  return seen
}

const showEvents = (batches: readonly StoreEventBatch[]) =>
  batches
    .map(({ revision, events }) => {
      const shown = events.map(({ type, kv, previous }) => `${type} ${kv.key}=${text(kv.value)}${previous ? ` was ${text(previous.value)}` : ''}`)
      return `${revision}:${shown.join(',')}`
    })
    .join(' ')

/** Time that a test can let pass. */
interface StoreTime {
  now(): number
  advance(ms: number): Promise<void>
}

interface Check {
  (title: string, body: (store: Store, time: StoreTime) => Promise<void>): void
  readonly isRemote: boolean
}

/** Registers the suite's tests for one driver. */
export function describeStore({ name, open, isRemote = false, skip = false, advance = (clock, ms) => clock.advance(ms) }: StoreUnderTest): void {
  if (skip) {
    test(`${name}: the suite of stores`, { skip })
    return
  }
  const run = (title: string, body: Parameters<Check>[1]) => {
    test(`${name}: ${title}`, async () => {
      const clock = new VirtualClock()
      const store = await open(clock)
      try {
        await body(store, { now: () => clock.now(), advance: (ms) => advance(clock, ms) })
      } finally {
        await store.close()
      }
    })
  }
  const check: Check = Object.assign(run, { isRemote })
  describeReads(check)
  describeTransactions(check)
  describeWatches(check)
  describeLeases(check)
  for (const seed of [1, 2, 3])
    check(`ETC-06 a random history as the model has it, watched from random revisions (seed ${seed})`, (store) => checkRandomHistory(store, seed, isRemote))
}

function describeReads(check: Check): void {
  check('ETC-04 counts revisions and versions, and reads history', async (store) => {
    assert.equal(await store.latestRevision(), 1)
    assert.equal(await write(store, put('a', '1')), 2)
    assert.equal(await write(store, put('a', '2'), put('b', '1')), 3)
    assert.equal(await write(store, remove('a')), 4)
    assert.equal(await write(store, put('a', '3')), 5)
    const at = (revision?: number) => show(store, 'a', 'z', { revision })
    const now = 'a=3@5/5/1 b=1@3/3/1'
    assert.deepEqual(await Promise.all([at(2), at(3), at(4), at(5), at()]), ['a=1@2/2/1', 'a=2@2/3/2 b=1@3/3/1', 'b=1@3/3/1', now, now])
    assert.equal(await write(store, remove('nothing')), 5, 'a deletion of nothing takes no revision')
    await assert.rejects(store.range('a', undefined, { revision: 6 }), failsWith('futureRevision'))
  })

  check('ranges: limit, count, keys only, half open, no upper end', async (store) => {
    await write(store, ...['a/1', 'a/2', 'a/3', 'b/1'].map((key) => put(key, 'v')))
    const { kvs, count, more } = await store.range('a/', 'a0', { limit: 2, keysOnly: true })
    const shape = kvs.map((kv) => [kv.key, kv.value.length])
    assert.deepEqual(
      [shape, count, more],
      [
        [
          ['a/1', 0],
          ['a/2', 0],
        ],
        3,
        true,
      ],
    )
    assert.deepEqual(await store.range('a/', 'a0', { countOnly: true }), { kvs: [], count: 3, more: false, revision: 2 })
    assert.equal((await store.range('a/2', '\0')).count, 3)
    assert.equal((await store.range('a/1', 'a/1')).count, 0)
    await write(store, remove('a/', 'b'))
    assert.equal((await store.range('a/', 'a0')).count, 0)
    const old = await store.range('a/', 'a0', { limit: 1, revision: 2, keysOnly: true })
    assert.deepEqual([old.kvs.length, old.count, old.more, old.revision], [1, 3, true, 3])
  })

  check('ETC-12 compaction forgets what was replaced before, and says so', async (store) => {
    await write(store, put('a', '1'), put('b', '1'))
    await write(store, put('a', '2'))
    await write(store, remove('b'))
    await write(store, put('a', '3'))
    await store.compact(4)
    assert.equal(await show(store, 'a', 'z', { revision: 4 }), 'a=2@2/3/2')
    assert.equal(await show(store, 'a', 'z'), 'a=3@2/5/3')
    await assert.rejects(store.range('a', undefined, { revision: 3 }), failsWith('compacted'))
    await assert.rejects(store.compact(4), failsWith('compacted'))
    await assert.rejects(store.compact(6), failsWith('futureRevision'))
    const late = store.watch({ from: 'a', to: 'z', startRevision: 3 }, () => {}, new AbortController().signal)
    await assert.rejects(late, (error) => failsWith('compacted')(error) && (error as StoreError).revision === 4)
    // A deletion in the compacted revision itself is missing in etcd before 3.6: the watch must fail, and not continue without it.
    const lossy = () => store.watch({ from: 'a', to: 'z', startRevision: 4 }, () => {}, new AbortController().signal)
    if (check.isRemote) await assert.rejects(lossy, failsWith('compacted'))
    const [first, want] = check.isRemote ? [5, '5:put a=3'] : [4, '4:delete b= 5:put a=3']
    const seen = await collect(store, { from: 'a', to: 'z', startRevision: first }, (s) => s.at(-1)?.revision === 5)
    assert.equal(showEvents(seen), want)
    await store.compact(5)
    assert.equal(await show(store, 'a', 'z'), 'a=3@2/5/3')
  })

  check('a closed store refuses', async (store) => {
    const watching = store.watch({ from: 'a' }, () => {}, new AbortController().signal)
    const refused = assert.rejects(watching, failsWith('closed'))
    await store.close()
    await refused
    await assert.rejects(write(store, put('a', '1')), failsWith('closed'))
    await assert.rejects(store.range('a'), failsWith('closed'))
  })
}

function describeTransactions(check: Check): void {
  check('a put of the largest value is taken, of a larger one refused', async (store) => {
    const value = (length: number) => store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: new Uint8Array(length) }] })
    await value(store.maxValueBytes)
    await assert.rejects(value(store.maxValueBytes + 1), failsWith('tooLarge'))
    assert.equal((await store.range('a')).kvs[0]?.value.length, store.maxValueBytes)
  })

  check('ETC-05 creates only what is absent, and swaps only what is unchanged', async (store) => {
    const putIf = (mod: number, value: string) =>
      store.transact({ compare: [{ key: 'k', target: 'mod', op: '=', value: mod }], success: [put('k', value)], failure: [{ type: 'range', from: 'k' }] })
    // All at once: exactly one of each wins although none is durable when the next is decided.
    const created = await Promise.all(['a', 'b', 'c'].map((value) => putIf(0, value)))
    const winner = created.findIndex(({ succeeded }) => succeeded)
    if (!check.isRemote) assert.equal(winner, 0, 'the first caller wins')
    const found = created.map(({ responses: [response] }) => response?.type === 'range' && response.result.kvs.map((kv) => text(kv.value)).join())
    const value = ['a', 'b', 'c'][winner]
    assert.deepEqual(
      found,
      created.map((_, at) => at !== winner && value),
    )
    const swapped = await Promise.all([putIf(2, 'x'), putIf(2, 'y')])
    const outcomes = swapped.map(({ succeeded }) => succeeded)
    assert.deepEqual(check.isRemote ? outcomes.sort().reverse() : outcomes, [true, false])
    assert.deepEqual(
      swapped.map(({ revision }) => revision),
      [3, 3],
    )
  })

  check('compares versions, revisions, leases and values', async (store) => {
    await write(store, put('k', 'v'))
    await write(store, put('k', 'w'))
    const holds = async (target: 'version' | 'create' | 'mod' | 'lease' | 'value', op: '=' | '!=' | '<' | '>', value: number | Uint8Array, key = 'k') =>
      (await store.transact({ compare: [{ key, target, op, value }], success: [] })).succeeded
    assert.deepEqual(
      await Promise.all([holds('version', '=', 2), holds('create', '<', 3), holds('mod', '>', 3), holds('lease', '=', 0), holds('value', '>', bytes('v'))]),
      [true, true, false, true, true],
    )
    assert.deepEqual(await Promise.all([holds('version', '=', 0, 'none'), holds('value', '!=', bytes('x'), 'none')]), [true, false])
  })

  check('compares each key of a range, and an empty range as a key that does not exist', async (store) => {
    for (const key of ['r/a', 'r/b', 'r/b', 's']) await write(store, put(key, 'v'))
    await write(store, { type: 'delete', from: 'r/a' })
    await write(store, put('r/c', 'v'))
    const holds = async (key: string, to: string, target: 'version' | 'create' | 'value', op: '=' | '!=' | '<' | '>', value: number | Uint8Array) =>
      (await store.transact({ compare: [{ key, to, target, op, value }], success: [] })).succeeded
    const answers = await Promise.all([
      holds('r/', 'r0', 'version', '>', 0),
      holds('r/', 'r0', 'version', '=', 2),
      holds('r/', 'r0', 'value', '=', bytes('v')),
      holds('r/b', '\0', 'version', '<', 3),
      holds('r/a', 'r/b', 'create', '=', 0),
      holds('x', 'y', 'version', '=', 0),
      holds('x', 'y', 'value', '!=', bytes('v')),
    ])
    assert.deepEqual(answers, [true, false, true, true, true, true, false])
  })
}

function describeWatches(check: Check): void {
  check('a watch reports progress when only other keys change, and after it has caught up', async (store) => {
    await write(store, put('a', '1'))
    await write(store, put('z', '1'))
    const stop = new AbortController()
    const seen: string[] = []
    const onProgress = (revision: number) => void seen.push(`progress ${revision}`)
    const watching = store.watch({ from: 'a', to: 'b', startRevision: 2, onProgress }, ({ revision }) => void seen.push(`batch ${revision}`), stop.signal)
    // A read that asks for the newest revision waits for progress up to it; a local store reports it in the next turn by itself.
    const reaches = async (last: string) => {
      if (check.isRemote) {
        await store.latestRevision()
        await settle(() => seen.includes(last))
      } else await new Promise((resolve) => setImmediate(resolve))
      assert.equal(seen.at(-1), last)
    }
    await reaches('progress 3')
    await write(store, put('z', '2'))
    if (check.isRemote) await reaches('progress 4')
    await write(store, put('a', '2'))
    await reaches('batch 5')
    stop.abort()
    await watching
    assert.deepEqual(seen, ['batch 2', 'progress 3', 'progress 4', 'batch 5'])
  })

  check('ETC-06 watches from now, from the past and from the future, with previous values', async (store) => {
    const now = collect(store, { from: 'a', to: 'b', previous: true }, (s) => s.length === 3)
    await write(store, put('a1', '1'))
    await write(store, put('a1', '2'), put('a2', '1'), put('c', 'other'))
    await write(store, put('c', 'other'))
    await write(store, remove('a1'))
    const want = '2:put a1=1 3:put a1=2 was 1,put a2=1 5:delete a1= was 2'
    assert.equal(showEvents(await now), want)
    assert.equal(showEvents(await collect(store, { from: 'a', to: 'b', startRevision: 2, previous: true }, (s) => s.length === 3)), want)
    assert.equal(showEvents(await collect(store, { from: 'a1', startRevision: 3 }, (s) => s.length === 2)), '3:put a1=2 5:delete a1=')
    const future = collect(store, { from: 'a', to: 'b', startRevision: 7 }, (s) => s.length === 1)
    await write(store, put('a1', 'early'))
    await write(store, put('a1', 'wanted'))
    assert.equal(showEvents(await future), '7:put a1=wanted')
  })

  check('a watch that writes sees its own writes in order, and one failing watch harms no other', async (store) => {
    const answers: Promise<number>[] = []
    const seen = collect(store, { from: 'k', to: 'l' }, (s) => {
      if (s.length < 3) answers.push(write(store, put('k', `${s.length}`)))
      return s.length === 3
    })
    const broken = () => {
      throw new Error('broken watcher')
    }
    const failing = assert.rejects(store.watch({ from: 'k', to: 'l' }, broken, new AbortController().signal), /broken watcher/)
    await write(store, put('k', '0'))
    assert.equal(showEvents(await seen), '2:put k=0 3:put k=1 4:put k=2')
    await failing
    assert.deepEqual(await Promise.all(answers), [3, 4])
  })

  check('an acknowledged write is readable, and announced to every watch', async (store) => {
    let announced = 0
    const stop = new AbortController()
    const onBatch = (batch: StoreEventBatch) => {
      announced = batch.revision
    }
    const watching = store.watch({ from: 'k', to: 'l' }, onBatch, stop.signal)
    const revision = await write(store, put('k', '1'))
    if (check.isRemote) await settle(() => announced === revision)
    assert.deepEqual([announced, await store.latestRevision(), (await store.range('k')).count], [revision, revision, 1])
    stop.abort()
    await watching
  })
}

function describeLeases(check: Check): void {
  check('ETC-14 keys end with their lease; keeping it alive keeps them', async (store, clock) => {
    const lease = await store.grantLease(10)
    const other = await store.grantLease(100)
    await write(store, put('a', '1', lease), put('b', '1', lease), put('c', '1', lease))
    await write(store, put('b', '2', other), put('c', '2'))
    assert.equal((await store.range('a')).kvs[0]?.lease, lease)
    await clock.advance(9_000)
    assert.deepEqual(await store.keepLeaseAlive(lease), { ttlSeconds: 10 })
    await clock.advance(9_000)
    assert.equal((await store.range('a', 'z')).count, 3)
    const gone = collect(store, { from: 'a', to: 'z' }, (s) => s.length === 1)
    await clock.advance(1_001)
    assert.equal(showEvents(await gone), '4:delete a=')
    assert.equal(await show(store, 'a', 'z'), 'b=2@2/3/2 c=2@2/3/2')
    await store.revokeLease(other)
    assert.equal(await show(store, 'a', 'z'), 'c=2@2/3/2')
    const late = [store.keepLeaseAlive(lease), store.revokeLease(lease), write(store, put('x', '1', lease)), write(store, put('x', '1', BigInt(lease)))]
    await Promise.all(late.map((refused) => assert.rejects(refused, failsWith('leaseNotFound'))))
    assert.equal((await store.range('x')).count, 0)
  })
}
