/** CRD-02: values: equality and order across kinds, keys of maps, JSON in and out, times, texts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { member, overload } from './declarations.ts'
import { compare, compareStrings, equal } from './equality.ts'
import { dynamicValue, toJson } from './json.ts'
import { codePointCount, formatDouble } from './text.ts'
import { addDuration, civilTime, formatDuration, formatTimestamp, parseDuration, parseTimestamp, zoneReader } from './time.ts'
import { formatType } from './types.ts'
import type { Value } from './values.ts'
import { ArrayList, Double, Duration, EvaluationError, HashMap, int, maxInt, Optional, Timestamp, TypeValue, Uint } from './values.ts'

const list = (...items: Value[]) => new ArrayList(items)
const map = (...entries: [Value, Value][]): HashMap => {
  const result = new HashMap()
  for (const [key, value] of entries) result.set(key, value)
  return result
}

const equalities: [name: string, a: Value, b: Value, wanted: boolean][] = [
  ['int and double', 1, new Double(1), true],
  ['int and uint', 2 ** 53 - 1, new Uint(2n ** 53n - 1n), true],
  ['large ints', maxInt, maxInt, true],
  ['a large int rounds next to a double', maxInt, new Double(2 ** 63), true],
  ['uint and a fraction', new Uint(1n), new Double(1.5), false],
  ['NaN', new Double(Number.NaN), new Double(Number.NaN), false],
  ['int and text', 1, '1', false],
  ['null', null, null, true],
  ['null and false', null, false, false],
  ['bytes', Uint8Array.of(1, 2), Uint8Array.of(1, 2), true],
  ['bytes of other length', Uint8Array.of(1), Uint8Array.of(1, 2), false],
  ['lists', list(1, list('a')), list(new Double(1), list('a')), true],
  ['lists of other length', list(1), list(1, 1), false],
  ['maps in another order', map(['a', 1], ['b', 2]), map(['b', 2], ['a', 1]), true],
  ['maps with another value', map(['a', 1]), map(['a', 2]), false],
  ['timestamps', new Timestamp(1, 2), new Timestamp(1, 2), true],
  ['durations', new Duration(1n), new Duration(2n), false],
  ['types', new TypeValue('int'), new TypeValue('int'), true],
  ['optionals', new Optional(1), new Optional(new Double(1)), true],
  ['an empty optional', Optional.none, new Optional(1), false],
]
for (const [name, a, b, wanted] of equalities) {
  test(`CRD-02: equality: ${name}`, () => {
    assert.equal(equal(a, b), wanted)
    assert.equal(equal(b, a), wanted)
  })
}

test('CRD-02: order', () => {
  const sign = (a: Value, b: Value): number => Math.sign(compare(a, b)!)
  assert.deepEqual([sign(1, new Uint(2n)), sign(new Double(1.5), 1), sign(false, true), sign('a', 'b')], [-1, 1, -1, -1])
  assert.deepEqual(
    [sign(new Timestamp(1, 0), new Timestamp(0, 9)), sign(new Duration(-1n), new Duration(1n)), sign(Uint8Array.of(1), Uint8Array.of(1, 0))],
    [1, -1, -1],
  )
  assert.equal(compare(1, 'a'), undefined)
  assert.equal(compare(null, null), undefined)
  assert.throws(() => compare(new Double(Number.NaN), 1), EvaluationError)
})

test('CRD-02: strings are ordered by code points, as their UTF-8 is', () => {
  const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) =>
      assert.equal(Math.sign(compareStrings(a, b)), Buffer.compare(utf8(a), utf8(b))),
    ),
    { seed: 1 },
  )
  assert.ok(compareStrings('\uffff', '\u{1f600}') < 0)
})

test('CRD-02: ints are numbers while they are safe, and refuse more than 64 bits', () => {
  assert.equal(int(2n ** 53n - 1n), 2 ** 53 - 1)
  assert.equal(int(2n ** 53n), 2n ** 53n)
  assert.throws(() => int(2n ** 63n), { message: 'integer overflow' })
})

test('CRD-02: keys of maps are found across number types, and only where a key can be', () => {
  const numbers = map([1, 'a'], [true, 'b'], ['1', 'c'])
  assert.deepEqual(
    [numbers.get(1), numbers.get(new Uint(1n)), numbers.get(new Double(1)), numbers.get(true), numbers.get('1'), numbers.size],
    ['a', 'a', 'a', 'b', 'c', 3],
  )
  assert.equal(numbers.get(new Double(1.5)), undefined)
  assert.equal(numbers.get(null), undefined)
  assert.throws(() => map([list(), 1]), { message: 'unsupported key type: list' })
})

test('CRD-02: JSON comes back as it went in', () => {
  const json = fc.jsonValue({ noUnicodeString: false } as fc.JsonSharedConstraints)
  fc.assert(
    fc.property(json, (value) =>
      assert.deepEqual(toJson(dynamicValue(value)), JSON.parse(JSON.stringify(value, (_, part) => (Object.is(part, -0) ? 0 : part)))),
    ),
    { seed: 1, examples: [[{ a: [1, 2.5, null, 'x', { b: true }] }]] },
  )
})

test('CRD-02: values that JSON lacks', () => {
  assert.deepEqual(
    [
      Uint8Array.of(104, 105),
      new Timestamp(0, 500_000_000),
      new Duration(90_000_000_000n),
      new Uint(7n),
      map([1, 'a']),
      2n ** 60n,
      dynamicValue(2n ** 60n),
    ].map(toJson),
    ['aGk=', '1970-01-01T00:00:00.5Z', '90s', 7, { 1: 'a' }, 2n ** 60n, 2n ** 60n],
  )
  assert.throws(() => toJson(new TypeValue('int')), { message: 'type type has no JSON form' })
})

test('CRD-02: timestamps', () => {
  const at = (text: string): Timestamp => parseTimestamp(text)!
  assert.deepEqual(at('2009-02-13T23:31:30.123456789Z'), new Timestamp(1_234_567_890, 123_456_789))
  assert.equal(formatTimestamp(at('2009-02-14T00:31:30.5+01:00')), '2009-02-13T23:31:30.5Z')
  assert.deepEqual(['yesterday', '2009-02-30T00:00:00Z', '2009-02-13 23:31:30Z'].map(parseTimestamp), [undefined, undefined, undefined])
  assert.throws(() => parseTimestamp('0000-01-01T00:00:00Z'), { message: 'timestamp overflow' })
  assert.throws(() => addDuration(at('9999-12-31T23:59:59Z'), new Duration(10n ** 9n)), { message: 'timestamp overflow' })
  assert.equal(formatTimestamp(addDuration(at('2000-01-01T00:00:00Z'), new Duration(-1n))), '1999-12-31T23:59:59.999999999Z')
})

test('CRD-02: durations', () => {
  const nanos = (text: string): bigint | undefined => parseDuration(text)?.nanos
  assert.deepEqual(['1h15m', '-1.5s', '100us', '2µs', '+3ns', '0', '.5m'].map(nanos), [
    4_500_000_000_000n,
    -1_500_000_000n,
    100_000n,
    2000n,
    3n,
    0n,
    30_000_000_000n,
  ])
  assert.deepEqual(['', '1', '1d', 's', '-', '1h ', '9223372037s'].map(nanos), new Array(7).fill(undefined))
  assert.deepEqual(
    [1n, -1_500_000_000n, 3_600_000_000_000n].map((value) => formatDuration(new Duration(value))),
    ['0.000000001s', '-1.5s', '3600s'],
  )
})

test('CRD-02: the parts of a time, in zones too', () => {
  const moment = parseTimestamp('2024-07-01T23:30:15.250Z')!
  assert.deepEqual(civilTime(moment), { year: 2024, month: 6, dayOfMonth: 0, dayOfYear: 182, dayOfWeek: 1, hours: 23, minutes: 30, seconds: 15, millis: 250 })
  const read = zoneReader()
  const hour = (zone: string): string => `${read(moment, zone).dayOfMonth} ${read(moment, zone).hours}:${read(moment, zone).minutes}`
  assert.deepEqual(['Europe/Berlin', '-02:30', '10:00', 'UTC', ''].map(hour), ['1 1:30', '0 21:0', '1 9:30', '0 23:30', '0 23:30'])
  assert.throws(() => read(moment, 'Nowhere/At/All'), { message: 'unknown time zone Nowhere/At/All' })
  assert.throws(() => read(moment, '+0230'), { message: 'unknown time zone +0230' })
})

test('CRD-02: texts', () => {
  assert.deepEqual(['', 'abc', 'é😀', '\ud83d'].map(codePointCount), [0, 3, 2, 1])
  assert.deepEqual([1, 0.1, 1e6, 123456.5, 1e-5, -2.5e21, 0, Number.NaN, -Infinity].map(formatDouble), [
    '1',
    '0.1',
    '1e+06',
    '123456.5',
    '1e-05',
    '-2.5e+21',
    '0',
    'NaN',
    '-Inf',
  ])
})

test('CRD-02: signatures of functions', () => {
  const { parameters, result, typeParameters, member: isMember } = member('id', '(list(T), map(string, net.IP)) -> optional(type(T))', () => null)
  assert.deepEqual([...parameters, result].map(formatType), ['list(T)', 'map(string, net.IP)', 'optional_type(type(T))'])
  assert.deepEqual([typeParameters, isMember], [['T'], true])
  assert.throws(() => overload('id', '(string -> bool', () => null), /bad signature/)
  assert.throws(() => overload('id', '(string) -> bool bool', () => null), /bad signature/)
})
