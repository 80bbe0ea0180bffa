/** Which calls of plugins are timed, and what becomes of their answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SchedulerPlugin } from './framework/plugin.ts'
import type { Profile } from './framework/profile.ts'
import { unschedulable } from './framework/status.ts'
import { timedProfile } from './timedProfile.ts'

function timedOf(plugin: Partial<SchedulerPlugin>) {
  const seen: string[] = []
  let now = 0
  const whole = { name: 'P', ...plugin } as SchedulerPlugin
  const points = Object.fromEntries(['preFilter', 'filter', 'postFilter', 'permit', 'bind'].map((point) => [point, [whole]]))
  const profile = { name: 'p', percentageOfNodesToScore: undefined, points, weights: [], plugins: new Map() } as unknown as Profile
  const timed = timedProfile(
    profile,
    (name, point, status, seconds) => seen.push(`${name} ${point} ${status} ${seconds}`),
    () => {
      now += 1000
      return now
    },
  )
  return { seen, plugin: timed.points.filter[0] as SchedulerPlugin, of: (point: 'preFilter' | 'postFilter' | 'permit' | 'bind') => timed.points[point][0] }
}

const nothing = undefined as never
const refusal = unschedulable('no')

test('OBS-08 a timed plugin returns the same result, and its status and time are recorded', async () => {
  const { seen, of } = timedOf({
    preFilter: () => 'skip',
    postFilter: async () => ({ refusal }),
    permit: () => ({ waitMs: 5 }),
    bind: () => Promise.reject(new Error('broken')),
  })
  assert.equal(of('preFilter')?.preFilter?.(nothing, nothing, nothing), 'skip')
  assert.deepEqual(await of('postFilter')?.postFilter?.(nothing, nothing, nothing), { refusal })
  assert.deepEqual(of('permit')?.permit?.(nothing, nothing, nothing), { waitMs: 5 })
  await assert.rejects(of('bind')?.bind?.(nothing, nothing, nothing, nothing) as Promise<unknown>, /broken/)
  assert.deepEqual(seen, ['P PreFilter Skip 1', 'P PostFilter Unschedulable 1', 'P Permit Wait 1', 'P Bind Error 1'])
})

test('OBS-08 one call in 32 is recorded, the point runs for each node', () => {
  const answers = Array.from({ length: 64 }, (_, i) => (i < 32 ? undefined : refusal))
  const { seen, plugin } = timedOf({ filter: () => answers.shift() })
  for (const wanted of [...answers]) assert.equal(plugin.filter?.(nothing, nothing, nothing), wanted)
  assert.deepEqual(seen, ['P Filter Success 1', 'P Filter Unschedulable 1'])
})
