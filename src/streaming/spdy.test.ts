import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { constants, deflateSync } from 'node:zlib'
import { SpdyConnection, type SpdyStream } from './spdy.ts'
import { spdyDictionary } from './spdyDictionary.ts'

/** Two SPDY ends over a real loopback connection. */
async function pair(onStream: (stream: SpdyStream) => void) {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clientSocket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  const [serverSocket] = (await once(server, 'connection')) as [net.Socket]
  const accepted = new SpdyConnection(serverSocket, { client: false, onStream })
  const client = new SpdyConnection(clientSocket, { client: true })
  const close = async () => {
    client.close()
    accepted.close()
    server.close()
    await once(server, 'close')
  }
  return { client, accepted, close }
}

test('the dictionary is the specification’s', () => {
  assert.equal(spdyDictionary().length, 1423)
  // The checksum with which zlib names the dictionary in every stream of SPDY/3: 78bb e3c6a7c2.
  const header = deflateSync(Buffer.alloc(0), { dictionary: spdyDictionary() })
  assert.equal(header.readUInt32BE(2).toString(16), 'e3c6a7c2')
})

test('ARC-05 many streams carry their headers and echo their bytes, half-closing each way', async () => {
  const seen: string[] = []
  const { client, close } = await pair((stream) => {
    seen.push(stream.headers.streamtype ?? '')
    void stream.accept().then(() => stream.pipe(stream))
  })
  const big = 'x'.repeat(300_000)
  for (const [name, body] of [
    ['stdin', 'hello'],
    ['data', big],
    ['error', ''],
  ] as const) {
    const stream = await client.open({ streamtype: name, port: '80' })
    stream.end(body)
    assert.equal(await text(stream), body)
  }
  assert.deepEqual(seen, ['stdin', 'data', 'error'])
  await close()
})

test('what was sent before the connection ends is still read', async () => {
  const { client, accepted, close } = await pair((stream) => {
    stream.write('last words')
    stream.end(() => accepted.close())
  })
  const stream = await client.open({ streamtype: 'stdout' })
  assert.equal(await text(stream), 'last words')
  await close()
})

/** Lets the event loop go round: over loopback, what has not arrived after many turns is not coming. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn()
}

test('a stream without a reader stalls the writer instead of filling memory', async () => {
  const streams: SpdyStream[] = []
  const { client, close } = await pair((stream) => streams.push(stream))
  const stream = await client.open({ streamtype: 'stdin' })
  let written = 0
  const chunk = Buffer.alloc(64 * 1024)
  for (; written < 64 * 1024 * 1024; written += chunk.length) {
    const stopped = await Promise.race([new Promise<boolean>((resolve) => stream.write(chunk, () => resolve(false))), turns(2_000).then(() => true)])
    if (stopped) break
  }
  assert.ok(written < 64 * 1024 * 1024, 'the writer was never stopped')
  assert.ok((streams[0]?.readableLength ?? 0) < 4 * 1024 * 1024)
  await close()
})

/** An end whose socket the test plays: what it gets, cut as the test likes. */
async function played() {
  const socket = new PassThrough()
  const ours = new PassThrough().resume()
  const connection = new SpdyConnection(Duplex.from({ readable: socket, writable: ours }), { client: true })
  const stream = await connection.open({ streamtype: 'data' })
  return { socket, connection, stream }
}
const dataFrame = (id: number, flags: number, length: number) => Buffer.from([0, 0, 0, id, flags, length >>> 16, (length >>> 8) & 255, length & 255])

test('a data frame is passed on as it comes, and ends the stream with its last byte only', async () => {
  const { socket, connection, stream } = await played()
  const body = Buffer.from('abcdefgh')
  const bytes = Buffer.concat([dataFrame(1, 0, 3), body.subarray(0, 3), dataFrame(1, 1, 5), body.subarray(3)])
  const read: string[] = []
  stream.on('data', (chunk: Buffer) => read.push(chunk.toString()))
  for (const byte of bytes.subarray(0, -1)) {
    socket.write(Buffer.from([byte]))
    await nextTurn()
  }
  assert.deepEqual([read.join(''), stream.readableEnded], ['abcdefg', false])
  socket.write(bytes.subarray(-1))
  await once(stream, 'end')
  assert.equal(read.join(''), 'abcdefgh')
  connection.close()
})

test('a control frame longer than any header block closes the connection before it has come', async () => {
  const { socket, connection } = await played()
  const closed = new Promise<void>((resolve) => connection.onClose(resolve))
  socket.write(Buffer.from('8003000800ffffff', 'hex'))
  await closed
})

test('what was received before a failed read is handled, also what waited for zlib', async () => {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() }).on('error', () => {})
  const connection = new SpdyConnection(socket, { client: true })
  const stream = await connection.open({ streamtype: 'error' })
  const dictionary = spdyDictionary()
  const noHeaders = deflateSync(Buffer.alloc(4), { dictionary, finishFlush: constants.Z_SYNC_FLUSH })
  const reply = Buffer.concat([Buffer.from([0x80, 3, 0, 2, 0, 0, 0, 4 + noHeaders.length, 0, 0, 0, 1]), noHeaders])
  socket.push(reply)
  await nextTurn()
  // The reply is being inflated: what comes now waits in the paused socket.
  socket.push(Buffer.concat([dataFrame(1, 0, 6), Buffer.from('status')]))
  socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  assert.equal(await text(stream), 'status')
  assert.ok(connection.closed)
})

test('garbage closes the connection and nothing else', async () => {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [net.Socket]
  const connection = new SpdyConnection(accepted, { client: false })
  const closed = new Promise<void>((resolve) => connection.onClose(resolve))
  socket.write(Buffer.from('8003000100000014ffffffffffffffffffffffffffffffffffffffff', 'hex'))
  await closed
  socket.destroy()
  server.close()
})
