import assert from 'node:assert/strict'
import test from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { WatchAnswer } from '../core/answer.ts'
import { Cancellation } from '../core/cancellation.ts'
import type { ServerRequest } from '../core/request.ts'
import { CacheEntry } from '../core/watch/cacheEntry.ts'
import { WatchedEvent } from '../core/watch/watchEvent.ts'
import { WatchSession } from '../core/watch/watchSession.ts'
import { type Outgoing, respond } from './respond.ts'

const value = Buffer.from('{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}}')

function setUp(drains: boolean) {
  const written: string[] = []
  let ended = false
  const out = {
    start: (status: number) => written.push(String(status)),
    write: (chunk: Uint8Array) => {
      written.push(Buffer.from(chunk).toString())
      return drains
    },
    drained: () => (drains ? Promise.resolve() : new Promise<void>(() => {})),
    end: () => {
      ended = true
    },
  } as unknown as Outgoing
  const session = new WatchSession({ afterRevision: 0, bookmarks: true, limit: 3, onClose: () => {} })
  const answer: WatchAnswer = { type: 'watch', session, form: { key: 'json' }, bookmark: (revision) => ({ revision }), timeoutMs: 60_000 }
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const request = { headers: {}, warnings: [], auditId: 'a', cancellation: new Cancellation(), method: 'GET' } as unknown as ServerRequest
  const done = respond(request, answer, out, clock)
  const push = (revision: number) => session.push(new WatchedEvent('ADDED', CacheEntry.stored('x', value, revision, 1), revision))
  return { written, session, clock, done, push, isEnded: () => ended }
}

test('API-09 the connection of a client that stops reading is closed, and its buffers are freed', async () => {
  const { push, clock, done, written, isEnded, session } = setUp(false)
  push(1)
  await clock.advance(0)
  for (let revision = 2; revision < 10; revision++) push(revision)
  await done
  assert.deepEqual([isEnded(), session.ended, written.length], [true, true, 2])
})

test('API-20 a watch ends after its time with all that was queued', async () => {
  const { push, clock, done, written, session, isEnded } = setUp(true)
  push(1)
  session.push({ type: 'BOOKMARK', revision: 5, initialEventsEnd: false })
  await clock.advance(60_000)
  await done
  const lines = written.slice(1).join('').trimEnd().split('\n')
  assert.deepEqual([isEnded(), lines.map((line) => JSON.parse(line).type)], [true, ['ADDED', 'BOOKMARK']])
})
