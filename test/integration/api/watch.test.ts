/** Watches over the API: resuming, streaming lists, selectors, bookmarks, ends. */
import assert from 'node:assert/strict'
import type { ConfigMap } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { configMaps } from '#client/builtIn'
import type { WatchOptions } from '#client/client'
import type { WatchEvent } from '#client/transport'
import { bothTransports, type Case } from './bothTransports.ts'

/** Collects a watch's events until `enough` returns true. */
async function collect(
  one: Case,
  options: Omit<WatchOptions, 'signal'>,
  enough: (seen: readonly string[]) => boolean,
  meanwhile?: () => Promise<unknown>,
): Promise<string[]> {
  const stop = new AbortController()
  const seen: string[] = []
  const watching = (async () => {
    for await (const batch of one.client.of(configMaps).watch({ namespace: one.namespace, ...options, signal: stop.signal })) {
      seen.push(...batch.map(shown))
      if (enough(seen)) return
    }
  })()
  await meanwhile?.()
  await watching
  stop.abort()
  return seen
}

function shown({ type, object }: WatchEvent<Frozen<ConfigMap>>): string {
  const end = object.metadata.annotations?.['k8s.io/initial-events-end']
  if (type === 'BOOKMARK') return `${type}${end ? ' end' : ''}`
  return `${type} ${object.metadata.name}`
}

const map = (one: Case, name: string, labels: Record<string, string> = {}) =>
  one.client.of(configMaps).create({ metadata: { namespace: one.namespace, name, labels } })
const count = (wanted: number) => (seen: readonly string[]) => seen.length >= wanted

bothTransports({
  async 'API-08 a watch resumes after the resourceVersion of a list'(one: Case) {
    await map(one, 'a')
    const list = await one.client.of(configMaps).list({ namespace: one.namespace })
    await map(one, 'b')
    await one.client.of(configMaps).patch({ namespace: one.namespace, name: 'a' }, 'merge', { data: { x: 'y' } })
    const seen = await collect(one, { resourceVersion: list.metadata.resourceVersion }, count(3), () =>
      one.client.of(configMaps).delete({ namespace: one.namespace, name: 'b' }),
    )
    assert.deepEqual(seen, ['ADDED b', 'MODIFIED a', 'DELETED b'])
  },

  async 'API-08 without a resourceVersion a watch begins with the current state'(one: Case) {
    await map(one, 'b')
    await map(one, 'a')
    assert.deepEqual(await collect(one, {}, count(3), () => map(one, 'c')), ['ADDED a', 'ADDED b', 'ADDED c'])
  },

  async 'API-08 a streaming list marks the end of the initial events'(one: Case) {
    await map(one, 'a')
    const options = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan' } as const
    assert.deepEqual(await collect(one, options, count(3), () => map(one, 'b')), ['ADDED a', 'BOOKMARK end', 'ADDED b'])
  },

  async 'API-08 a streaming list without the match is refused in upstream words'(one: Case) {
    const call = collect(one, { sendInitialEvents: true }, count(1))
    await assert.rejects(
      call,
      (error) =>
        isStatus(error, 'Invalid') &&
        error.message ===
          'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    )
  },

  async 'API-08 a watch from no version or 0 that says nothing of initial events closes them with the bookmark, too'(one: Case) {
    await map(one, 'a')
    for (const from of [{}, { resourceVersion: '0' }]) {
      assert.deepEqual(await collect(one, { ...from, allowWatchBookmarks: true }, count(2)), ['ADDED a', 'BOOKMARK end'])
    }
  },

  async 'API-08 a selected streaming list begins with what matches, and ends its beginning as any other'(one: Case) {
    await map(one, 'a', { color: 'red' })
    await map(one, 'b')
    const options = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan', labelSelector: 'color=red' } as const
    assert.deepEqual(await collect(one, options, count(2)), ['ADDED a', 'BOOKMARK end'])
  },

  async 'API-08 objects enter and leave a label selector'(one: Case) {
    const label = (color: string) => one.client.of(configMaps).patch({ namespace: one.namespace, name: 'a' }, 'merge', { metadata: { labels: { color } } })
    const seen = await collect(one, { labelSelector: 'color=red' }, count(3), async () => {
      await map(one, 'a', { color: 'blue' })
      await label('red')
      await label('blue')
      await label('red')
    })
    assert.deepEqual(seen, ['ADDED a', 'DELETED a', 'ADDED a'])
  },

  async 'API-08 a watch of one object shows that object alone'(one: Case) {
    const seen = await collect(one, { fieldSelector: 'metadata.name=b' }, count(1), async () => {
      await map(one, 'a')
      await map(one, 'b')
    })
    assert.deepEqual(seen, ['ADDED b'])
  },

  async 'API-20 a watch ends after its timeoutSeconds'(one: Case) {
    assert.deepEqual(await collect(one, { timeoutSeconds: 1 }, count(100)), [])
  },

  async 'API-09 many watchers see every change once and in order'(one: Case) {
    const names = Array.from({ length: 20 }, (_, at) => `m${at}`)
    const want = names.map((name) => `ADDED ${name}`)
    const watchers = Array.from({ length: 30 }, () => collect(one, {}, count(20)))
    for (const name of names) await map(one, name)
    for (const seen of await Promise.all(watchers)) assert.deepEqual([...seen].sort(), [...want].sort())
  },
})
