import assert from 'node:assert/strict'
import test from 'node:test'
import { textAnswer } from '../core/answer.ts'
import { requestOf } from '../core/testRequest.ts'
import { maxInFlightStage } from './maxInFlight.ts'
import { jane } from './testPipeline.ts'

const ok = textAnswer(200, 'ok')

function getAsJane() {
  return Object.assign(requestOf(), { user: jane, info: { verb: 'get', isResourceRequest: false, path: '/version' } })
}

test('API-19 a request above the limit is refused in plain text, with Retry-After of a second', async () => {
  const stage = maxInFlightStage({ readOnly: 1, mutating: 1 })
  let release = () => {}
  const first = stage.handle(getAsJane(), () => {
    return new Promise((resolve) => {
      release = () => resolve(ok)
    })
  })
  const refused = await stage.handle(getAsJane(), () => ok)
  assert.deepEqual(refused, textAnswer(429, 'Too many requests, please try again later.\n', { 'retry-after': '1', 'x-content-type-options': 'nosniff' }))
  release()
  assert.equal(await first, ok)
  assert.equal(await stage.handle(getAsJane(), () => ok), ok)
})

test('API-19 a limit of 0 is none', async () => {
  const stage = maxInFlightStage({ readOnly: 0, mutating: 1 })
  for (let i = 0; i < 3; i++) void stage.handle(getAsJane(), () => new Promise(() => {}))
  assert.equal(await stage.handle(getAsJane(), () => ok), ok)
})
