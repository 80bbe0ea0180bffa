import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { TraceBook } from '#trace/traceBook'
import type { ServerRequest } from '../core/request.ts'
import { refusalKeeper, tracedUserStage, traceStage } from './trace.ts'

test('X7 reads of traces take no turn of the sample, and a path that only begins like theirs does', () => {
  const stage = traceStage(new TraceBook(new VirtualClock(), { sampleEvery: 2 }))
  const isTraced = (path: string) => {
    const info = { isResourceRequest: false, verb: 'get', resource: '', namespace: '', name: '', path }
    const request = { path, headers: {}, info } as unknown as ServerRequest
    stage.handle(request, () => ({ type: 'value', status: 200, value: {} }))
    return request.trace !== undefined
  }
  assert.deepEqual(['/a', '/skiff/traces', '/skiff/traces/1', '/b', '/skiff/tracesbeyond', '/c'].map(isTraced), [true, false, false, false, true, false])
})

test('X7 a refusal is as long as the monotonic clock says, when the wall clock was set back meanwhile', () => {
  const clock = new VirtualClock()
  const book = new TraceBook(clock)
  const user = { name: 'bob', groups: [] }
  const request = { method: 'POST', path: '/a', query: new URLSearchParams(), headers: {}, originalUser: user, user, receivedMs: clock.now() + 5000 }
  refusalKeeper(book)(request as unknown as ServerRequest, 403, new Error('no'), 3)
  const [kept] = book.requests(() => true)
  assert.equal(kept?.durationMs, 3)
})

test('X7 a rule about one user makes no other user’s request pay for stages, and follows an impersonated user', () => {
  const book = new TraceBook(new VirtualClock())
  book.addRule({ user: 'bob', seconds: 60 }, true)
  const [begin, decide] = [traceStage(book), tracedUserStage(book)]
  const isTraced = (name: string, as = name) => {
    const info = { isResourceRequest: false, verb: 'get', resource: '', namespace: '', name: '', path: '/a' }
    const request = { path: '/a', method: 'GET', query: new URLSearchParams(), headers: {}, info } as unknown as ServerRequest
    const known = { originalUser: { name, groups: [] }, user: { name: as, groups: [] } }
    let traced = false
    const last = () => {
      traced = request.trace !== undefined
      return { type: 'value', status: 200, value: {} } as const
    }
    begin.handle(request, () => decide.handle(Object.assign(request, known), last))
    return traced
  }
  assert.deepEqual([isTraced('bob'), isTraced('eve'), isTraced('eve', 'bob')], [true, false, true])
  assert.equal(book.requests(() => true).length, 2)
})
