/** The rest of the objects of many list entries. See poison/survives.ts. */
import { test } from 'node:test'
import { longObjects } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

test('ARC-10 pods of many scheduling rules stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, longObjects.slice(9)))
