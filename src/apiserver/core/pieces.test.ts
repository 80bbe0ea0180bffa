import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf, chunksOf, lengthOf } from './pieces.ts'

const bytes = (...texts: string[]) => texts.map((text) => Buffer.from(text))
const texts = (chunks: Iterable<Uint8Array>) => [...chunks].map((chunk) => Buffer.from(chunk).toString())

for (const { name, pieces, want } of [
  { name: 'nothing', pieces: [], want: [] },
  { name: 'pieces that fit share a chunk', pieces: ['a', 'b', 'cd'], want: ['abcd'] },
  { name: 'a chunk ends where the next piece does not fit', pieces: ['abc', 'de', 'f'], want: ['abc', 'def'] },
  { name: 'a large piece goes alone', pieces: ['a', 'bcdef', 'g'], want: ['a', 'bcdef', 'g'] },
  { name: 'a large piece first', pieces: ['abcdefgh', 'i'], want: ['abcdefgh', 'i'] },
  { name: 'empty pieces leave no trace', pieces: ['', 'a', ''], want: ['a'] },
]) {
  test(`chunks of four bytes: ${name}`, () => assert.deepEqual(texts(chunksOf(bytes(...pieces), 4)), want))
}

test('a small body is one buffer, a large one keeps its bytes in bounded chunks', () => {
  const small = bytes('a', 'bc')
  assert.deepEqual(Buffer.from(bodyOf(small, lengthOf(small)) as Uint8Array).toString(), 'abc')
  const large = Array.from({ length: 3_000 }, (_, i) => Buffer.alloc(1_000, i % 251))
  const chunks = [...(bodyOf(large, lengthOf(large)) as Iterable<Uint8Array>)]
  assert.ok(chunks.length > 1 && chunks.every((chunk) => chunk.length <= 512 * 1024))
  assert.ok(Buffer.concat(chunks).equals(Buffer.concat(large)))
})
