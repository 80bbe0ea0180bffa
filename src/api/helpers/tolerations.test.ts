import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Toleration } from '#api/gen/types/core.v1'
import { seededRandom } from '#base/random'
import { mergeTolerations } from './tolerations.ts'

const cases: readonly { name: string; first: Toleration[]; second: Toleration[]; want: Toleration[] }[] = [
  { name: 'equal ones stay once', first: [{ key: 'a', value: 'b' }], second: [{ key: 'a', value: 'b' }], want: [{ key: 'a', value: 'b' }] },
  {
    name: 'a wider one of the same key stays',
    first: [{ key: 'a', value: 'b' }],
    second: [{ key: 'a', operator: 'Exists' }],
    want: [{ key: 'a', operator: 'Exists' }],
  },
  { name: 'one of all keys stays', first: [{ operator: 'Exists' }], second: [{ key: 'a', value: 'b', effect: 'NoSchedule' }], want: [{ operator: 'Exists' }] },
  {
    name: 'the longer one stays',
    first: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
    second: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 9 }],
    want: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 9 }],
  },
  {
    name: 'an unset operator means Equal',
    first: [{ key: 'a', value: 'b' }],
    second: [{ key: 'a', operator: 'Equal', value: 'b' }],
    want: [{ key: 'a', operator: 'Equal', value: 'b' }],
  },
  {
    name: 'other effects and values stay',
    first: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
    second: [
      { key: 'a', value: 'b', effect: 'NoExecute' },
      { key: 'a', value: 'c', effect: 'NoSchedule' },
    ],
    want: [
      { key: 'a', value: 'b', effect: 'NoSchedule' },
      { key: 'a', value: 'b', effect: 'NoExecute' },
      { key: 'a', value: 'c', effect: 'NoSchedule' },
    ],
  },
]
for (const { name, first, second, want } of cases) test(`CRI-06 merged tolerations: ${name}`, () => assert.deepEqual(mergeTolerations(first, second), want))

test('CRI-06 merged tolerations do not include each other, whatever their fields are', () => {
  const random = seededRandom(11)
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random.next() * values.length)] as T
  const one = (): Toleration => {
    const seconds = pick([undefined, 1, 2, 3])
    const [operator, value, effect] = [
      pick([undefined, 'Equal', 'Exists', 'Lt']),
      pick([undefined, '', 'v', 'w']),
      pick([undefined, 'NoSchedule', 'NoExecute']),
    ]
    return {
      key: pick(['', 'a', 'b']),
      ...(operator && { operator }),
      ...(value !== undefined && { value }),
      ...(effect && { effect }),
      ...(seconds && { tolerationSeconds: seconds }),
    }
  }
  for (let round = 0; round < 300; round++) {
    const all = Array.from({ length: 12 }, one)
    const merged = mergeTolerations(all.slice(0, 6), all.slice(6))
    for (const dropped of all.filter((given) => !merged.includes(given))) {
      assert.deepEqual(mergeTolerations(merged, [dropped]).length, merged.length, JSON.stringify([all, merged, dropped]))
    }
    for (const [index, kept] of merged.entries()) {
      for (const other of merged.slice(index + 1)) assert.equal(mergeTolerations([kept], [other]).length, 2, JSON.stringify([kept, other]))
    }
  }
})

test('CRI-06 twenty thousand tolerations are merged in less than a second, with keys of their own and with times of their own', () => {
  const many = (make: (at: number) => Toleration) => Array.from({ length: 20_000 }, (_, at) => make(at))
  const lists = [
    many((at) => ({ key: `k${at}`, operator: 'Equal', value: 'v', effect: 'NoSchedule' })),
    many((at) => ({ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: at })),
  ]
  for (const [index, list] of lists.entries()) {
    const { user } = process.cpuUsage()
    assert.equal(mergeTolerations(list, [{ key: 'more', operator: 'Exists' }]).length, index === 0 ? 20_001 : 2)
    assert.ok(process.cpuUsage().user - user < 1_000_000)
  }
})
