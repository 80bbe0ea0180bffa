/** A watch of tables: the first event of the stream has the columns, whatever its type, and no other has. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawLines } from './rawHttp.ts'

let api: TestApiServer
let listener: TestListener
before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
})
after(() => api.close())

const path = '/api/v1/namespaces/default/configmaps'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'

interface Event {
  readonly type: string
  readonly object: { readonly kind: string; readonly columnDefinitions: readonly { readonly name: string }[] | null; readonly rows: readonly unknown[] }
}

const create = (name: string) => api.client.transport.request({ method: 'POST', path, body: { metadata: { name } } })
/** Type and columns of each event. */
const shown = (events: readonly Event[]) => events.map(({ type, object }) => [object.kind, type, object.columnDefinitions?.map(({ name }) => name) ?? null])
const names = ['Name', 'Data', 'Age']

async function overHttp(query: string, count: number): Promise<Event[]> {
  const lines = await rawLines(listener, { path: `${path}?watch=true&${query}`, headers: { accept: table } }, count)
  return lines.map((line) => JSON.parse(line) as Event)
}

test('API-17 a watch of tables sends the columns once per stream, to each watcher', async () => {
  const { body } = await api.client.transport.request({ method: 'GET', path })
  const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata
  for (const name of ['a', 'b', 'c']) await create(name)
  const query = `resourceVersion=${resourceVersion}&fieldSelector=metadata.name!=kube-root-ca.crt`
  const want = [
    ['Table', 'ADDED', names],
    ['Table', 'ADDED', null],
    ['Table', 'ADDED', null],
  ]
  const both = await Promise.all([overHttp(query, 3), overHttp(query, 3)])
  assert.deepEqual(both.map(shown), [want, want])
})

test('API-17 a watch of tables in the same process sends the columns once, over several batches', async () => {
  const { body } = await api.client.transport.request({ method: 'GET', path })
  const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata
  const leaving = new AbortController()
  const watch = api.client.transport.watch({ method: 'GET', path, accept: table, query: { resourceVersion } }, leaving.signal)
  const seen: Event[] = []
  await create('first')
  for await (const batch of watch) {
    seen.push(...(batch as unknown as Event[]))
    if (seen.length === 1) await create('second')
    else break
  }
  leaving.abort()
  assert.deepEqual(shown(seen), [
    ['Table', 'ADDED', names],
    ['Table', 'ADDED', null],
  ])
})

test('API-17 a bookmark as the first event has the columns', async () => {
  const query = 'resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name=nobody'
  const [first] = await overHttp(query, 1)
  assert.deepEqual([first?.type, first?.object.columnDefinitions?.length, first?.object.rows.length], ['BOOKMARK', names.length, 1])
})
