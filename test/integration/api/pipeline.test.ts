/** Stages of the pipeline whose effect is on the connection: GOAWAY, preflights, a shutdown that lets requests finish. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import test from 'node:test'
import { startTestApiServer, type TestApiServerOptions, type TestListener } from '#testing/apiServer'
import { rawHttp } from './rawHttp.ts'

async function withServer(options: TestApiServerOptions, run: (listener: TestListener, close: () => Promise<void>) => Promise<void>): Promise<void> {
  const api = await startTestApiServer(options)
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= api.close()
    return closing
  }
  try {
    await run(await api.listen(), close)
  } finally {
    await close()
  }
}

/** One GET over HTTP/2: its status, and whether the server then sent GOAWAY. */
async function overHttp2(listener: TestListener, path: string, token: string): Promise<{ status: number; goaway: boolean }> {
  const session = connect(listener.url, { ca: listener.ca })
  let goaway = false
  session.on('goaway', () => {
    goaway = true
  })
  const stream = session.request({ ':path': path, ...(token ? { authorization: `Bearer ${token}` } : {}) })
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  stream.resume()
  await once(stream, 'close')
  // A second exchange, so that what the server sent after the answer has arrived.
  await new Promise<void>((resolve) => (session.destroyed || session.closed ? resolve() : session.ping(() => resolve())))
  const connectionEnds = goaway
  session.destroy()
  assert.equal('connection' in headers, false)
  return { status: Number(headers[':status']), goaway: connectionEnds }
}

test('API-23 with --goaway-chance an HTTP/2 client gets its answer and GOAWAY', async () => {
  const namespace = '/api/v1/namespaces/default'
  await withServer({ config: { goawayChance: 1 } }, async (listener) =>
    assert.deepEqual(await overHttp2(listener, namespace, listener.token), { status: 200, goaway: true }),
  )
  await withServer({}, async (listener) => assert.deepEqual(await overHttp2(listener, namespace, listener.token), { status: 200, goaway: false }))
})

test('API-02 an unauthenticated client keeps no HTTP/2 connection', () =>
  withServer({}, async (listener) => assert.deepEqual(await overHttp2(listener, '/api/v1/pods', 'wrong'), { status: 401, goaway: true })))

test('API-02 a preflight is answered without a body', () =>
  withServer({ config: { corsAllowedOrigins: ['//app\\.example\\.com$'] } }, async (listener) => {
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'GET' }
    const answer = await rawHttp(listener, { method: 'OPTIONS', path: '/api/v1/pods', headers, token: '' })
    assert.deepEqual([answer.status, answer.headers['access-control-allow-origin'], answer.body.length], [204, headers.origin, 0])
    assert.equal('content-type' in answer.headers, false)
  }))

/** A plugin that keeps the create of `slow` waiting: `arrived` resolves when it waits. */
function holdingPlugin() {
  const made = { arrive: () => {}, release: () => {} }
  const arrived = new Promise<void>((resolve) => {
    made.arrive = resolve
  })
  const held = new Promise<void>((resolve) => {
    made.release = resolve
  })
  const admit = ({ name }: { name: string }) => {
    if (name !== 'slow') return undefined
    made.arrive()
    return held
  }
  return { plugin: { name: 'Hold', handles: () => true, admit }, arrived, release: () => made.release() }
}

const path = '/api/v1/namespaces/default/configmaps'
const createSlow = { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: '{"metadata":{"name":"slow"}}' }

test('API-02 a shutdown answers open requests and refuses new ones', async () => {
  const { plugin, arrived, release } = holdingPlugin()
  await withServer({ deps: () => ({ admission: [plugin] }) }, async (listener, close) => {
    const answer = rawHttp(listener, createSlow)
    await arrived
    const closed = close()
    await assert.rejects(rawHttp(listener, { path: '/livez' }), { code: 'ECONNREFUSED' })
    release()
    assert.equal((await answer).status, 201)
    await closed
  })
})

test('API-02 with --shutdown-send-retry-after a shutdown sends newcomers elsewhere meanwhile', async () => {
  const { plugin, arrived, release } = holdingPlugin()
  await withServer({ deps: () => ({ admission: [plugin] }), config: { shutdownSendRetryAfter: true } }, async (listener, close) => {
    const answer = rawHttp(listener, createSlow)
    await arrived
    const closed = close()
    const late = await rawHttp(listener, { path })
    assert.deepEqual([late.status, late.headers['retry-after'], late.headers.connection], [429, '5', 'close'])
    assert.equal((await rawHttp(listener, { path: '/livez' })).status, 200)
    release()
    assert.equal((await answer).status, 201)
    await closed
  })
})

test('API-23 a client that resets streams without end gets GOAWAY, and none of its requests hangs', () =>
  withServer({}, async (listener) => {
    const session = connect(listener.url, { ca: listener.ca })
    session.on('error', () => undefined)
    const ended = once(session, 'goaway')
    const resetOne = async () => {
      const stream = session.request({ ':path': '/api/v1/pods?watch=1', authorization: `Bearer ${listener.token}` })
      stream.on('error', () => undefined)
      await once(stream, 'response')
      stream.close(constants.NGHTTP2_CANCEL)
      await once(stream, 'close')
    }
    // The last ones are refused: the connection takes no more.
    for (let count = 0; count < 1_100 && !session.closed && !session.destroyed; count++) await resetOne().catch(() => undefined)
    const [code] = await ended
    assert.equal(code, constants.NGHTTP2_NO_ERROR)
    session.destroy()
  }))

test('API-02 resources know no HEAD, other paths do', () =>
  withServer({}, async (listener) => {
    const statuses = ['/api/v1/pods', '/api/v1/namespaces/default', '/livez'].map(
      async (head) => (await rawHttp(listener, { method: 'HEAD', path: head })).status,
    )
    assert.deepEqual(await Promise.all(statuses), [405, 405, 200])
  }))
