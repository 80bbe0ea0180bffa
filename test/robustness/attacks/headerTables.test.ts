/**
 * Floods of header fields for HPACK's dynamic table: entries that evict each other, a table that is resized again and again, small entries that are
 * referred to over and over. The table never grows, another client is served meanwhile, and the connection is closed or kept as the RFC requires.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { frameType } from '#apiserver/server/http2/frames'
import { block, frame, headers, hello } from '../../integration/http2/peer.ts'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const heldMoreAtMost = 32 * 1024 * 1024
const mostMs = 1_000
const frames = 4_000

let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack()
})
after(() => server.stop())

const request = block([
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/version'],
  ['authorization', 'Bearer mallory'],
])
const integer = (prefix: number, value: number, first = 0): number[] => {
  const most = 2 ** prefix - 1
  if (value < most) return [first | value]
  const bytes = [first | most]
  for (let rest = value - most; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest >= 128 ? (rest % 128) | 128 : rest)
    if (rest < 128) return bytes
  }
}
const text = (value: string) => [...integer(7, value.length), ...Buffer.from(value, 'latin1')]
/** A field that the table takes in. */
const remembered = (name: string, value: string) => Buffer.from([...integer(6, 0, 0x40), ...text(name), ...text(value)])
const tableSize = (bytes: number) => Buffer.from(integer(5, bytes, 0x20))
const newest = Buffer.from([0x80 | 62])

const sizes = Buffer.concat(Array.from({ length: 500 }, (_, index) => tableSize(index % 2 === 0 ? 0 : 4_096)))

const floods: readonly { readonly name: string; readonly before?: Buffer; readonly fields: (index: number) => Buffer }[] = [
  { name: 'entries that push each other out', fields: (index) => Buffer.concat([0, 1, 2].map((one) => remembered(`x-${index}-${one}`, 'v'.repeat(4_000)))) },
  {
    name: 'hundreds of small entries',
    fields: (index) => Buffer.concat(Array.from({ length: 400 }, (_, one) => remembered(`${one}`, `${index}`))),
  },
  { name: 'entries larger than the table', fields: (index) => remembered(`x-${index}`, 'v'.repeat(8_000)) },
  { name: 'a table that is made small and large again', before: sizes, fields: () => remembered('x', 'v'.repeat(1_000)) },
  { name: 'one entry, a thousand times', fields: () => Buffer.concat([remembered('x', 'v'.repeat(30)), ...Array.from({ length: 1_000 }, () => newest)]) },
]

/** Sends as fast as the server takes it, until all is sent or the server ends the connection: how many frames went out, and whether it ended. */
function flood(blocks: (index: number) => Buffer): Promise<{ readonly sent: number; readonly ended: boolean }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: server.ca, ALPNProtocols: ['h2'], servername: '' })
    let sent = 0
    let acknowledged = false
    const go = () => {
      while (sent < frames && socket.writable) if (!socket.write(headers(sent * 2 + 1, blocks(sent++)))) return
      if (sent === frames) socket.write(frame(frameType.ping, 0, 0, 'all sent'))
    }
    socket.on('secureConnect', () => {
      socket.write(hello([[3, 1_000]]))
      go()
    })
    socket.on('drain', go)
    socket.on('data', (bytes: Buffer) => {
      if (!bytes.includes('all sent')) return
      acknowledged = true
      socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => (acknowledged || sent > 0 ? resolve({ sent, ended: !acknowledged }) : reject(new Error('nothing was sent'))))
  })
}

for (const { name, before: first = Buffer.alloc(0), fields } of floods) {
  test(`API-02 ${frames} requests with ${name} delay no other client`, { timeout: 60_000 }, async (t) => {
    const before = await server.heldBytes()
    let outcome = { sent: 0, ended: false }
    const { p99 } = await server.beside(async () => {
      outcome = await flood((index) => Buffer.concat([first, request, fields(index)]))
    })
    t.diagnostic(`${outcome.sent} frames, ${outcome.ended ? 'ended by the server' : 'all read'}; p99 beside it ${Math.round(p99)} ms`)
    // None breaks a rule: the server reads all of it.
    assert.deepEqual(outcome, { sent: frames, ended: false })
    assert.ok(p99 < mostMs, `p99 ${p99} ms`)
    assert.ok((await server.heldBytes()) - before < heldMoreAtMost)
    assert.equal((await server.as('alice', 'GET', '/version')).status, 200)
  })
}

test('API-02 a table larger than was granted is an error of the connection', { timeout: 30_000 }, async () => {
  assert.ok((await flood(() => Buffer.concat([tableSize(1_000_000), request]))).ended)
})
