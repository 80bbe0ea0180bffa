import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyMapping, rangeTest } from './operations.ts'

const mapped: { prefix: string; key: string; want: string }[] = [
  { prefix: '/registry', key: '/registry/pods/a/b', want: '/registry/pods/a/b' },
  { prefix: 'test1/', key: '/registry/pods/a/b', want: '/test1/pods/a/b' },
  { prefix: '/test1', key: '/registry0', want: '/test10' },
  { prefix: '/test1', key: '/registry0/a', want: '/registry0/a' },
  { prefix: '/test1', key: '/registryfoo/a', want: '/registryfoo/a' },
  { prefix: '/', key: '/registry/pods/a/b', want: '/pods/a/b' },
  { prefix: '/a/b', key: '/registry/pods/a/b', want: '/a/b/pods/a/b' },
]
for (const { prefix, key, want } of mapped) {
  test(`ETC-19 the key ${key} stands at ${want}, the prefix is ${prefix}`, () => {
    const keys = keyMapping(prefix)
    assert.equal(keys.toEtcd(key).toString(), want)
    assert.equal(keys.fromEtcd(Buffer.from(want)), key)
  })
}

const ranges: { prefix: string; from: string; to?: string; key: string; want: boolean }[] = [
  { prefix: '/test1', from: '/registry/', to: '/registry0', key: '/test1/pods/a', want: true },
  { prefix: '/test1', from: '/registry/', to: '/registry0', key: '/test10/pods/a', want: false },
  { prefix: '/test1', from: '/registry/', to: '/registry0', key: '/registry/pods/a', want: false },
  { prefix: '/test1', from: '/registry/a', key: '/test1/a', want: true },
  { prefix: '/test1', from: '/registry/a', key: '/registry/a', want: false },
  { prefix: '/registry', from: '/registry/', to: '/registry0', key: '/registry/a', want: true },
  { prefix: '/registry', from: '/registry/', to: '/registry0', key: '/registry0', want: false },
  { prefix: '/registry', from: 'b', to: '\0', key: 'c', want: true },
  { prefix: '/registry', from: 'b', to: '\0', key: 'a', want: false },
]
for (const { prefix, from, to, key, want } of ranges) {
  test(`ETC-19 the key ${key} is ${want ? '' : 'not '}in the range ${from}..${to === '\0' ? '' : (to ?? 'itself')}, the prefix is ${prefix}`, () =>
    assert.equal(rangeTest(keyMapping(prefix), from, to)(Buffer.from(key)), want))
}
