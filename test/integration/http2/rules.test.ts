/** Violations of HTTP/2 over a real TLS connection: which error ends the stream or the connection, and what still works afterwards. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { errorCode } from '#apiserver/server/http2/errors'
import { flag, frameType, goawayFrame, preface, rstStreamFrame, setting, settingsAck, settingsFrame, windowUpdateFrame } from '#apiserver/server/http2/frames'
import { block, frame, get, headers, hello, post, startServer, TestPeer, type TestServer } from './peer.ts'

let server: TestServer
before(async () => {
  server = await startServer(async (request) => {
    if (request.path === '/hold') await new Promise((_, reject) => request.cancellation.signal.addEventListener('abort', reject))
    const body = request.path === '/echo' ? await request.readBody(1 << 22) : undefined
    const bytes = body?.type === 'bytes' ? body.bytes : Buffer.alloc(Number(request.query.get('size') ?? 1), 'x')
    return { type: 'bytes', status: 200, contentType: 'text/plain', bytes }
  })
})
after(() => server.close())

const { protocolError, flowControlError, streamClosed, frameSizeError, refusedStream, compressionError, enhanceYourCalm } = errorCode
const regular = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/'],
] as const
const u32 = (...values: number[]) => {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4)
  return bytes
}
const endOfHeaders = flag.endHeaders
const open = headers(1, post('/hold'), endOfHeaders)
const data = (stream: number, payload: Uint8Array | string, flags = 0) => frame(frameType.data, flags, stream, payload)

/** [what is wrong, the code, what is sent after the beginning of a connection] */
const connectionErrors: readonly (readonly [string, number, ...Buffer[]])[] = [
  ['data on stream 0', protocolError, data(0, 'x')],
  ['data on an idle stream', protocolError, data(1, 'x')],
  ['data with more padding than payload', protocolError, open, data(1, '\x05abc', flag.padded)],
  ['padded data without a length', protocolError, open, data(1, '', flag.padded)],
  ['headers on stream 0', protocolError, headers(0, get('/'))],
  ['headers on a stream of the server', protocolError, headers(2, get('/'))],
  ['headers with more padding than payload', protocolError, headers(1, Buffer.from([200, 0x82]), 0xd)],
  ['headers too short for their priority', protocolError, headers(1, Buffer.from([0, 0, 0]), 0x25)],
  ['headers of a stream that is closed', streamClosed, headers(3, get('/')), headers(1, get('/'))],
  ['a header block that means nothing', compressionError, headers(1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))],
  ['a frame within a header block', protocolError, headers(1, get('/'), flag.endStream), frame(frameType.ping, 0, 0, '12345678')],
  ['a continuation of another stream', protocolError, headers(1, get('/'), flag.endStream), frame(frameType.continuation, 4, 3)],
  ['a continuation of nothing', protocolError, frame(frameType.continuation, 4, 1)],
  ['continuations without end', enhanceYourCalm, headers(1, get('/'), 0), ...Array.from({ length: 70 }, () => frame(frameType.continuation, 0, 1))],
  [
    'a header block without end',
    enhanceYourCalm,
    headers(1, get('/'), 0),
    ...Array.from({ length: 20 }, () => frame(frameType.continuation, 0, 1, Buffer.alloc(16_000))),
  ],
  ['a reset of an idle stream', protocolError, rstStreamFrame(1, 8)],
  ['a reset of stream 0', protocolError, rstStreamFrame(0, 8)],
  ['a reset of a wrong length', frameSizeError, open, frame(frameType.rstStream, 0, 1, 'abc')],
  ['settings of a stream', protocolError, frame(frameType.settings, 0, 1)],
  ['settings of a wrong length', frameSizeError, frame(frameType.settings, 0, 0, 'abcde')],
  ['an acknowledgement that says something', frameSizeError, frame(frameType.settings, flag.ack, 0, 'abcdef')],
  ['a wrong ENABLE_PUSH', protocolError, settingsFrame([[setting.enablePush, 2]])],
  ['a window that is too large to begin with', flowControlError, settingsFrame([[setting.initialWindowSize, 2 ** 31]])],
  ['a MAX_FRAME_SIZE that is too small', protocolError, settingsFrame([[setting.maxFrameSize, 16_383]])],
  ['a MAX_FRAME_SIZE that is too large', protocolError, settingsFrame([[setting.maxFrameSize, 2 ** 24]])],
  [
    'settings that make an open window too large',
    flowControlError,
    open,
    windowUpdateFrame(1, 2 ** 31 - 1 - 65_535),
    settingsFrame([[setting.initialWindowSize, 65_536]]),
  ],
  ['a push', protocolError, frame(frameType.pushPromise, 4, 1, u32(2))],
  ['a ping of a stream', protocolError, frame(frameType.ping, 0, 1, '12345678')],
  ['a ping of a wrong length', frameSizeError, frame(frameType.ping, 0, 0, '1234567')],
  ['a goaway of a stream', protocolError, frame(frameType.goaway, 0, 1, u32(0, 0))],
  ['a goaway of a wrong length', frameSizeError, frame(frameType.goaway, 0, 0, u32(0))],
  ['a window update of nothing', protocolError, windowUpdateFrame(0, 0)],
  ['a window update of an idle stream', protocolError, windowUpdateFrame(1, 1)],
  ['a window update of a wrong length', frameSizeError, frame(frameType.windowUpdate, 0, 0, 'abc')],
  ['a window that grows too large', flowControlError, windowUpdateFrame(0, 2 ** 31 - 1)],
  ['a frame that is too large', frameSizeError, open, data(1, Buffer.alloc(16_385))],
  ['a priority of stream 0', protocolError, frame(frameType.priority, 0, 0, Buffer.alloc(5))],
  ['pings without end', enhanceYourCalm, Buffer.concat(Array.from({ length: 12_000 }, () => frame(frameType.ping, 0, 0, '12345678')))],
  ['settings without end', enhanceYourCalm, Buffer.concat(Array.from({ length: 12_000 }, () => settingsFrame([])))],
  ['empty data without end', enhanceYourCalm, open, Buffer.concat(Array.from({ length: 12_000 }, () => data(1, '')))],
  ['priorities without end', enhanceYourCalm, Buffer.concat(Array.from({ length: 12_000 }, () => frame(frameType.priority, 0, 1, Buffer.alloc(5))))],
]
for (const [name, code, ...sent] of connectionErrors)
  test(`API-02 ${name} is an error of the connection`, { timeout: 20_000 }, async () => {
    const peer = await TestPeer.connect(server)
    const { payload } = await peer.send(...sent).of(frameType.goaway, 0)
    assert.equal(payload.readUInt32BE(4), code)
    await peer.closed()
  })

