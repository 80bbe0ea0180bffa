import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { createServer, Socket } from 'node:net'
import { test } from 'node:test'
import { dial, open } from './connect.ts'

test('API-29 CVE-2020-8562 the addresses that are connected to are checked, not those that an earlier look-up found', async () => {
  let reached = 0
  const server = createServer((socket) => {
    reached++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const checked: string[] = []
  const mayDial = (address: string) => {
    checked.push(address)
    return false
  }
  const { signal } = new AbortController()
  try {
    // An earlier check would have had another answer for this name: what counts is the look-up of the connection itself.
    for (const tls of [undefined, { insecure: true }])
      await assert.rejects(dial({ host: 'localhost', port, tls, path: '/', mayDial }, signal), /address not allowed/)
    assert.ok(checked.includes('127.0.0.1') || checked.includes('::1'), checked.join())
    assert.equal(reached, 0)
    ;(await dial({ host: 'localhost', port, tls: undefined, path: '/', mayDial: () => true }, signal)).destroy()
  } finally {
    server.close()
  }
})

/** Connections whose packets are lost: they are neither made nor refused. */
class LosingAgent extends Agent {
  readonly made: Socket[] = []

  override createConnection(): Socket {
    const socket = Object.defineProperty(new Socket(), 'connecting', { value: true })
    this.made.push(socket)
    return socket
  }
}

test('API-29 a request to a backend whose packets are lost ends when the time for connecting is over', async () => {
  const agent = new LosingAgent()
  const request = { method: 'GET', path: '/', headers: {}, remoteAddress: '', cancellation: { signal: new AbortController().signal } }
  const answer = open(request, { host: '192.0.2.7', port: 10_250, path: '/', agent })
  const refused = assert.rejects(answer, /error trying to reach service: dial tcp 192\.0\.2\.7:10250: i\/o timeout/)
  await new Promise((resolve) => setImmediate(resolve))
  const [socket] = agent.made
  // The clock of a socket cannot be moved. What it was set to, and what happens then:
  assert.equal(socket?.timeout, 30_000)
  socket?.emit('timeout')
  await refused
})
