/** More objects of many list entries: a file has to end within a time of its own. See poison/survives.ts. */
import { test } from 'node:test'
import { longObjects } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

test('ARC-10 pods of many list entries stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, longObjects.slice(5, 9)))