const beginnings: readonly (readonly [string, Buffer])[] = [
  ['HTTP/1.1', Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n')],
  ['a preface with one letter wrong', Buffer.concat([preface.subarray(0, 23), Buffer.from('x'), settingsFrame([])])],
  ['a request before the settings', Buffer.concat([preface, headers(1, get('/'))])],
  ['an acknowledgement before the settings', Buffer.concat([preface, settingsAck])],
]
for (const [name, sent] of beginnings)
  test(`API-02 a connection that begins with ${name} ends`, { timeout: 20_000 }, async () => {
    const peer = await TestPeer.connect(server, sent)
    assert.equal((await peer.of(frameType.goaway, 0)).payload.readUInt32BE(4), protocolError)
    await peer.closed()
  })

const pairs = (...fields: (readonly [string, string])[]) => headers(1, block(fields))
/** [what is wrong, the code, what is sent]: stream 1 is reset, and the connection stays open. */
const streamErrors: readonly (readonly [string, number, ...Buffer[]])[] = [
  ['no method', protocolError, pairs([':scheme', 'https'], [':path', '/'])],
  ['no scheme', protocolError, pairs([':method', 'GET'], [':path', '/'])],
  ['no path', protocolError, pairs([':method', 'GET'], [':scheme', 'https'])],
  ['an empty path', protocolError, pairs([':method', 'GET'], [':scheme', 'https'], [':path', ''])],
  ['a path that is none', protocolError, pairs([':method', 'GET'], [':scheme', 'https'], [':path', 'x'])],
  ['two paths', protocolError, pairs(...regular, [':path', '/b'])],
  ['a method that is none', protocolError, pairs([':method', 'G T'], [':scheme', 'https'], [':path', '/'])],
  ['an unknown pseudo field', protocolError, pairs(...regular, [':other', 'x'])],
  ['a pseudo field of answers', protocolError, pairs(...regular, [':status', '200'])],
  ['a pseudo field after a header', protocolError, pairs([':method', 'GET'], [':scheme', 'https'], ['a', 'b'], [':path', '/'])],
  ['CONNECT with a path', protocolError, pairs([':method', 'CONNECT'], [':authority', 'a'], [':path', '/'])],
  ['an upper-case name', protocolError, pairs(...regular, ['A', 'b'])],
  ['an empty name', protocolError, pairs(...regular, ['', 'b'])],
  ['a name with a space', protocolError, pairs(...regular, ['a b', 'c'])],
  ['a value with a line break', protocolError, pairs(...regular, ['a', 'b\r\nc: d'])],
  ['a value that begins with a space', protocolError, pairs(...regular, ['a', ' b'])],
  ['a connection header', protocolError, pairs(...regular, ['connection', 'close'])],
  ['transfer-encoding', protocolError, pairs(...regular, ['transfer-encoding', 'chunked'])],
  ['upgrade', protocolError, pairs(...regular, ['upgrade', 'websocket'])],
  ['keep-alive', protocolError, pairs(...regular, ['keep-alive', 'x'])],
  ['te', protocolError, pairs(...regular, ['te', 'gzip'])],
  ['two hosts', protocolError, pairs(...regular, [':authority', 'a'], ['host', 'b'])],
  ['a length that is none', protocolError, pairs(...regular, ['content-length', '+1'])],
  ['two lengths', protocolError, pairs(...regular, ['content-length', '0'], ['content-length', '1'])],
  ['a length without a body', protocolError, headers(1, post('/echo', [['content-length', '5']]))],
  ['more body than announced', protocolError, headers(1, post('/echo', [['content-length', '2']]), endOfHeaders), data(1, 'abc')],
  ['less body than announced', protocolError, headers(1, post('/echo', [['content-length', '4']]), endOfHeaders), data(1, 'abc', flag.endStream)],
  [
    'less body than announced, before trailers',
    protocolError,
    headers(1, post('/echo', [['content-length', '4']]), endOfHeaders),
    data(1, 'abc'),
    headers(1, block([['a', 'b']])),
  ],
  ['trailers that do not end', protocolError, open, headers(1, block([['a', 'b']]), endOfHeaders)],
  ['trailers with a pseudo field', protocolError, open, headers(1, block([[':path', '/']]))],
  ['data after the end', streamClosed, headers(1, get('/hold')), data(1, 'x')],
  ['headers after the end', streamClosed, headers(1, get('/hold')), headers(1, block([['a', 'b']]))],
  ['a window update of nothing', protocolError, open, windowUpdateFrame(1, 0)],
  ['a window that grows too large', flowControlError, open, windowUpdateFrame(1, 2 ** 31 - 1)],
  ['a priority of a wrong length', frameSizeError, open, frame(frameType.priority, 0, 1, 'abcd')],
]
for (const [name, code, ...sent] of streamErrors)
  test(`API-02 a request with ${name} is an error of its stream`, { timeout: 20_000 }, async () => {
    const peer = await TestPeer.connect(server)
    const { payload } = await peer.send(...sent).of(frameType.rstStream, 1)
    assert.equal(payload.readUInt32BE(0), code)
    // Frames that the client sent before it saw the reset are ignored.
    peer.send(data(1, 'late'), windowUpdateFrame(1, 1), rstStreamFrame(1, 8), headers(1, block([['late', 'x']])), headers(5, get('/')))
    await peer.end(5)
    assert.equal(peer.body(5).toString(), 'x')
    assert.equal(
      peer.frames.some(({ type, stream }) => type === frameType.headers && stream === 1),
      false,
    )
    peer.socket.destroy()
  })

/** [what it is, what is sent]: stream 1 is answered. */
const good: readonly (readonly [string, ...Buffer[]])[] = [
  ['padding and a priority', headers(1, Buffer.concat([Buffer.from([3, 0x80, 0, 0, 0, 7]), get('/'), Buffer.alloc(3)]), 0x2d)],
  ['a block in three pieces', headers(1, get('/').subarray(0, 9), flag.endStream), frame(9, 0, 1), frame(9, 4, 1, get('/').subarray(9))],
  ['frames of unknown types', frame(0x77, 0xff, 0, 'abc'), frame(0xfe, 0, 9, ''), headers(1, get('/'))],
  [
    'unknown settings',
    settingsFrame([
      [0x99, 7],
      [setting.maxConcurrentStreams, 3],
    ]),
    headers(1, get('/')),
  ],
  [
    'priorities of any stream',
    frame(frameType.priority, 0, 1, u32(9, 0).subarray(0, 5)),
    frame(frameType.priority, 0, 99, Buffer.alloc(5)),
    headers(1, get('/')),
  ],
  ['te: trailers', headers(1, get('/', [['te', 'trailers']]))],
  [
    'the same length twice',
    headers(
      1,
      post('/echo', [
        ['content-length', '1'],
        ['content-length', '1'],
      ]),
      endOfHeaders,
    ),
    data(1, 'x', flag.endStream),
  ],
  ['padded data', headers(1, post('/echo', [['content-length', '1']]), endOfHeaders), data(1, '\x03x\0\0\0', 9)],
  ['trailers', headers(1, post('/echo', [['content-length', '1']]), endOfHeaders), data(1, 'x'), headers(1, block([['a', 'b']]))],
  [
    'OPTIONS of everything',
    headers(
      1,
      block([
        [':method', 'OPTIONS'],
        [':scheme', 'https'],
        [':path', '*'],
      ]),
    ),
  ],
  ['the same host twice', headers(1, get('/', [['host', 'a']]))],
]
for (const [name, ...sent] of good)
  test(`API-02 a request with ${name} is answered`, { timeout: 20_000 }, async () => {
    const peer = await TestPeer.connect(server)
    await peer.send(...sent).end(1)
    assert.equal(peer.body(1).toString(), 'x')
    peer.socket.destroy()
  })

test('API-02 a ping is answered with what it said, and an acknowledgement is not', async () => {
  const peer = await TestPeer.connect(server)
  peer.send(frame(frameType.ping, flag.ack, 0, 'nothing.'), frame(frameType.ping, 0, 0, '12345678'))
  const { flags, payload } = await peer.of(frameType.ping, 0)
  assert.deepEqual([flags, payload.toString()], [flag.ack, '12345678'])
  peer.socket.destroy()
})

test('API-02 too many headers are answered with 431', async () => {
  const peer = await TestPeer.connect(server)
  // Each byte stands for a field of 4,000: a bomb.
  const bomb = Buffer.concat([get('/'), Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4_000, 'b'), Buffer.alloc(12_000, 0xbe)])
  peer.send(headers(1, bomb))
  const { payload } = await peer.of(frameType.headers, 1)
  assert.match(payload.toString('latin1'), /431/)
  await peer.send(headers(3, get('/'))).end(3)
  peer.socket.destroy()
})

