/** Objects that ask for as many pods as a number holds, and pods that ask the scheduler for much. See poison/survives.ts. */
import { test } from 'node:test'
import { widePoisons } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

test('ARC-10 workloads of two thousand million pods stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, widePoisons))
