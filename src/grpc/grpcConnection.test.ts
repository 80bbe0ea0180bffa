import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { connectGrpc } from './grpcConnection.ts'
import { GrpcError, statusNames } from './grpcError.ts'
import { loadService } from './protoMessage.ts'
import { parseProto } from './protoText.ts'

const text = `package t;
  message Text { string text = 1; }
  service Echo { rpc Say(Text) returns (Text); rpc Count(Text) returns (stream Text); rpc Talk(stream Text) returns (stream Text); }`
const say = loadService(text, 't.Echo').get('Say')!
const count = loadService(text, 't.Echo').get('Count')!
const talk = loadService(text, 't.Echo').get('Talk')!
type Text = { readonly text: string }

/** A server of another implementation. It answers in capitals, fails with the status code that the text names, and never answers "wait". */
async function serve(target: string): Promise<Server> {
  const { Echo } = loadPackageDefinition(fromJSON(parseProto(text) as never, { defaults: true })).t as unknown as Record<string, { service: ServiceDefinition }>
  const server = new Server({ 'grpc.max_receive_message_length': -1 })
  const calls = {
    Say: ({ request }: ServerUnaryCall<Text, Text>, done: sendUnaryData<Text>) => {
      if (request.text === 'wait') return
      const code = Number(request.text)
      if (request.text !== '' && code >= 0) done({ code, details: `100 % "${statusNames[code]}" für dich\n` })
      else done(null, { text: request.text.toUpperCase() })
    },
    Count: (call: ServerWritableStream<Text, Text>) => {
      for (const word of call.request.text.split(' ')) call.write({ text: word })
      if (call.request.text.endsWith('fail')) call.emit('error', { code: 9, details: 'not now' })
      else if (!call.request.text.endsWith('wait')) call.end()
    },
  }
  const talks = {
    // Answers in capitals with the header "tone", and ends with the word "bye".
    Talk: (call: ServerDuplexStream<Text, Text>) =>
      call.on('data', ({ text: word }: Text) => {
        if (word === 'fail') call.emit('error', { code: 9, details: 'not now' })
        else if (word === 'bye') call.end()
        else call.write({ text: word.toUpperCase() + (call.metadata.get('tone')[0] ?? '') })
      }),
  }
  server.addService(Echo?.service as ServiceDefinition, { ...calls, ...talks } as never)
  await new Promise<void>((resolve, reject) => server.bindAsync(target, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())))
  return server
}

interface World {
  readonly target: string
  readonly connection: ReturnType<typeof connectGrpc>
  /** As it is now. */
  server: Server
  ask(word: string, options?: { timeoutMs?: number; signal?: AbortSignal; waitForReady?: boolean }): Promise<string>
}

async function withServer(run: (world: World) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'grpc-'))
  const target = `unix:${directory}/socket`
  const connection = connectGrpc(target)
  const ask: World['ask'] = async (word, options = {}) =>
    (say.response.decode(await connection.unary(say.path, say.request.encode({ text: word }), { timeoutMs: 60_000, ...options })) as Text).text
  const world: World = { target, connection, server: await serve(target), ask }
  try {
    await run(world)
  } finally {
    connection.close()
    world.server.forceShutdown()
    await rm(directory, { recursive: true })
  }
}

async function wordsOf(world: World, words: string, signal = new AbortController().signal, onWord = (_: string) => {}): Promise<string[]> {
  const seen: string[] = []
  for await (const message of world.connection.stream(count.path, count.request.encode({ text: words }), { signal })) {
    const { text } = count.response.decode(message) as Text
    seen.push(text)
    onWord(text)
  }
  return seen
}

test('calls are answered, many at once and larger than any window', () =>
  withServer(async ({ ask }) => {
    const answers = await Promise.all(Array.from({ length: 300 }, (_, index) => ask(`word ${index}`)))
    assert.deepEqual(
      answers,
      Array.from({ length: 300 }, (_, index) => `WORD ${index}`),
    )
    assert.equal((await ask('x'.repeat(9_000_000))).length, 9_000_000)
    assert.equal(await ask(''), '')
  }))

test('every status comes by name with its words', () =>
  withServer(async ({ ask }) => {
    for (const [number, code] of statusNames.entries()) {
      if (number === 0) continue
      await assert.rejects(ask(String(number)), (error) => error instanceof GrpcError && error.code === code && error.message === `100 % "${code}" für dich\n`)
    }
    await assert.rejects(ask('99'), (error) => error instanceof GrpcError && error.code === 'UNKNOWN')
  }))

