import assert from 'node:assert/strict'
import test from 'node:test'
import { seededRandom } from '#base/random'
import { formatIpv4, Pool, parseIpv4, rangeOfCidr } from './addresses.ts'

test('a pool gives every number once, the static band last, and takes back what is released', () => {
  const pool = new Pool({ first: 100, size: 64 }, seededRandom(5))
  const given = Array.from({ length: 64 }, () => pool.next())
  assert.equal(new Set(given).size, 64)
  assert.ok(given.slice(0, 48).every((value) => (value ?? 0) >= 116))
  assert.equal(pool.next(), undefined)
  pool.release(130)
  assert.equal(pool.next(), 130)
})

test('what is in use or reserved is taken, what lies beyond is outside', () => {
  const pool = new Pool({ first: 10, size: 20 }, seededRandom(5))
  pool.use(12)
  pool.use(12)
  pool.reserve(13)
  assert.deepEqual(
    [9, 10, 12, 13, 29, 30].map((value) => pool.check(value)),
    ['outside', 'free', 'taken', 'taken', 'free', 'outside'],
  )
  pool.free(12)
  assert.equal(pool.check(12), 'taken')
  pool.free(12)
  assert.equal(pool.check(12), 'free')
})

test('addresses and ranges', () => {
  assert.deepEqual(rangeOfCidr('10.96.0.0/16'), { first: (10 * 256 + 96) * 65536 + 1, size: 65534 })
  assert.equal(formatIpv4(rangeOfCidr('192.168.7.9/24').first), '192.168.7.1')
  assert.deepEqual(['10.0.0.1', '10.0.0.256', 'x', '::1', ''].map(parseIpv4), [167772161, undefined, undefined, undefined, undefined])
  assert.throws(() => rangeOfCidr('10.0.0.0'), /no usable service CIDR/)
})
