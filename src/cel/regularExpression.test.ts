import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patternSize } from './patternSize.ts'
import { compileRegularExpression, patternCompiler, withBoundedPatterns } from './regularExpression.ts'

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

test('CRD-02 one evaluation uses a bounded amount of patterns, and a repeated evaluation has the same result', () => {
  const sites = Array.from({ length: 20 }, patternCompiler)
  const evaluate = () => withBoundedPatterns(() => sites.map((compile, index) => compile(`x${index}a{1000}`)))
  for (const _ of [1, 2, 3]) assert.throws(evaluate, { message: 'error parsing regexp: expression too large' })
  const [compile = patternCompiler()] = sites
  withBoundedPatterns(() => Array.from({ length: 100 }, () => compile('b{1000}')))
})
