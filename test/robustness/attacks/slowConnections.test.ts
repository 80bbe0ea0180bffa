/**
 * Clients that are slow on purpose: handshakes, headers and bodies that never end, and connections without a request. Each is closed in time, other
 * clients are not delayed, and the memory is freed.
 */
import assert from 'node:assert/strict'
import { type Socket, connect as tcpConnect } from 'node:net'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const headersTimeoutMs = 1_500
const slow = 500
/** Several times what is allowed, for a machine that is busy. */
const closedWithinMs = 15_000
const heldMoreAtMost = 32 * 1024 * 1024

let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack({ headersTimeoutMs, flags: ['--request-timeout=2s'] })
})
after(() => server.stop())

/** What the server said until it closed the connection; undefined: it is open still. */
function untilClosed(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let said = ''
    const timer = setTimeout(() => {
      socket.destroy()
      resolve(undefined)
    }, closedWithinMs)
    socket.on('data', (bytes: Buffer) => (said += bytes.toString('latin1')))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(said)
    })
  })
}

/** A connection that sends its beginning at once, and then a byte at a time. */
function dripping(first: string, drip: string): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port: server.port, ca: server.ca, ALPNProtocols: ['http/1.1'], servername: '' })
  const closed = untilClosed(socket)
  let timer: NodeJS.Timeout | undefined
  socket.on('secureConnect', () => {
    socket.write(first)
    timer = setInterval(() => socket.writable && socket.write(drip), 300)
  })
  return closed.finally(() => clearInterval(timer))
}

/** Pause between connections: five hundred simultaneous handshakes would take the server a second in any case. */
const everyMs = 5
const opened = (count: number, open: () => Promise<string | undefined>) =>
  Promise.all(Array.from({ length: count }, (_, index) => new Promise((resolve) => setTimeout(resolve, index * everyMs)).then(open)))
const head = 'host: a\r\nauthorization: Bearer alice\r\n'

const cases: { name: string; connections: number; open: () => Promise<string | undefined>; says: RegExp }[] = [
  { name: 'no handshake', connections: slow, open: () => untilClosed(tcpConnect(server.port, '127.0.0.1')), says: /^$/ },
  { name: 'headers that never end', connections: slow, open: () => dripping(`GET /livez HTTP/1.1\r\n${head}`, 'x: y\r\n'), says: /^$/ },
  { name: 'a request line that never ends', connections: slow, open: () => dripping('GET /', 'x'), says: /^$/ },
  {
    name: 'a body that never ends',
    connections: 60,
    open: () => dripping(`POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n${head.replace('alice', 'admin')}content-length: 100000\r\n\r\n{`, ' '),
    says: /^HTTP\/1\.1 (504|429) /,
  },
  {
    name: 'a body that the server does not read',
    connections: 60,
    open: () => dripping(`POST /api/v1/namespaces/default/secrets HTTP/1.1\r\n${head}content-length: 100000\r\n\r\n{`, ' '),
    says: /^HTTP\/1\.1 403 /,
  },
]
for (const { name, connections, open, says } of cases) {
  test(`API-02 ${connections} connections with ${name} are closed, and delay no other client`, { timeout: 60_000 }, async (t) => {
    const before = await server.heldBytes()
    let answers: (string | undefined)[] = []
    const { p99, requests } = await server.beside(async () => {
      answers = await opened(connections, open)
    })
    t.diagnostic(`p99 of ${requests} requests beside it: ${Math.round(p99)} ms`)
    assert.equal(answers.filter((said) => said === undefined).length, 0, 'some are open still')
    for (const said of answers) assert.match(said ?? '', says)
    assert.ok(p99 < 1_000, `p99 ${p99} ms`)
    assert.ok((await server.heldBytes()) - before < heldMoreAtMost)
  })
}
