/** Objects whose lists have as many entries as a request holds. See poison/survives.ts. */
import { test } from 'node:test'
import { longObjects } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

test('ARC-10 objects of many list entries stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, longObjects.slice(0, 5)))
