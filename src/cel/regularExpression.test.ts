import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patternSize } from './patternSize.ts'
import { compileRegularExpression, withBoundedPatterns } from './regularExpression.ts'

const sizes: readonly (readonly [pattern: string, size: number])[] = [
  ['', 0],
  ['abc', 3],
  ['a*', 2],
  ['a{3}', 3],
  ['a{2,5}', 5],
  ['a{2,}', 3],
  ['a{0}', 1],
  ['(a?){50}', 150],
  ['((ab){10}c){10}', 320],
  ['[a-z]{63}', 63],
  ['[]a]{2}', 2],
  ['[^\\]]{2}', 2],
  ['\\d{4}-\\d{2}', 7],
  ['\\pL{2}', 100],
  ['\\p{Greek}a', 51],
  ['a{,3}', 5],
  ['(', 1],
]
for (const [pattern, size] of sizes) test(`CRD-02 the size of ${pattern || 'an empty pattern'} is ${size}`, () => assert.equal(patternSize(pattern), size))

const label = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'

test('CRD-02 the pattern of a domain name compiles', () => {
  assert.ok(compileRegularExpression(`^(${label}\\.){1,15}${label}$`).matcher('a.example.com').find())
})

test('CRD-02 a pattern of many counted repetitions is refused before it is compiled', () => {
  assert.throws(() => compileRegularExpression('(a?){50}'.repeat(800)), { message: 'error parsing regexp: expression too large' })
})

test('CRD-02 one evaluation compiles a bounded amount of patterns', () => {
  const compileMany = () => withBoundedPatterns(() => Array.from({ length: 20 }, (_, index) => compileRegularExpression(`x${index}a{1000}`)))
  assert.throws(compileMany, { message: 'error parsing regexp: expression too large' })
  assert.ok(compileRegularExpression('b{1000}'))
})
