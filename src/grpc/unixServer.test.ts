import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Client, credentials, loadPackageDefinition, type ServiceError, status } from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { GrpcRefusal } from './grpcService.ts'
import { parseProto } from './protoText.ts'
import { maxSocketPath, serveUnix, type UnixServer } from './unixServer.ts'

const proto = `package t;
  message Text { string text = 1; }
  service Echo { rpc Say(Text) returns (Text); rpc Think(Text) returns (Text); }`
type Text = { readonly text: string }
type Caller = Client & Record<'Say' | 'Think', (request: Text, done: (error: ServiceError | null, answer?: Text) => void) => void>

async function withClient(run: (ask: (word: string, method?: 'Say' | 'Think') => Promise<string>, socket: string, server: UnixServer) => Promise<void>) {
  const directory = await mkdtemp(join(tmpdir(), 'grpc-'))
  const socket = join(directory, 'socket')
  const methods = {
    Say: async ({ text }: Text) => {
      if (text === 'refuse') throw new GrpcRefusal('NOT_FOUND', '100 % nothing für dich\n')
      if (text === 'throw') throw new Error('a bug')
      return { text: text.toUpperCase() }
    },
  }
  const server = await serveUnix(socket, [{ proto, service: 't.Echo', methods }])
  const { Echo } = loadPackageDefinition(fromJSON(parseProto(proto) as never, {})).t as unknown as { Echo: new (...args: unknown[]) => Caller }
  const client = new Echo(`unix:${socket}`, credentials.createInsecure(), { 'grpc.max_send_message_length': -1 })
  const ask = (text: string, method: 'Say' | 'Think' = 'Say') =>
    new Promise<string>((resolve, reject) => client[method]({ text }, (error, answer) => (error ? reject(error) : resolve(answer?.text ?? ''))))
  try {
    await run(ask, socket, server)
  } finally {
    client.close()
    await server.close()
    await rm(directory, { recursive: true })
  }
}

const fails = (code: number, details: RegExp) => (error: unknown) => (error as ServiceError).code === code && details.test((error as ServiceError).details)

test('a client of another implementation gets answers, refusals and errors', () =>
  withClient(async (ask) => {
    assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((word) => ask(word))), ['A', 'B', 'C'])
    assert.equal((await ask('x'.repeat(4_000_000))).length, 4_000_000)
    await assert.rejects(ask('refuse'), fails(status.NOT_FOUND, /^100 % nothing für dich\n$/))
    await assert.rejects(ask('throw'), fails(status.UNKNOWN, /^a bug$/))
    await assert.rejects(ask('a', 'Think'), fails(status.UNIMPLEMENTED, /does not implement the method \/t\.Echo\/Think/))
    assert.equal(await ask('after'), 'AFTER')
  }))

test('a request larger than four mebibytes is refused', () =>
  withClient(async (ask) => {
    await assert.rejects(ask('x'.repeat(5_000_000)), fails(status.RESOURCE_EXHAUSTED, /larger than max/))
    assert.equal(await ask('after'), 'AFTER')
  }))

test('only the owner connects; a closed server leaves no socket; another may take its place', () =>
  withClient(async (_, socket, server) => {
    assert.equal((await stat(socket)).mode & 0o777, 0o600)
    const other = await serveUnix(socket, [])
    await other.close()
    await server.close()
    await assert.rejects(stat(socket), { code: 'ENOENT' })
    await assert.rejects(serveUnix(`/${'x'.repeat(maxSocketPath)}`, []), /at most 107 bytes/)
  }))
