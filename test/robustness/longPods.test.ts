/** The other half of longObjects.test.ts: a file has to end within a time of its own. */
import { test } from 'node:test'
import { longObjects } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

const half = Math.ceil(longObjects.length / 2)

test('ARC-10 pods of many list entries stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, longObjects.slice(half)))
