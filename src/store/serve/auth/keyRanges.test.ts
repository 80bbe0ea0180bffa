import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyRanges } from './keyRanges.ts'

type Range = readonly [key: string, rangeEnd: string]

const cases: readonly { readonly name: string; readonly own: readonly Range[]; readonly included: readonly Range[]; readonly refused: readonly Range[] }[] = [
  {
    name: 'no range includes nothing',
    own: [],
    included: [],
    refused: [
      ['a', ''],
      ['a', 'b'],
      ['\0', '\0'],
    ],
  },
  {
    name: 'a key includes itself alone',
    own: [['b', '']],
    included: [
      ['b', ''],
      ['b', 'b\0'],
    ],
    refused: [
      ['a', ''],
      ['b\0', ''],
      ['b', 'c'],
      ['b', '\0'],
    ],
  },
  {
    name: 'a range ends before its end',
    own: [['b', 'd']],
    included: [
      ['b', ''],
      ['c\xff', ''],
      ['b', 'd'],
      ['bb', 'c'],
    ],
    refused: [
      ['d', ''],
      ['a', 'c'],
      ['c', 'd\0'],
      ['c', '\0'],
    ],
  },
  {
    name: 'an open range has no end',
    own: [['b', '\0']],
    included: [
      ['b', '\0'],
      ['z', ''],
      ['c', 'd'],
    ],
    refused: [
      ['a', ''],
      ['a', '\0'],
      ['\0', '\0'],
    ],
  },
  {
    name: 'ranges that touch or overlap are one',
    own: [
      ['d', 'f'],
      ['a', 'c'],
      ['b', 'd'],
      ['f', ''],
    ],
    included: [
      ['a', 'f'],
      ['a', 'f\0'],
    ],
    refused: [['a', 'g']],
  },
  {
    name: 'a gap is in no range',
    own: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    included: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    refused: [
      ['a', 'd'],
      ['b', ''],
    ],
  },
  {
    name: 'a long range swallows a short one after it',
    own: [
      ['a', 'z'],
      ['b', 'c'],
    ],
    included: [
      ['a', 'z'],
      ['d', 'e'],
    ],
    refused: [['z', '']],
  },
  {
    name: 'a request that ends before it starts stays within one range',
    own: [
      ['a', 'c'],
      ['x', 'z'],
    ],
    included: [['b', 'a']],
    refused: [['m', 'b']],
  },
]

for (const { name, own, included, refused } of cases)
  test(`ETC-24 ${name}`, () => {
    const ranges = new KeyRanges(own.map(([key, rangeEnd]) => ({ key, rangeEnd })))
    for (const range of included) assert.equal(ranges.includes(...range), true, JSON.stringify(range))
    for (const range of refused) assert.equal(ranges.includes(...range), false, JSON.stringify(range))
  })
