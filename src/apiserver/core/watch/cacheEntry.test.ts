import assert from 'node:assert/strict'
import test from 'node:test'
import { CacheEntry, encodeStored } from './cacheEntry.ts'

const cases = [
  { name: 'canonical', value: '{"apiVersion":"v1","kind":"A","metadata":{"name":"x"},"data":{}}' },
  { name: 'empty metadata', value: '{"apiVersion":"v1","kind":"A","metadata":{}}' },
  { name: 'another order of fields', value: '{"kind":"A","apiVersion":"v1","metadata":{"name":"x"}}' },
  { name: 'a decoy before the metadata', value: '{"apiVersion":"v1","data":{"metadata":{"a":"b"}},"kind":"A","metadata":{"name":"x"}}' },
  { name: 'a decoy inside a string', value: '{"apiVersion":"v1","kind":"A","text":"\\"metadata\\":{","metadata":{"name":"x"}}' },
]

for (const { name, value } of cases) {
  test(`bytes carry the resourceVersion and equal the object: ${name}`, () => {
    const wanted = JSON.parse(value)
    wanted.metadata.resourceVersion = '17'
    const entry = CacheEntry.stored('x', Buffer.from(value), 17, 3)
    assert.deepEqual(JSON.parse(Buffer.from(entry.bytes).toString()), wanted)
    assert.deepEqual(entry.object, wanted)
    assert.deepEqual(JSON.parse(Buffer.from(entry.at(20).bytes).toString()).metadata.resourceVersion, '20')
    assert.ok(Object.isFrozen(entry.object.metadata))
  })
}

test('stored bytes have no resourceVersion and begin with apiVersion, kind and metadata', () => {
  const bytes = encodeStored({ kind: 'A', metadata: { name: 'x', resourceVersion: '3' }, apiVersion: 'v1', spec: { a: 1 } } as never)
  assert.equal(bytes.toString(), '{"apiVersion":"v1","kind":"A","metadata":{"name":"x"},"spec":{"a":1}}')
})
