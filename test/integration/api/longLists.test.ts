/** Lists that are too long for one buffer: they go out in chunks, and are the same in every form. */
import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import test, { after, before } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { decodeProtobuf } from '#api/machinery/protobuf/envelope'
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
