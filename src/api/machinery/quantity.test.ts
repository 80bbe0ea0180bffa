import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  isQuantity,
  parseQuantity,
  QuantityError,
  quantityAsNumber,
  quantityMilliValue,
  quantityOf,
  quantityValue,
  subtractQuantities,
} from './quantity.ts'

const canonical: [string | number, string][] = [
  ['0', '0'],
  ['0Mi', '0'],
  ['-0', '0'],
  ['0.5', '500m'],
  ['1.5', '1500m'],
  ['100m', '100m'],
  ['1000m', '1'],
  ['1200m', '1200m'],
  ['2000', '2k'],
  ['1024Ki', '1Mi'],
  ['1.5Gi', '1536Mi'],
  ['0.5Mi', '512Ki'],
  ['512Mi', '512Mi'],
  ['1000Ki', '1000Ki'],
  ['500Mi', '500Mi'],
  ['1Ei', '1Ei'],
  ['9Ei', '9223372036854775807'],
  ['1e3', '1e3'],
  ['1E3', '1e3'],
  ['100e-3', '100e-3'],
  ['1E', '1E'],
  ['.5', '500m'],
  ['1.', '1'],
  ['+1', '1'],
  ['-1.5Gi', '-1536Mi'],
  ['0.1n', '1n'],
  ['0.0000000001', '1n'],
  ['12345678901234567890123', '12345678901234567890123'],
  ['0.001Ki', '1024m'],
  ['1023.9Ki', '1048474'],
  [4, '4'],
  [0.25, '250m'],
]
for (const [input, want] of canonical) test(`RES-01 ${input} is written ${want}`, () => assert.equal(canonicalQuantity(input), want))

const refused = ['', 'abc', '1.2.3', '1Kii', '1ki', '1mi', '1 Gi', '--1', '1e', 'Mi', '+', '1e1.5', '١']
for (const text of refused)
  test(`RES-01 ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => parseQuantity(text), QuantityError)
    assert.equal(isQuantity(text), false)
  })

test('RES-01 whole and milli values round away from zero', () => {
  assert.deepEqual(['1', '100m', '1.5Gi', '0.1m', '-100m', '1e3'].map(quantityMilliValue), [1000, 100, 1_610_612_736_000, 1, -100, 1_000_000])
  assert.deepEqual(['1', '100m', '1.5Gi', '2500m', '-100m', '1k'].map(quantityValue), [1, 1, 1_610_612_736, 3, -1, 1000])
  assert.equal(quantityAsNumber('250m'), 0.25)
})

test('RES-01 comparison is by value, whatever the format', () => {
  assert.equal(compareQuantities('1', '1000m'), 0)
  assert.equal(compareQuantities('1Gi', '1G'), 1)
  assert.equal(compareQuantities('-1', '0'), -1)
  assert.equal(compareQuantities('9007199254740993', '9007199254740992'), 1)
})

test('RES-01 sums are exact beyond 2^53 and keep the first format', () => {
  assert.equal(formatQuantity(addQuantities('9007199254740993', '1n')), '9007199254740993000000001n')
  assert.equal(formatQuantity(addQuantities('512Mi', '512Mi')), '1Gi')
  assert.equal(formatQuantity(addQuantities('0', '512Mi')), '512Mi')
  assert.equal(formatQuantity(subtractQuantities('1', '100m')), '900m')
  assert.equal(formatQuantity(quantityOf(1 << 20, 'BinarySI')), '1Mi')
})
