import assert from 'node:assert/strict'
import test from 'node:test'
import { seededRandom } from './random.ts'
import { SortedMap } from './sortedMap.ts'

test('behaves as a map with sorted keys, over many random operations', () => {
  const random = seededRandom(11)
  const map = new SortedMap<number>()
  const model = new Map<string, number>()
  for (let step = 0; step < 6000; step++) {
    const key = `k${String(random.int(2000)).padStart(4, '0')}`
    if (random.int(3) === 0) assert.equal(map.delete(key), model.get(key))
    else assert.equal(map.set(key, step), model.get(key))
    if (map.get(key) === undefined) model.delete(key)
    else model.set(key, step)
  }
  const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1))
  const between = sorted.filter(([key]) => key >= 'k0500' && key < 'k1500').map(([, value]) => value)
  assert.equal(map.size, model.size)
  assert.deepEqual(
    [...map.range()],
    sorted.map(([, value]) => value),
  )
  assert.deepEqual([...map.range('k0500', 'k1500')], between)
  assert.equal(map.count('k0500', 'k1500'), between.length)
})

test('an empty map has nothing', () => {
  const map = new SortedMap<string>()
  assert.deepEqual([map.get('a'), map.delete('a'), map.count(), [...map.range('a')]], [undefined, undefined, 0, []])
})

test('a sorted map is a sorted map, also across blocks', () => {
  const random = seededRandom(5)
  const map = new SortedMap<number>()
  const model = new Map<string, number>()
  const keyOf = (n: number) => `k/${String(n).padStart(5, '0')}`
  for (let step = 0; step < 20_000; step++) {
    const key = keyOf(random.int(4000))
    if (random.int(3) === 0) assert.equal(map.delete(key) !== undefined, model.delete(key))
    else {
      map.set(key, step)
      model.set(key, step)
    }
  }
  assert.equal(map.size, model.size)
  const sorted = [...model.keys()].sort()
  for (let i = 0; i < 200; i++) {
    const from = keyOf(random.int(4100))
    const to = random.int(5) === 0 ? undefined : keyOf(random.int(4100))
    const wanted = sorted.filter((key) => key >= from && (to === undefined || key < to))
    const found: string[] = []
    map.scan(from, to, (key, value) => {
      assert.equal(value, model.get(key))
      found.push(key)
      return true
    })
    assert.deepEqual(found, wanted)
    assert.equal(map.count(from, to), wanted.length)
  }
  for (const key of sorted) map.delete(key)
  assert.deepEqual([map.size, map.count('', undefined), map.get('k')], [0, 0, undefined])
})
