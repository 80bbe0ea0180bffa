import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { configMaps } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { mirror } from './listWatch.ts'

test('KUB-26 the first list may be stale, a list after Expired never is, and objects deleted meanwhile are reported', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const path = (name: string) => `/api/v1/namespaces/x/configmaps/${name}`
  const put = (name: string) => server.put(path(name), anObject('ConfigMap', { namespace: 'x', name }))
  put('a')
  put('b')
  const stop = new AbortController()
  const heard: (string | undefined)[] = []
  const mirrored = mirror(createClient(server).of(configMaps), {}, { clock, log: noLog }, stop.signal, ({ metadata }) => heard.push(metadata.name))
  await clock.advance(100)
  await mirrored.synced
  server.endWatches()
  server.remove(path('a'))
  put('c')
  server.compact()
  await clock.advance(5_000)
  put('d')
  await clock.advance(100)
  const names = mirrored.list().map(({ metadata }) => metadata.name)
  assert.deepEqual(names.sort(), ['b', 'c', 'd'])
  assert.deepEqual(heard, ['a', 'b', 'c', 'a', 'd'])
  const lists = server.requests.filter(({ query }) => query?.watch === undefined && query?.allowWatchBookmarks === undefined)
  assert.deepEqual(
    lists.map(({ query }) => query?.resourceVersion),
    ['0', undefined],
  )
  stop.abort()
  await clock.advance(1)
  await mirrored.done
})

test('KUB-26 a mirror that never had a list ends its wait with it', async () => {
  const lost = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const nobody = createClient({
    request: () => Promise.reject(lost),
    watch: () => {
      throw lost
    },
  })
  const clock = new VirtualClock()
  const stop = new AbortController()
  const mirrored = mirror(nobody.of(configMaps), {}, { clock, log: noLog }, stop.signal)
  const state = { synced: false }
  const waiting = mirrored.synced.then(() => {
    state.synced = true
  })
  await clock.advance(60_000)
  assert.equal(state.synced, false)
  stop.abort()
  await clock.advance(1)
  assert.equal(state.synced, true)
  await waiting
})

test('KUB-26 an object that its listener fails on holds up no other one, in the first list and later', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const path = (name: string) => `/api/v1/namespaces/x/configmaps/${name}`
  const put = (name: string) => server.put(path(name), anObject('ConfigMap', { namespace: 'x', name }))
  for (const name of ['bad-1', 'c-1']) put(name)
  const stop = new AbortController()
  const heard: (string | undefined)[] = []
  const mirrored = mirror(createClient(server).of(configMaps), {}, { clock, log: noLog }, stop.signal, ({ metadata }) => {
    if (metadata.name?.startsWith('bad')) throw new Error('cannot')
    heard.push(metadata.name)
  })
  await clock.advance(100)
  await mirrored.synced
  for (const name of ['bad-2', 'c-2']) put(name)
  await clock.advance(100)
  assert.deepEqual([heard, mirrored.list().length], [['c-1', 'c-2'], 4])
  stop.abort()
  await clock.advance(1)
  await mirrored.done
})
