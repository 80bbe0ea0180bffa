/** Objects that ask a controller, the scheduler or a kubelet for more than they can do. See poison/survives.ts. */
import { test } from 'node:test'
import { poisons } from './poison/poisons.ts'
import { surviveAll } from './poison/survives.ts'

test('ARC-10 poisoned objects stop neither the cluster nor its next start', { timeout: 280_000 }, (t) => surviveAll(t, poisons))