test('API-02 streams beyond what was granted are refused', async () => {
  const peer = await TestPeer.connect(server)
  const { payload: settings } = await peer.of(frameType.settings, 0)
  const most = settings.readUInt32BE(2)
  assert.deepEqual([settings.readUInt16BE(0), most], [setting.maxConcurrentStreams, 100])
  peer.send(...Array.from({ length: most + 1 }, (_, index) => headers(index * 2 + 1, get('/hold'))))
  const { payload } = await peer.of(frameType.rstStream, most * 2 + 1)
  assert.equal(payload.readUInt32BE(0), refusedStream)
  peer.socket.destroy()
})

test('API-02 a body larger than its window is an error of the stream', async () => {
  const peer = await TestPeer.connect(server)
  peer.send(open, ...Array.from({ length: 65 }, () => data(1, Buffer.alloc(16_384))))
  assert.equal((await peer.of(frameType.rstStream, 1)).payload.readUInt32BE(0), flowControlError)
  // The bytes of the reset stream were given back to the connection's window: other streams can send.
  for (let stream = 3; stream < 40; stream += 2)
    peer.send(
      headers(stream, post('/echo'), endOfHeaders),
      ...Array.from({ length: 60 }, () => data(stream, Buffer.alloc(16_384))),
      data(stream, '', flag.endStream),
    )
  peer.send(windowUpdateFrame(0, 2 ** 30), ...Array.from({ length: 19 }, (_, index) => windowUpdateFrame(index * 2 + 3, 2 ** 20)))
  await peer.end(39)
  assert.equal(peer.body(39).length, 60 * 16_384)
  peer.socket.destroy()
})

