import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bareMap, emptyMap, ownValue } from './bareMap.ts'

const inherited = Object.getOwnPropertyNames(Object.prototype)

test('API-11 a bare map has no key but its own', () => {
  const given = JSON.parse('{"__proto__":{"a":1},"constructor":2}')
  for (const [name, map] of [
    ['empty', emptyMap()],
    ['made', bareMap({ x: 1 } as Record<string, unknown>)],
  ] as const) {
    for (const key of inherited) assert.equal(map[key], undefined, `${name} ${key}`)
    for (const key of inherited) map[key] = key
    for (const key of inherited) assert.equal(map[key], key)
    assert.deepEqual(
      Object.keys(map)
        .filter((key) => key !== 'x')
        .sort(),
      [...inherited].sort(),
    )
  }
  assert.equal(JSON.stringify(bareMap(given)), '{"__proto__":{"a":1},"constructor":2}')
  assert.equal(bareMap(given).a, undefined)
  assert.equal(JSON.stringify({ ...bareMap(given) }), '{"__proto__":{"a":1},"constructor":2}')
})

test('API-11 an own value is found, an inherited one is not', () => {
  for (const key of inherited) {
    assert.equal(ownValue({}, key), undefined)
    assert.equal(ownValue(JSON.parse(`{"${key}":"a"}`), key), 'a')
    assert.equal(ownValue(undefined, key), undefined)
  }
})
