import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { FollowedObjects, followMs } from './followedObjects.ts'
import { TraceClock } from './traceClock.ts'

test('LRN-05 the uid of a followed object is not known after its time, without another question before', async () => {
  const clock = new VirtualClock()
  const followed = new FollowedObjects(new TraceClock(clock))
  followed.add('pods/a/web', '1')
  assert.equal(followed.hasUid('1'), true)
  await clock.advance(followMs)
  assert.equal(followed.hasUid('1'), false)
})
