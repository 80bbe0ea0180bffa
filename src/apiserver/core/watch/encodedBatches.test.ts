import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EncodedBatches } from './encodedBatches.ts'
import type { Bookmark } from './watchSession.ts'

const event = (revision: number): Bookmark => ({ type: 'BOOKMARK', revision, initialEventsEnd: false })
const [a, b, c, d] = [event(1), event(2), event(3), event(4)]
const text = (item: unknown) => Buffer.from(String((item as Bookmark).revision))

test('API-09 the same events in a row are put together once for all watchers', () => {
  const batches = new EncodedBatches<Bookmark>()
  let encoded = 0
  const encode = (item: unknown) => {
    encoded++
    return text(item)
  }
  const first = batches.bytes([a, b, c], 'json', encode)
  assert.equal(batches.bytes([a, b, c], 'json', encode), first)
  assert.deepEqual([first.toString(), encoded], ['123', 3])
})

for (const { name, items, form, want } of [
  { name: 'a watcher that is behind gets its own', items: [a, b, c, d], form: 'json', want: '1234' },
  { name: 'one that has seen some already', items: [b, c], form: 'json', want: '23' },
  { name: 'the same ends with something else between', items: [a, d, c], form: 'json', want: '143' },
  { name: 'another form', items: [a, b, c], form: 'yaml', want: '123' },
  { name: 'a single event', items: [c], form: 'json', want: '3' },
]) {
  test(`API-09 batches: ${name}`, () => {
    const batches = new EncodedBatches<Bookmark>()
    const shared = batches.bytes([a, b, c], 'json', text)
    const own = batches.bytes(items, form, text)
    assert.notEqual(own, shared)
    assert.equal(Buffer.from(own).toString(), want)
  })
}
