import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { testCertificates } from '#testing/testCertificates'
import { addressOf, connectGrpc, type GrpcConnection, type GrpcConnectionOptions } from './grpcConnection.ts'
import { GrpcError } from './grpcError.ts'
import { reconnecting } from './grpcSession.ts'
import { frame } from './grpcWire.ts'

const request = Buffer.from('request')
const never = new AbortController().signal
const call = (connection: GrpcConnection, path = '/echo', timeoutMs = 60_000) => connection.unary(path, request, { timeoutMs })
const failsWith = (code: string, isUnsent: boolean) => (error: unknown) =>
  error instanceof GrpcError && error.code === code && error.isUnsent === isUnsent ? true : assert.fail(error as Error)

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface World {
  readonly target: string
  readonly sessions: readonly ServerHttp2Session[]
  /** Paths of the calls, in their order. */
  readonly calls: readonly string[]
  connect(options: GrpcConnectionOptions): GrpcConnection
}

/** A server that answers each call with 100 bytes, and `/wait` never. */
async function withServer(run: (world: World) => Promise<void>): Promise<void> {
  const sessions: ServerHttp2Session[] = []
  const calls: string[] = []
  const server = createHttp2Server()
  server.on('session', (session) => sessions.push(session))
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    calls.push(String(headers[':path']))
    if (headers[':path'] === '/wait') return void stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(frame(Buffer.alloc(100)))
  })
  const target = await listen(server)
  const connections: GrpcConnection[] = []
  const connect = (options: GrpcConnectionOptions) => {
    const connection = connectGrpc(target, options)
    connections.push(connection)
    return connection
  }
  try {
    await run({ target, sessions, calls, connect })
  } finally {
    for (const connection of connections) connection.close()
    for (const session of sessions) session.destroy()
    server.close()
  }
}

/** A program that is stopped: its kernel accepts connections, and nothing answers. */
async function withSilentServer(run: (target: string) => Promise<void>): Promise<void> {
  const sockets: Socket[] = []
  const server = createServer((socket) => sockets.push(socket))
  try {
    await run(await listen(server))
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

test('ETC-20 a connection that the server does not answer is given up after the connect timeout, and the call counts as unsent', () =>
  withSilentServer(async (target) => {
    const connection = connectGrpc(target, { connectTimeoutMs: 30 })
    await assert.rejects(call(connection), failsWith('UNAVAILABLE', true))
    await assert.rejects(connection.ready(never), failsWith('UNAVAILABLE', true))
    connection.close()
  }))

test('ETC-20 a deadline that passes before the connection is ready leaves the call unsent', () =>
  withSilentServer(async (target) => {
    const connection = connectGrpc(target, { connectTimeoutMs: 60_000 })
    await assert.rejects(call(connection, '/echo', 30), failsWith('DEADLINE_EXCEEDED', true))
    await assert.rejects(connection.unary('/echo', request, { timeoutMs: 30, waitForReady: true }), failsWith('DEADLINE_EXCEEDED', true))
    connection.close()
  }))

test('ETC-20 a deadline that passes after the call was sent does not mark it as unsent', () =>
  withServer(async ({ connect }) => {
    const connection = connect({})
    await connection.ready(never)
    await assert.rejects(call(connection, '/wait', 30), failsWith('DEADLINE_EXCEEDED', false))
  }))

test('ETC-20 a session that was destroyed in this turn carries no more calls: a new one is opened', () =>
  withServer(async ({ target, sessions }) => {
    const options = { address: addressOf(target), tls: undefined, keepAlive: undefined, connectTimeoutMs: 60_000, greet: undefined }
    const { established, ready, request: send, close } = reconnecting(options)
    const first = await ready({ ended: never, waitForReady: false })
    assert.equal(established(), first)
    // It emits "close" in a later turn.
    first.destroy()
    assert.equal(established(), undefined)
    assert.throws(() => send(first, { ':path': '/echo' }), failsWith('UNAVAILABLE', true))
    const second = await ready({ ended: never, waitForReady: false })
    assert.ok(!second.destroyed && second !== first)
    assert.equal(sessions.length, 2)
    close()
  }))

test('an answer that is larger than the limit fails the call with both numbers', () =>
  withServer(async ({ connect }) => {
    const limited = connect({ maxMessageBytes: 99 })
    await assert.rejects(call(limited), (error) => error instanceof GrpcError && error.code === 'RESOURCE_EXHAUSTED' && /100 vs 99/.test(error.message))
    assert.equal((await call(connect({ maxMessageBytes: 100 }))).length, 100)
  }))

test('ETC-19 a server that asks for a client certificate after the handshake fails the call at once, with its reason', async () => {
  const { cert, key } = await testCertificates()
  const server = createTlsServer({ cert, key, ca: cert, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] })
  const connection = connectGrpc(await listen(server), { tls: { ca: cert } })
  for (let calls = 0; calls < 2; calls++)
    await assert.rejects(call(connection), (error) => failsWith('UNAVAILABLE', true)(error) && /remote error: tls: certificate required$/.test(String(error)))
  connection.close()
  server.close()
})

test('ETC-20 each new connection is greeted before its first call', () =>
  withServer(async ({ connect, calls, sessions }) => {
    const answers: number[] = []
    const greeting = { path: '/hello', request, accept: (answer: Buffer) => void answers.push(answer.length) }
    const connection = connect({ greeting })
    await Promise.all([call(connection), call(connection)])
    assert.deepEqual(calls, ['/hello', '/echo', '/echo'])
    sessions[0]?.destroy()
    await assert.doesNotReject(call(connection).catch(() => call(connection)))
    assert.deepEqual(calls.slice(3), ['/hello', '/echo'])
    assert.deepEqual(answers, [100, 100])
  }))

test('ETC-20 a connection whose greeting is refused carries no call', () =>
  withServer(async ({ connect, calls }) => {
    const accept = () => {
      throw new GrpcError('UNAVAILABLE', 'a stranger')
    }
    const connection = connect({ greeting: { path: '/hello', request, accept } })
    await assert.rejects(call(connection), (error) => failsWith('UNAVAILABLE', true)(error) && (error as Error).message === 'a stranger')
    assert.deepEqual(calls, ['/hello'])
  }))

test('ETC-20 a greeting without an answer is given up after the connect timeout', () =>
  withServer(async ({ connect }) => {
    const connection = connect({ connectTimeoutMs: 100, greeting: { path: '/wait', request, accept: () => {} } })
    await assert.rejects(call(connection), failsWith('UNAVAILABLE', true))
  }))
