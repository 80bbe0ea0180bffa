/** Lists that are too long for one buffer: they go out in chunks, and are the same in every form. */
import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import test, { after, before } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { toYaml } from '#api/machinery/yaml'
import { decodeProtobuf, partialObjectMetadataSchema } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { configMaps } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawHttp } from './rawHttp.ts'

const path = '/api/v1/namespaces/default/configmaps'
const count = 600
let api: TestApiServer
let listener: TestListener

before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
  const text = 'x'.repeat(2_000)
  const create = (i: number) =>
    api.client.of(configMaps).create({ metadata: { namespace: 'default', name: `m-${String(i).padStart(4, '0')}` }, data: { text } })
  await Promise.all(Array.from({ length: count }, (_, i) => create(i)))
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'large' }, data: { text: 'y'.repeat(900_000) } })
})
after(() => api.close())

interface List {
  readonly items: readonly { readonly metadata: { readonly name: string }; readonly data: Readonly<Record<string, string>> }[]
}

function check(list: List): void {
  const names = list.items.map(({ metadata }) => metadata.name)
  assert.deepEqual(names, ['large', ...Array.from({ length: count }, (_, i) => `m-${String(i).padStart(4, '0')}`)])
  assert.equal(list.items[0]?.data.text?.length, 900_000)
  assert.ok(list.items.slice(1).every(({ data }) => data.text?.length === 2_000))
}

async function overHttp2(headers: Readonly<Record<string, string>> = {}) {
  const session = connect(listener.url, { ca: listener.ca })
  try {
    const stream = session.request({ ':path': path, authorization: `Bearer ${listener.token}`, ...headers })
    const answered = new Promise<Readonly<Record<string, unknown>>>((resolve) => stream.on('response', resolve))
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const answer = await answered
    return { status: Number(answer[':status']), headers: answer, body: Buffer.concat(chunks) }
  } finally {
    session.close()
  }
}

const overHttp1 = (headers: Readonly<Record<string, string>> = {}) => rawHttp(listener, { path, headers })

for (const [protocol, get] of [
  ['HTTP/1.1', overHttp1],
  ['HTTP/2', overHttp2],
] as const) {
  test(`API-16 a long list in JSON over ${protocol}, with its length`, async () => {
    const { status, headers, body } = await get()
    assert.deepEqual([status, Number(headers['content-length'])], [200, body.length])
    check(JSON.parse(body.toString()))
  })

  test(`API-16 a long list in protobuf over ${protocol}`, async () => {
    const { headers, body } = await get({ accept: 'application/vnd.kubernetes.protobuf' })
    assert.equal(headers['content-type'], 'application/vnd.kubernetes.protobuf')
    check(decodeProtobuf(body, (_, kind) => schemaFor('', 'v1', kind)) as unknown as List)
  })

  test(`API-16 a long list compressed over ${protocol}`, async () => {
    const { headers, body } = await get({ 'accept-encoding': 'gzip' })
    assert.equal(headers['content-encoding'], 'gzip')
    check(JSON.parse(gunzipSync(body).toString()))
  })
}

test('API-16 long lists as tables, metadata, YAML and indented JSON equal short ones', async () => {
  const get = async (accept: string, query = '') => {
    const { status, headers, body } = await rawHttp(listener, { path: `${path}${query}`, headers: { accept } })
    assert.deepEqual([status, headers['content-type']], [200, accept.split(';')[0]])
    return body
  }
  const json = async (accept: string, query = '') => JSON.parse((await get(accept, query)).toString())
  /** The same list by pages, which are short. */
  const paged = async (accept: string, member: string) => {
    const first = await json(accept, '?limit=300')
    const { metadata } = await json(accept)
    const pages = [first]
    for (let { continue: token } = first.metadata; token; ) {
      const next = await json(accept, `?limit=300&continue=${token}`)
      pages.push(next)
      token = next.metadata.continue
    }
    return { ...first, metadata, [member]: pages.flatMap((page) => page[member]) }
  }
  for (const [as, member] of [
    ['Table', 'rows'],
    ['PartialObjectMetadataList', 'items'],
  ] as const) {
    const accept = `application/json;as=${as};g=meta.k8s.io;v=v1`
    const whole = await json(accept)
    assert.equal(whole[member].length, count + 1)
    const byPages = await paged(accept, member)
    // The age, which is the last cell, differs between the two.
    for (const list of [whole, byPages]) for (const row of list.rows ?? []) assert.match(row.cells.pop(), /^\d+[sm]/)
    assert.deepEqual(whole, byPages)
  }
  const plain = await json('application/json')
  const pretty = (await get('application/json', '?pretty=true')).toString()
  assert.deepEqual(JSON.parse(pretty), plain)
  assert.equal(pretty, JSON.stringify(JSON.parse(pretty), undefined, 2))
  assert.equal((await get('application/yaml')).toString(), toYaml(plain))
  const partial = await get('application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1')
  const names = decodeProtobuf(partial, () => partialObjectMetadataSchema(true)) as unknown as List
  assert.deepEqual(
    names.items.map(({ metadata }) => metadata.name),
    plain.items.map(({ metadata }: List['items'][0]) => metadata.name),
  )
})

test('API-08 streams in every form: JSON, protobuf, tables and metadata, with their bookmarks; YAML has none', async () => {
  const watch = async (accept: string) => {
    const query =
      '?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Dm-0001'
    return rawHttp(listener, { path: `${path}${query}`, headers: { accept } })
  }
  const events = async (accept: string) => {
    const { status, headers, body } = await watch(accept)
    assert.deepEqual([status, headers['content-type']], [200, 'application/json'])
    return body
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
  const summary = (list: { type: string; object: { kind: string; apiVersion: string } }[]) =>
    list.map(({ type, object }) => `${type} ${object.apiVersion} ${object.kind}`)
  assert.deepEqual(summary(await events('application/json')), ['ADDED v1 ConfigMap', 'BOOKMARK v1 ConfigMap'])
  const partial = await events('application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1')
  assert.deepEqual(summary(partial), ['ADDED meta.k8s.io/v1 PartialObjectMetadata', 'BOOKMARK meta.k8s.io/v1 PartialObjectMetadata'])
  assert.deepEqual(partial[1].object.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
  const table = await events('application/json;as=Table;g=meta.k8s.io;v=v1')
  assert.deepEqual(summary(table), ['ADDED meta.k8s.io/v1 Table', 'BOOKMARK meta.k8s.io/v1 Table'])
  assert.equal(table[0].object.rows[0].cells[0], 'm-0001')
  assert.deepEqual(table[1].object.rows[0].object.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
  const yaml = await watch('application/yaml')
  assert.equal(yaml.status, 406)
  assert.match(
    yaml.body.toString(),
    /only the following media types are accepted: application\/json;stream=watch, application\/vnd.kubernetes.protobuf;stream=watch/,
  )
})

test('API-02 a collection of thousands is deleted while others are answered', async () => {
  const other = '/api/v1/namespaces/kube-system/configmaps'
  let isDone = false
  const deleting = rawHttp(listener, { method: 'DELETE', path }).finally(() => {
    isDone = true
  })
  let answered = 0
  while (!isDone) {
    assert.equal((await rawHttp(listener, { path: other })).status, 200)
    answered++
  }
  const { status, body } = await deleting
  assert.deepEqual([status, JSON.parse(body.toString()).items.length], [200, count + 1])
  assert.ok(answered > 1)
  assert.deepEqual(JSON.parse((await overHttp1()).body.toString()).items, [])
})