test('API-02 more data than the connection may send is an error of the connection', { timeout: 20_000 }, async () => {
  const peer = await TestPeer.connect(server)
  for (let stream = 1; stream < 20; stream += 2)
    peer.send(headers(stream, post('/hold'), endOfHeaders), ...Array.from({ length: 64 }, () => data(stream, Buffer.alloc(16_384))))
  assert.equal((await peer.of(frameType.goaway, 0)).payload.readUInt32BE(4), flowControlError)
  await peer.closed()
})

test('API-02 an answer waits for the windows of stream and connection', async () => {
  const peer = await TestPeer.connect(server, hello([[setting.initialWindowSize, 10]]))
  peer.send(headers(1, get('/?size=70000')))
  const sentBy = async (wanted: number) => {
    await peer.wait(() => peer.body(1).length >= wanted)
    await peer
      .send(frame(frameType.ping, 0, 0, String(wanted).padStart(8)))
      .wait(({ type, payload }) => type === frameType.ping && payload.toString() === String(wanted).padStart(8))
    return peer.body(1).length
  }
  assert.equal(await sentBy(10), 10)
  peer.send(windowUpdateFrame(1, 5))
  assert.equal(await sentBy(15), 15)
  peer.send(settingsFrame([[setting.initialWindowSize, 20]]))
  assert.equal(await sentBy(25), 25)
  // Smaller again: the window is negative, and 20 of the next 25 fill it up.
  peer.send(settingsFrame([[setting.initialWindowSize, 0]]), windowUpdateFrame(1, 25))
  assert.equal(await sentBy(30), 30)
  peer.send(windowUpdateFrame(1, 100_000))
  assert.equal(await sentBy(65_535), 65_535)
  peer.send(windowUpdateFrame(0, 100_000))
  await peer.end(1)
  assert.equal(peer.body(1).length, 70_000)
  peer.socket.destroy()
})

