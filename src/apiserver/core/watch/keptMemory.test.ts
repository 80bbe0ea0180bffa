import assert from 'node:assert/strict'
import test from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import { CacheEntry, encodeStored } from './cacheEntry.ts'
import { WatchedEvent } from './watchEvent.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const count = 100_000
/** Short buffers that a request makes and drops, between those that are kept. */
const perRequest = 6

const eventOf = (index: number) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: `event-${index}`, namespace: 'default', uid: '5a0ee5a8-94c1-4f2c-a9be-4e0bd4ec6b86' },
  reason: 'Started',
  message: 'x'.repeat(200),
})

/** Bytes of array buffers that `keep` leaves behind, as a multiple of the bytes that it returns. */
async function overhead(keep: (index: number) => readonly Uint8Array[] | Promise<readonly Uint8Array[]>): Promise<number> {
  const before = await arrayBufferBytes()
  const kept: (readonly Uint8Array[])[] = []
  for (let index = 0; index < count; index++) {
    kept.push(await keep(index))
    for (let i = 0; i < perRequest; i++) Buffer.from('a short-lived buffer, such as a header or a body '.repeat(10))
  }
  const growth = (await arrayBufferBytes()) - before
  return growth / kept.flat().reduce((sum, { byteLength }) => sum + byteLength, 0)
}

/** Array buffers are freed after the collection, in turns of their own. */
async function arrayBufferBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().arrayBuffers
}

const cases: readonly { readonly name: string; readonly keep: () => Parameters<typeof overhead>[0] }[] = [
  { name: 'stored values', keep: () => (index) => [encodeStored(eventOf(index))] },
  {
    name: 'values whose versions were read once',
    keep: () => {
      const entries: CacheEntry[] = []
      return (index) => {
        const value = encodeStored(eventOf(index))
        const entry = CacheEntry.stored(`default/event-${index}`, value, index, index)
        void entry.bytes
        entries.push(entry)
        return [value]
      }
    },
  },
  {
    name: 'values with the resourceVersion',
    keep: () => (index) => {
      const entry = CacheEntry.stored(`default/event-${index}`, encodeStored(eventOf(index)), index, index)
      // The first read keeps nothing.
      void entry.bytes
      return [entry.bytes]
    },
  },
  {
    name: 'encoded watch events',
    keep: () => (index) => {
      const entry = CacheEntry.stored(`default/event-${index}`, encodeStored(eventOf(index)), index, index)
      const event = new WatchedEvent('ADDED', entry, index)
      return [event.encoded({ key: 'json' }), event.encodedAs('yaml', () => Buffer.from(`message: ${index}`.repeat(20))), entry.bytes]
    },
  },
  {
    name: 'values in the memory store',
    keep: () => {
      const store = createMemoryStore({ clock: new VirtualClock('2026-01-01T00:00:00Z') })
      return async (index) => {
        const key = `/registry/events/default/event-${index}`
        await store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from(JSON.stringify(eventOf(index))) }] })
        return (await store.range(key)).kvs.map(({ value }) => value)
      }
    },
  },
]

for (const { name, keep } of cases) {
  test(`ETC-11 100,000 ${name} take no more memory than their bytes`, async () => {
    const ratio = await overhead(keep())
    assert.ok(ratio < 1.1, `${ratio.toFixed(2)} times`)
  })
}
