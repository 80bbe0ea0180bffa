import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realClock } from '#testing/realClock'
import type { WatchAnswer } from '../core/answer.ts'
import { CacheEntry } from '../core/watch/cacheEntry.ts'
import { WatchedEvent } from '../core/watch/watchEvent.ts'
import { WatchSession } from '../core/watch/watchSession.ts'
import { inProcessTransport } from './inProcess.ts'

const objects = 12
const objectBytes = 100_000

test('API-09 an in-process watch gets its initial events in portions', async () => {
  const session = new WatchSession({ afterRevision: 0, bookmarks: false, limit: 1, onClose: () => {} })
  const text = 'x'.repeat(objectBytes)
  const events = Array.from({ length: objects }, (_, at) => {
    const value = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c${at}` }, data: { text } }))
    return new WatchedEvent('ADDED', CacheEntry.stored(`a/c${at}`, value, at + 1, at + 1), at + 1)
  })
  session.preload(events)
  session.close()
  const answer = { type: 'watch', session, form: { key: '' }, bookmark: () => ({}), timeoutMs: 60_000 } as unknown as WatchAnswer
  const transport = inProcessTransport({ handle: () => Promise.resolve(answer), clock: realClock }, { name: 'admin', groups: [] } as never, 'test')
  const portions: number[] = []
  for await (const batch of transport.watch({ method: 'GET', path: '/api/v1/configmaps' }, new AbortController().signal)) portions.push(batch.length)
  assert.deepEqual(portions, [2, 2, 2, 2, 2, 2])
})