test('API-02 after GOAWAY, open streams are answered and later ones are ignored', { timeout: 20_000 }, async () => {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const own = await startServer(async () => {
    await released
    return { type: 'bytes', status: 200, contentType: 'a/b', bytes: Buffer.from('x') }
  })
  const peer = await TestPeer.connect(own)
  peer.send(headers(1, get('/')), headers(3, post('/'), endOfHeaders), frame(frameType.ping, 0, 0, '12345678'))
  await peer.of(frameType.ping, 0)
  const closed = own.close()
  const { payload } = await peer.of(frameType.goaway, 0)
  assert.deepEqual([payload.readUInt32BE(0), payload.readUInt32BE(4)], [3, 0])
  peer.send(
    headers(5, post('/'), endOfHeaders),
    data(5, 'x'),
    windowUpdateFrame(5, 1),
    rstStreamFrame(5, 8),
    data(3, 'x', flag.endStream),
    frame(frameType.ping, 0, 0, '87654321'),
  )
  await peer.wait(({ payload: said }) => said.toString() === '87654321')
  release()
  await peer.end(1)
  await peer.end(3)
  assert.deepEqual(
    peer.frames.filter(({ stream }) => stream > 3),
    [],
  )
  await peer.closed()
  await closed
})

test('API-02 a client that goes away gets its answers, and then the connection ends', { timeout: 20_000 }, async () => {
  const peer = await TestPeer.connect(server)
  await peer.send(headers(1, get('/')), goawayFrame(0, 0)).end(1)
  await peer.closed()
})
