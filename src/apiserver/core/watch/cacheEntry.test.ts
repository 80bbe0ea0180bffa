import assert from 'node:assert/strict'
import test from 'node:test'
import { CacheEntry, encodeStored } from './cacheEntry.ts'
import { UnreadableValue } from './unreadableValue.ts'

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
    const later = { ...wanted, metadata: { ...wanted.metadata, resourceVersion: '1234567890123' } }
    for (const source of [entry, CacheEntry.stored('x', Buffer.from(value), 17, 3)]) {
      const deleted = source.at(1234567890123)
      assert.deepEqual(JSON.parse(Buffer.from(deleted.bytes).toString()), later)
      assert.equal(
        Buffer.from(deleted.bytes)
          .toString()
          .match(/"resourceVersion"/g)?.length,
        1,
      )
      assert.deepEqual(deleted.object, later)
    }
    assert.ok(Object.isFrozen(entry.object.metadata))
  })
}

test('stored bytes have no resourceVersion and begin with apiVersion, kind and metadata', () => {
  const bytes = encodeStored({ kind: 'A', metadata: { name: 'x', resourceVersion: '3' }, apiVersion: 'v1', spec: { a: 1 } } as never)
  assert.equal(bytes.toString(), '{"apiVersion":"v1","kind":"A","metadata":{"name":"x"},"spec":{"a":1}}')
})

test('API-16 a stored long integer is a double where its type is float64, exact in a free-form part, and unreadable in an integer field', () => {
  const read = (text: string) => CacheEntry.read('x', Buffer.from(text), 17, 3)
  const spec = '{"versions":[{"schema":{"openAPIV3Schema":{"maximum":4611686018427388000,"default":9007199254740993}}}]}'
  const definition = read(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x"},"spec":${spec}}`)
  assert.ok(definition instanceof CacheEntry)
  assert.deepEqual((definition.object as unknown as { spec: unknown }).spec, {
    versions: [{ schema: { openAPIV3Schema: { maximum: 2 ** 62, default: 9007199254740993n } } }],
  })
  const pod = read('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"tolerations":[{"tolerationSeconds":9223372036854775807}]}}')
  assert.ok(pod instanceof UnreadableValue)
  assert.equal(pod.error.message, 'the integer 9223372036854775807 of spec.tolerations[0].tolerationSeconds is out of range')
  const custom = read('{"apiVersion":"example.com/v1","kind":"Any","metadata":{"name":"x"},"spec":{"n":9223372036854775807}}')
  assert.ok(custom instanceof CacheEntry)
  assert.deepEqual((custom.object as unknown as { spec: unknown }).spec, { n: 9223372036854775807n })
})

test('X18 an entry whose object is not kept is the same object when it is asked for, and refuses the values that others refuse', () => {
  const head = '{"apiVersion":"v1","kind":"Pod","metadata":'
  const good = Buffer.from(`${head}{"name":"x","labels":null},"spec":{"containers":null}}`)
  const [kept, late] = (['small', 'none'] as const).map((keeps) => CacheEntry.read('x', good, 17, 3, keeps))
  assert.ok(kept instanceof CacheEntry && late instanceof CacheEntry)
  assert.deepEqual([late.object, late.bytes], [kept.object, kept.bytes])
  assert.ok(Object.isFrozen(late.object))
  const long = '"spec":{"tolerations":[{"tolerationSeconds":9223372036854775807}]}}'
  for (const text of [`${head}{"name":"x"},`, '[]', '{}', `${head}{}}`, `${head}{"name":"x","labels":{"a":1}}}`, `${head}{"name":"x"},${long}`]) {
    const found = (['small', 'none'] as const).map((keeps) => CacheEntry.read('x', Buffer.from(text), 17, 3, keeps))
    assert.ok(found[0] instanceof UnreadableValue && found[1] instanceof UnreadableValue, text)
    assert.equal(found[1].error.message, found[0].error.message)
    const failure = { message: found[0].failureOf('x').message }
    assert.throws(() => CacheEntry.late('x', Buffer.from(text), 17, 3).object, failure)
    assert.throws(() => CacheEntry.late('x', Buffer.from(text), 17, 3).bytes, failure)
    assert.throws(() => CacheEntry.late('x', Buffer.from(text), 17, 3).at(18).object, failure)
  }
})

test('X18 an entry that is checked late has the object and the bytes of one that was checked at once', () => {
  const value = Buffer.from('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":null}}')
  const checked = CacheEntry.read('x', value, 17, 3)
  assert.ok(checked instanceof CacheEntry)
  const [one, other] = [CacheEntry.late('x', value, 17, 3), CacheEntry.late('x', value, 17, 3)]
  assert.deepEqual([one.object, one.bytes], [checked.object, checked.bytes])
  assert.deepEqual([other.bytes, other.object], [checked.bytes, checked.object])
  assert.equal(one.storedBytes, value.length)
})
