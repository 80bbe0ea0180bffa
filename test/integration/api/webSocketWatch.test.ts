/** Watches over WebSocket, as dashboards in browsers open them: an event is a message. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import test, { after, before } from 'node:test'
import tls from 'node:tls'
import WebSocket, { type RawData } from 'ws'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'

let api: TestApiServer
let listener: TestListener
before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
})
after(() => api.close())

const path = '/api/v1/namespaces/default/configmaps'
const create = (name: string) => api.client.transport.request({ method: 'POST', path, body: { metadata: { name } } })

function open(query: string, protocols: readonly string[], headers: Readonly<Record<string, string>>): WebSocket {
  const url = `${listener.url.replace('https', 'wss')}${path}?${query}`
  return new WebSocket(url, [...protocols], { ca: listener.ca, headers: { ...headers } })
}

async function messages(socket: WebSocket, count: number): Promise<{ data: Buffer; isBinary: boolean }[]> {
  const seen: { data: Buffer; isBinary: boolean }[] = []
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => resolve())
    socket.on('message', (data: RawData, isBinary) => {
      seen.push({ data: data as Buffer, isBinary })
      if (seen.length === count) socket.close()
    })
  })
  return seen
}

async function versionBefore(): Promise<string> {
  const { body } = await api.client.transport.request({ method: 'GET', path })
  return (body as { metadata: { resourceVersion: string } }).metadata.resourceVersion
}

test('API-08 a watch over WebSocket sends a message per event, also for simultaneous events', async () => {
  const version = await versionBefore()
  for (const name of ['a', 'b', 'c']) await create(name)
  const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from('a token').toString('base64url')}`
  const socket = open(`watch=true&resourceVersion=${version}`, [bearer, 'v1.example.io'], { authorization: `Bearer ${listener.token}` })
  const events = (await messages(socket, 3)).map(({ data, isBinary }) => ({
    ...(JSON.parse(data.toString()) as { type: string; object: { metadata: { name: string } } }),
    isBinary,
  }))
  assert.equal(socket.protocol, 'v1.example.io', 'never the one with the token')
  assert.deepEqual(
    events.map(({ type, object, isBinary }) => [type, object.metadata.name, isBinary]),
    ['a', 'b', 'c'].map((name) => ['ADDED', name, false]),
  )
})

test('API-08 in protobuf events are binary messages, and the watch ends after its time', async () => {
  const version = await versionBefore()
  await create('d')
  const headers = { authorization: `Bearer ${listener.token}`, accept: 'application/vnd.kubernetes.protobuf;stream=watch' }
  const socket = open(`watch=true&timeoutSeconds=1&resourceVersion=${version}`, [], headers)
  const [event, ...more] = await messages(socket, 2)
  assert.equal(event?.isBinary, true)
  assert.ok(event?.data.includes('ADDED') && event.data.includes('k8s\0'))
  assert.deepEqual(more, [])
})

test('API-08 a WebSocket without a watch gets the plain answer, and without a right the refusal', async () => {
  for (const [query, headers, code] of [
    ['', { authorization: `Bearer ${listener.token}` }, 200],
    ['watch=true', { authorization: 'Bearer wrong' }, 401],
  ] as const) {
    const socket = open(query, [], headers)
    socket.on('error', () => {})
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number; destroy(): void }]
    assert.equal(response.statusCode, code)
    response.destroy()
  }
})

test('API-08 a handshake that is none is refused in words', async () => {
  const connection = tls.connect({ host: '127.0.0.1', port: listener.port, ca: listener.ca })
  const headers = ['upgrade: websocket', 'connection: Upgrade', 'sec-websocket-version: 1', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']
  connection.write([`GET ${path}?watch=true HTTP/1.1`, 'host: localhost', `authorization: Bearer ${listener.token}`, ...headers, '', ''].join('\r\n'))
  const answer = await text(connection)
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
  assert.match(answer, /Missing or invalid Sec-WebSocket-Version header/)
})
