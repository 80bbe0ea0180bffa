/** Changes parts of a value at random, to see what reads it survive objects that no API server lets pass (tests only). */
import type { Random } from '#base/random'

const odd = [
  undefined,
  null,
  '',
  '/',
  '//',
  '/..',
  '%',
  '%00',
  '*',
  '*.x',
  '*.',
  '.',
  '/a/../b',
  'A.B',
  '__proto__',
  'constructor',
  0,
  -1,
  80,
  1e9,
  {},
  [],
  true,
  'x'.repeat(5000),
]

export interface Mutator {
  /** A copy in which some values are odd ones, and some items of lists are missing or repeated. */
  mutate(value: unknown): unknown
  pickOdd(): unknown
}

const maxDepth = 8

/** @param rarity one of so many members of objects and lists is replaced, and one of half as many texts and numbers */
export function createMutator(random: Pick<Random, 'int'>, rarity = 12): Mutator {
  const pickOdd = () => odd[random.int(odd.length)]
  const mutate = (value: unknown, depth = 0): unknown => {
    if (random.int(rarity) === 0) return pickOdd()
    if (depth > maxDepth || typeof value !== 'object' || value === null) return random.int(rarity / 2) === 0 ? pickOdd() : value
    if (Array.isArray(value)) return value.flatMap((item) => Array.from({ length: random.int(4) }, () => mutate(item, depth + 1)))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mutate(item, depth + 1)]))
  }
  return { mutate: (value) => mutate(value), pickOdd }
}