test('a call that is not answered ends with its deadline, or with its signal', () =>
  withServer(async ({ ask }) => {
    await assert.rejects(ask('wait', { timeoutMs: 20 }), (error) => error instanceof GrpcError && error.code === 'DEADLINE_EXCEEDED')
    const stopping = new AbortController()
    const asked = ask('wait', { signal: stopping.signal })
    assert.equal(await ask('meanwhile'), 'MEANWHILE')
    stopping.abort(new Error('enough'))
    await assert.rejects(asked, /enough/)
    await assert.rejects(ask('again', { signal: stopping.signal }), /enough/)
    assert.equal(await ask('after'), 'AFTER')
  }))

test('a stream ends with the server, with an error, or with its signal', () =>
  withServer(async (world) => {
    assert.deepEqual(await wordsOf(world, 'one two three'), ['one', 'two', 'three'])
    await assert.rejects(
      wordsOf(world, 'one fail'),
      (error) => error instanceof GrpcError && error.code === 'FAILED_PRECONDITION' && error.message === 'not now',
    )
    const stopping = new AbortController()
    const onWord = (word: string) => {
      if (word === 'wait') stopping.abort()
    }
    assert.deepEqual(await wordsOf(world, 'one wait', stopping.signal, onWord), ['one', 'wait'])
    assert.deepEqual(await wordsOf(world, 'one', stopping.signal), [])
  }))

test('both sides of a call send messages, until the server ends it, fails it, or the signal fires', () =>
  withServer(async ({ connection }) => {
    const answersTo = async (last: string, stopping = new AbortController()) => {
      const call = connection.duplex(talk.path, { signal: stopping.signal, metadata: { tone: '!' } })
      const send = (word: string) => call.send(talk.request.encode({ text: word }))
      send('one')
      const seen: string[] = []
      for await (const message of call.messages) {
        seen.push((talk.response.decode(message) as Text).text)
        if (seen.length === 1) send('two')
        else if (last === 'abort') stopping.abort()
        else send(last)
      }
      return seen
    }
    assert.deepEqual(await answersTo('bye'), ['ONE!', 'TWO!'])
    assert.deepEqual(await answersTo('abort'), ['ONE!', 'TWO!'])
    await assert.rejects(answersTo('fail'), (error) => error instanceof GrpcError && error.code === 'FAILED_PRECONDITION')
  }))

test('a call that never left is marked, and one that was lost after it left is not', () =>
  withServer(async (world) => {
    const lost = world.ask('wait')
    await world.ask('there')
    world.server.forceShutdown()
    await assert.rejects(lost, (error) => error instanceof GrpcError && !error.isUnsent)
    await assert.rejects(world.ask('late'), (error) => error instanceof GrpcError && error.isUnsent)
  }))

test('a connection that broke fails its calls and is opened again by the next', () =>
  withServer(async (world) => {
    const { ask, target } = world
    const asked = ask('wait')
    const streamed = wordsOf(world, 'wait', undefined, () => world.server.forceShutdown())
    const unavailable = (error: unknown) => error instanceof GrpcError && error.code === 'UNAVAILABLE'
    await Promise.all([assert.rejects(asked, unavailable), assert.rejects(streamed, unavailable)])
    await assert.rejects(ask('nobody is there'), unavailable)
    world.server = await serve(target)
    assert.equal(await ask('again'), 'AGAIN')
  }))

test('a call that waits for the server is answered once the server listens', () =>
  withServer(async (world) => {
    world.server.forceShutdown()
    const patient = world.ask('late', { waitForReady: true })
    await assert.rejects(world.ask('never', { waitForReady: true, timeoutMs: 10 }), (error) => error instanceof GrpcError && error.code === 'DEADLINE_EXCEEDED')
    world.server = await serve(world.target)
    assert.equal(await patient, 'LATE')
  }))

test('over TCP too; what speaks no HTTP/2 is unavailable', async () => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const connection = connectGrpc(`127.0.0.1:${port}`)
  try {
    const call = connection.unary(say.path, say.request.encode({}), { timeoutMs: 60_000 })
    await assert.rejects(call, (error) => error instanceof GrpcError && error.code === 'UNAVAILABLE')
  } finally {
    connection.close()
    server.close()
  }
})
