/** What a connection may take of the one thread that serves all: few requests per turn of the event loop, and the cheapest cipher first. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { connect, DEFAULT_CIPHERS } from 'node:tls'
import { testCertificates } from '#testing/testCertificates'
import { get, headers, startServer, TestPeer, type TestServer } from './peer.ts'

const mostPerTurn = 8
let server: TestServer
let turn = 0
const begun = new Map<number, number>()

before(async () => {
  server = await startServer(async () => {
    begun.set(turn, (begun.get(turn) ?? 0) + 1)
    return { type: 'bytes', status: 200, contentType: 'text/plain', bytes: Buffer.from('x') }
  })
})
after(() => server.close())

test('API-33 a connection begins a few of many simultaneous requests per turn of the event loop', async () => {
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  count()
  const peer = await TestPeer.connect(server)
  const streams = Array.from({ length: 64 }, (_, index) => 2 * index + 1)
  // One record of TLS: it is read as one piece.
  peer.send(...streams.map((stream) => headers(stream, get('/'))))
  for (const stream of streams) await peer.end(stream)
  isOver = true
  peer.socket.destroy()
  const perTurn = [...begun.values()]
  assert.equal(
    perTurn.reduce((sum, one) => sum + one, 0),
    streams.length,
  )
  assert.deepEqual([...new Set(perTurn)], [mostPerTurn])
})

const first = 'TLS_AES_128_GCM_SHA256'
const chacha = 'TLS_CHACHA20_POLY1305_SHA256'
const cases = [
  { name: 'AES with 128 bits, although the client names 256 first', ciphers: `TLS_AES_256_GCM_SHA384:${chacha}:${first}`, want: first },
  { name: 'AES with 128 bits for what node offers', ciphers: DEFAULT_CIPHERS, want: first },
  { name: 'ChaCha20 for a client that names it first, having no AES in hardware', ciphers: `${chacha}:${first}`, want: chacha },
  { name: 'AES with 256 bits where the client has no other', ciphers: 'TLS_AES_256_GCM_SHA384', want: 'TLS_AES_256_GCM_SHA384' },
]
for (const { name, ciphers, want } of cases) {
  test(`API-33 TLS 1.3 chooses as Go does: ${name}`, async () => {
    assert.equal(await chosen(ciphers), want)
    const { cert, key } = await testCertificates()
    server.listener.setTls({ cert, key })
    assert.equal(await chosen(ciphers), want, 'with renewed certificates')
  })
}

function chosen(ciphers: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: server.listener.port, rejectUnauthorized: false, ciphers, minVersion: 'TLSv1.3', servername: '' }, () => {
      resolve(socket.getCipher().name)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}
