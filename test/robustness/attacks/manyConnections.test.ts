/**
 * Ten thousand silent connections, in steps: the first stop before their handshake, the last after it. Each is closed in time, another client is
 * served meanwhile, and their memory is freed. Fewer where this process may not open as many files.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { connect as tcpConnect } from 'node:net'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const mostFiles = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' })) || Number.POSITIVE_INFINITY
const skip = mostFiles >= 11_000 ? false : `only ${mostFiles} files may be open`
/** Long enough for all to be open at once. */
const headersTimeoutMs = 12_000
const closedWithinMs = 45_000
const heldMoreAtMost = 32 * 1024 * 1024
/** With a handshake only so many: that is work for both sides. */
const steps = [
  { count: 1_000, handshake: false },
  { count: 2_500, handshake: false },
  { count: 6_000, handshake: false },
  { count: 500, handshake: true },
] as const

let server: ServerUnderAttack
before(async () => {
  if (!skip) server = await startServerUnderAttack({ headersTimeoutMs })
})
after(() => (skip ? undefined : server.stop()))

interface Silence {
  readonly opened: Promise<void>
  /** By the server; else false. */
  readonly closed: Promise<boolean>
}

function silentConnection(handshake: boolean): Silence {
  const address = { host: '127.0.0.1', port: server.port }
  const socket = handshake ? connect({ ...address, ca: server.ca, servername: '' }) : tcpConnect(address)
  socket.on('error', () => undefined)
  socket.resume()
  const opened = new Promise<void>((resolve, reject) => {
    socket.once(handshake ? 'secureConnect' : 'connect', () => resolve())
    socket.once('error', reject)
  })
  const closed = new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => socket.destroy(), closedWithinMs)
    socket.once('close', () => {
      clearTimeout(timer)
      resolve(socket.readableEnded || socket.errored !== null)
    })
  })
  return { opened, closed }
}

/** A hundred at a time: a backlog is short. */
async function opened(count: number, handshake: boolean): Promise<Silence[]> {
  const all: Silence[] = []
  while (all.length < count) {
    const batch = Array.from({ length: Math.min(100, count - all.length) }, () => silentConnection(handshake))
    await Promise.all(batch.map((one) => one.opened))
    all.push(...batch)
  }
  return all
}

test('API-02 10,000 silent connections are closed, and delay no other client', { skip, timeout: 120_000 }, async (t) => {
  const before = await server.heldBytes()
  const silent: Silence[] = []
  const { p99, requests } = await server.beside(async () => {
    for (const { count, handshake } of steps) silent.push(...(await opened(count, handshake)))
    assert.equal(silent.length, 10_000)
    const ends = await Promise.all(silent.map((one) => one.closed))
    assert.equal(ends.filter((byServer) => !byServer).length, 0, 'some are open still')
  })
  t.diagnostic(`p99 of ${requests} requests beside it: ${Math.round(p99)} ms`)
  assert.ok(p99 < 1_000, `p99 ${p99} ms`)
  assert.ok((await server.heldBytes()) - before < heldMoreAtMost)
})
