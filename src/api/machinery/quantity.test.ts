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
  ['1e1000000000', '10e999999999'],
  ['-1e1000000000', '-10e999999999'],
  ['1E30000000', '1e30000000'],
  ['1e-1000000000', '1e-9'],
  ['0e1000000000', '0'],
  ['1e2147483647', '10e2147483646'],
  [4, '4'],
  [0.25, '250m'],
]
for (const [input, want] of canonical) test(`RES-01 ${input} is written ${want}`, () => assert.equal(canonicalQuantity(input), want))

const nines = '9'.repeat(3_000_000)
const long: [string, string, string][] = [
  ['three million nines of Ki', `${nines}Ki`, '9223372036854775807'],
  ['three million zeros behind a one of Ei', `1${nines.replaceAll('9', '0')}Ei`, '9223372036854775807'],
  ['three million zeros behind a one', `1${nines.replaceAll('9', '0')}e0`, '1e3000000'],
  ['three million zeros before a one', `${nines.replaceAll('9', '0')}1`, '1'],
  ['three million zeros between the point and a one', `0.${nines.replaceAll('9', '0')}1`, '1n'],
  ['the same of Gi', `0.${nines.replaceAll('9', '0')}1Gi`, '1n'],
  ['three million nines behind the point', `1.${nines}`, '2'],
  ['the same of Mi', `1.${nines}Mi`, '2Mi'],
  ['a thousand digits', '7'.repeat(1000), '7'.repeat(1000)],
]
for (const [name, input, want] of long)
  test(`RES-01 ${name} are written in canonical form within 250 ms`, () => {
    const { value, cpuMs } = measured(() => canonicalQuantity(input))
    assert.equal(value, want)
    assert.ok(cpuMs < 250, `${cpuMs} ms`)
  })

const longAndRefused: [string, string][] = [
  ['three million nines', nines],
  ['three million nines and a letter', `${nines}x`],
  ['three million nines and an unfinished exponent', `${nines}e`],
  ['an exponent of three million digits', `1e${nines}`],
  ['an exponent beyond 32 bits', '1e2147483648'],
  ['three million points', '.'.repeat(3_000_000)],
  ['three million letters of suffixes', `1${'E'.repeat(3_000_000)}x`],
  ['a thousand digits and one', '7'.repeat(1001)],
]
for (const [name, input] of longAndRefused)
  test(`RES-01 ${name} are refused within 250 ms`, () => {
    const { value, cpuMs } = measured(() => isQuantity(input))
    assert.equal(value, false)
    assert.ok(cpuMs < 250, `${cpuMs} ms`)
  })

/** The smallest CPU time of three runs: other work of the machine only adds to it. */
function measured<T>(work: () => T): { value: T; cpuMs: number } {
  const runs = [1, 2, 3].map(() => {
    const before = process.cpuUsage()
    const value = work()
    const { user, system } = process.cpuUsage(before)
    return { value, cpuMs: (user + system) / 1000 }
  })
  return runs.reduce((best, run) => (run.cpuMs < best.cpuMs ? run : best))
}

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

test('RES-01 comparison and sums take no more time for large exponents', () => {
  const large = ['1e1000000000', '-1e1000000000', '1e-1000000000', '3e2147483647', '1e1000', '7'.repeat(1000), '1Ei', '1n', '0']
  const { cpuMs } = measured(() => {
    for (const a of large) for (const b of large) compareQuantities(formatQuantity(addQuantities(a, b)), formatQuantity(subtractQuantities(a, b)))
  })
  assert.ok(cpuMs < 250, `${cpuMs} ms`)
  assert.equal(compareQuantities('1e1000000000', '1e999999999'), 1)
  assert.equal(compareQuantities('-1e1000000000', '1n'), -1)
  assert.equal(compareQuantities('1e3000', '7'.repeat(1000)), 1)
  assert.equal(compareQuantities('7'.repeat(1000), '1e3000'), -1)
  assert.equal(compareQuantities(`${'7'.repeat(1000)}e2500`, '1e3499'), 1)
  assert.equal(formatQuantity(addQuantities('1n', '1e1000000000')), '10e999999999')
  assert.equal(formatQuantity(addQuantities('1Ki', '1e1000000000')), '10e999999999')
  assert.equal(formatQuantity(subtractQuantities('1', '1e1000000000')), '-10e999999999')
  assert.equal(formatQuantity(subtractQuantities('1e1000000000', '1e1000000000')), '0')
})

test('RES-01 whole and milli values stop at 64 bits, as numbers do not fit', () => {
  assert.deepEqual(['1e1000000000', '-1e1000000000', '1e30', '1e1000000000'].map(quantityValue), [2 ** 63, -(2 ** 63), 2 ** 63, 2 ** 63])
  assert.equal(quantityMilliValue('1e1000000000'), 2 ** 63)
  assert.equal(quantityAsNumber('1e1000000000'), Number.POSITIVE_INFINITY)
  assert.equal(quantityAsNumber(subtractQuantities('1e1000000000', '1e1000000000')), 0)
})

test('RES-01 sums, differences and comparisons agree with whole numbers of nano, 3,000 pairs', () => {
  const random = chance(17)
  const value = (): [string, bigint] => {
    const digits = String(Math.floor(random() * 10 ** Math.ceil(random() * 15)))
    const [suffix, nano] = suffixes[Math.floor(random() * suffixes.length)] as [string, bigint]
    const sign = random() < 0.3 ? '-' : ''
    return [`${sign}${digits}${suffix}`, (sign ? -1n : 1n) * BigInt(digits) * nano]
  }
  for (let round = 0; round < 3000; round++) {
    const [a, x] = value()
    const [b, y] = value()
    const note = `${a} and ${b}`
    assert.equal(compareQuantities(a, b), x < y ? -1 : x > y ? 1 : 0, note)
    assert.equal(nanoOf(formatQuantity(addQuantities(a, b))), x + y, note)
    assert.equal(nanoOf(formatQuantity(subtractQuantities(a, b))), x - y, note)
    assert.equal(canonicalQuantity(canonicalQuantity(a)), canonicalQuantity(a), note)
  }
})

const suffixes: [string, bigint][] = [
  ...['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'].map((suffix, at): [string, bigint] => [suffix, 10n ** BigInt(3 * at)]),
  ...[-9, -7, -2, 1, 5, 12].map((exponent): [string, bigint] => [`e${exponent}`, 10n ** BigInt(exponent + 9)]),
]

/** Reads canonical texts of decimal quantities without the code under test. */
function nanoOf(text: string): bigint {
  const [, digits = '', suffix = ''] = /^(-?\d+)(.*)$/.exec(text) ?? []
  const known = suffixes.find(([name]) => name === suffix)
  return BigInt(digits) * (known ? known[1] : 10n ** BigInt(Number(suffix.slice(1)) + 9))
}

function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}
