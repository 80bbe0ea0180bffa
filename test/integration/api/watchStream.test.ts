/** Watches as streams of bytes: errors inside the stream, the bookmark before the end, a client that stops reading, the old paths. */
import assert from 'node:assert/strict'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import test from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { VirtualClock } from '#base/virtualClock'
import { configMaps, namespaces } from '#client/builtIn'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { rawHttp } from './rawHttp.ts'

const path = '/api/v1/namespaces/default/configmaps'
const user = { name: 'test', groups: ['system:masters'] }

async function eventsOf(listener: TestListener, query: string, from = path) {
  const { status, body } = await rawHttp(listener, { path: `${from}?${query}` })
  const lines = body
    .toString()
    .split('\n')
    .filter((line) => line !== '')
  return {
    status,
    events: lines.map((line) => JSON.parse(line) as { type: string; object: { metadata: { name?: string }; kind: string; message?: string; code?: number } }),
  }
}

test('API-08 a compacted resource version is answered with 200, then one ERROR event with the 410', async () => {
  const store = createMemoryStore({ clock: realClock })
  for (let at = 0; at < 5; at++) await store.transact({ compare: [], success: [{ type: 'put', key: `/other/${at}`, value: Buffer.from('x') }] })
  const api = await startTestApiServer({ store })
  try {
    const { status, events } = await eventsOf(await api.listen(), 'watch=1&resourceVersion=1')
    assert.deepEqual([status, events.map(({ type, object }) => [type, object.kind, object.code])], [200, [['ERROR', 'Status', 410]]])
    assert.match(events[0]?.object.message ?? '', /^too old resource version: 1 \(\d+\)$/)
  } finally {
    await api.close()
  }
})

test('API-08 the old watch paths show a collection, or one object', async () => {
  const api = await startTestApiServer()
  try {
    for (const name of ['a', 'b']) await api.client.of(configMaps).create({ metadata: { namespace: 'default', name } })
    const listener = await api.listen()
    const names = async (from: string, query = '') =>
      (await eventsOf(listener, `timeoutSeconds=1${query}`, from)).events.map(({ object }) => object.metadata.name)
    assert.deepEqual(await names('/api/v1/watch/namespaces/default/configmaps'), ['a', 'b'])
    assert.deepEqual(await names('/api/v1/watch/namespaces/default/configmaps/b'), ['b'])
    const other = await rawHttp(listener, { path: '/api/v1/watch/namespaces/default/configmaps/b?fieldSelector=metadata.name%3Da' })
    assert.deepEqual([other.status, JSON.parse(other.body.toString()).message], [400, "fieldSelector metadata.name doesn't match requested name"])
  } finally {
    await api.close()
  }
})

test('API-08 two seconds before its end a watch shows how far it came', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const api = await startTestApiServer({ clock })
  const stop = new AbortController()
  try {
    const { body } = await api.client.transport.request({ method: 'GET', path })
    const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata
    const watch = api.server
      .transport(user, 'test')
      .watch({ method: 'GET', path, query: { resourceVersion, allowWatchBookmarks: 'true', timeoutSeconds: '30' } }, stop.signal)
    const seen: string[] = []
    const watching = (async () => {
      for await (const batch of watch) for (const { type, object } of batch) seen.push(`${type} ${object.metadata.resourceVersion}`)
    })()
    await api.client.of(namespaces).create({ metadata: { name: 'elsewhere' }, spec: {} })
    await clock.advance(27_999)
    assert.equal(seen.length, 0)
    await clock.advance(1)
    await clock.advance(2_000)
    await watching
    const shown = seen.map((one) => one.split(' ')).map(([type, revision]) => [type, Number(revision) > Number(resourceVersion)])
    assert.deepEqual(shown, [['BOOKMARK', true]])
  } finally {
    stop.abort()
    await api.close()
  }
})

/** A connection whose client does not read the answer. */
async function stalled(listener: TestListener): Promise<{ call: ClientRequest; answer: IncomingMessage }> {
  const { port, ca, token } = listener
  const call = request({ host: '127.0.0.1', port, ca, path: `${path}?watch=1`, agent: false, headers: { authorization: `Bearer ${token}` } })
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve)
    call.once('error', reject)
    call.end()
  })
  answer.pause()
  answer.socket.pause()
  return { call, answer }
}

/** Puts many objects past the API, as many writers together would. */
async function fill(api: TestApiServer, count: number): Promise<void> {
  const perTransaction = 500
  const data = { filler: 'x'.repeat(2_000) }
  for (let from = 0; from < count; from += perTransaction) {
    const success = Array.from({ length: perTransaction }, (_, at) => {
      const name = `m${from + at}`
      const value = Buffer.from(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name, namespace: 'default' }, data }))
      return { type: 'put', key: `/registry/configmaps/default/${name}`, value } as const
    })
    await api.store.transact({ compare: [], success })
    await turn()
  }
}

test('API-09 a client that stops reading is cut off, and one that reads misses nothing', async () => {
  const api = await startTestApiServer()
  const stop = new AbortController()
  const { call, answer } = await stalled(await api.listen())
  // More than the watch's own bound and the buffers of both sockets hold together.
  const count = 25_000
  try {
    let seen = 0
    const reading = (async () => {
      for await (const batch of api.client.of(configMaps).watch({ namespace: 'default', signal: stop.signal })) {
        seen += batch.length
        if (seen === count) return
      }
    })()
    await fill(api, count)
    await reading
    let lines = 0
    answer.on('data', (chunk: Buffer) => {
      for (const byte of chunk) if (byte === 0x0a) lines++
    })
    const ended = new Promise((resolve) => answer.once('close', resolve))
    answer.socket.resume()
    answer.resume()
    await ended
    assert.deepEqual([seen, lines > 0, lines < count - 10_000], [count, true, true])
  } finally {
    stop.abort()
    call.destroy()
    answer.destroy()
    await api.close()
  }
})
