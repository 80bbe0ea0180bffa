/** The balancer between loopback addresses, in this process. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createRealClock } from '../realClock.ts'
import { unknown } from './condition.ts'
import { type BalancerLimits, createTcpBalancer } from './tcpBalancer.ts'

const ready = { state: 'ready', silences: 0 } as const
const notReady = { state: 'notReady', silences: 0 } as const
const options = { timeout: 20_000 }
const limits: BalancerLimits = { ofListener: 100, ofAddress: 100, connectTimeoutMs: 200 }

/** A server that answers each line with its name. */
async function namedServer(name: string, serve?: (socket: net.Socket) => void) {
  const sockets = new Set<net.Socket>()
  const listener = net.createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    if (serve) serve(socket)
    else socket.on('data', () => socket.write(name)).on('end', () => socket.end())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as net.AddressInfo
  return {
    server: { name, address: '127.0.0.1', port },
    sockets,
    [Symbol.asyncDispose]: async () => {
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

type Named = Awaited<ReturnType<typeof namedServer>>

async function balanced(servers: readonly Pick<Named, 'server'>[], { host = '127.0.0.1', given = limits } = {}) {
  const refused: string[] = []
  const balancer = createTcpBalancer(
    servers.map(({ server }) => server),
    { clock: createRealClock(), onRefused: (name) => void refused.push(name) },
    given,
  )
  for (const { server } of servers) balancer.setCondition(server.name, ready)
  const listener = await balancer.listen(host, 0)
  const { port } = listener.address() as net.AddressInfo
  return { balancer, refused, host, port, [Symbol.dispose]: () => void listener.close() }
}

type Balanced = Awaited<ReturnType<typeof balanced>>

class TestClient {
  readonly socket: net.Socket
  constructor({ host, port }: Balanced) {
    this.socket = net.connect({ host, port, allowHalfOpen: true })
    this.socket.on('error', () => {})
  }
  /** The name of the server that answers. */
  async ask(): Promise<string> {
    this.socket.write('?')
    const [answer] = (await once(this.socket, 'data')) as [Buffer]
    return answer.toString()
  }
  /** Resolves with the error's code, or with `closed`. */
  async ended(): Promise<string> {
    return new Promise((resolve) => {
      this.socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
      this.socket.once('close', () => resolve('closed'))
      this.socket.resume()
    })
  }
  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

test('HA-01 connections spread over the servers that are ready', options, async () => {
  await using a = await namedServer('a')
  await using b = await namedServer('b')
  using front = await balanced([a, b])
  const clients = Array.from({ length: 6 }, () => new TestClient(front))
  const answers = await Promise.all(clients.map((client) => client.ask()))
  assert.deepEqual([answers.filter((name) => name === 'a').length, answers.filter((name) => name === 'b').length], [3, 3])
  front.balancer.setCondition('a', notReady)
  for (const client of clients) client.socket.destroy()
  const later = Array.from({ length: 3 }, () => new TestClient(front))
  assert.deepEqual(await Promise.all(later.map((client) => client.ask())), ['b', 'b', 'b'])
  for (const client of later) client.socket.destroy()
})

test('HA-01 a server that is no longer ready keeps its connections, a dead one loses them at once', options, async () => {
  await using a = await namedServer('a')
  using front = await balanced([a])
  using client = new TestClient(front)
  assert.equal(await client.ask(), 'a')
  front.balancer.setCondition('a', notReady)
  assert.equal(await client.ask(), 'a')
  const ended = client.ended()
  front.balancer.setCondition('a', unknown)
  assert.equal(await ended, 'ECONNRESET')
})

test('HA-01 a connection that a server refuses goes to the next one, and the server is reported', options, async () => {
  const gone = await namedServer('gone')
  await gone[Symbol.asyncDispose]()
  await using b = await namedServer('b')
  using front = await balanced([gone, b])
  using client = new TestClient(front)
  assert.equal(await client.ask(), 'b')
  assert.deepEqual(front.refused, ['gone'])
})

test('HA-01 a connection is reset when no server accepts', options, async () => {
  using front = await balanced([])
  using client = new TestClient(front)
  assert.equal(await client.ended(), 'ECONNRESET')
})

/** Listens, and accepts nothing: once its queue is full, the kernel drops the packets of further connections. */
const swallowing = `const s = require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
  process.stdout.write(String(s.address().port), () => process.kill(process.pid, 'SIGSTOP'))
})`

test('HA-01 a server that swallows packets is given up after the time to connect, and the connection goes to the next one', options, async () => {
  const child = spawn(process.execPath, ['-e', swallowing], { stdio: ['ignore', 'pipe', 'ignore'] })
  const port = Number(String((await once(child.stdout, 'data'))[0]))
  const filling = Array.from({ length: 6 }, () => net.connect({ host: '127.0.0.1', port }).on('error', () => {}))
  try {
    await once(filling[0] as net.Socket, 'connect')
    await using b = await namedServer('b')
    using front = await balanced([{ server: { name: 'swallows', address: '127.0.0.1', port } }, b])
    using client = new TestClient(front)
    const began = performance.now()
    assert.equal(await client.ask(), 'b')
    assert.ok(performance.now() - began >= limits.connectTimeoutMs - 10, `${performance.now() - began} ms`)
    assert.deepEqual(front.refused, ['swallows'])
  } finally {
    for (const socket of filling) socket.destroy()
    child.kill('SIGKILL')
  }
})

test('HA-01 a side that has ended its half still gets what the other one sends', options, async () => {
  await using a = await namedServer('a', (socket) => {
    let got = ''
    socket.on('data', (chunk) => {
      got += chunk
    })
    socket.on('end', () => socket.end(`got ${got}`))
  })
  using front = await balanced([a])
  using client = new TestClient(front)
  client.socket.end('all of it')
  let answer = ''
  client.socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(client.socket, 'end')
  assert.equal(answer, 'got all of it')
})

test('HA-01 a connection without traffic stays open for longer than a server may take to accept', options, async () => {
  await using a = await namedServer('a')
  using front = await balanced([a])
  using client = new TestClient(front)
  await client.ask()
  await createRealClock().sleep(2 * limits.connectTimeoutMs)
  assert.equal(await client.ask(), 'a')
})

const mebibyte = 1024 * 1024
const total = 96 * mebibyte

/** Writes `total` bytes; `sent` grows only while the other side takes them. */
function pour(socket: net.Socket): { readonly sent: () => number } {
  const chunk = Buffer.alloc(mebibyte)
  let sent = 0
  const more = () => {
    while (sent < total) {
      sent += chunk.length
      if (!socket.write(chunk)) return void socket.once('drain', more)
    }
    socket.end()
  }
  more()
  return { sent: () => sent }
}

/** The amount that was sent when it has not grown for a while. */
async function untilStalled(sent: () => number): Promise<number> {
  for (let before = -1; ; ) {
    const now = sent()
    if (now === before) return now
    before = now
    await createRealClock().sleep(300)
  }
}

async function readAll(socket: net.Socket): Promise<number> {
  let length = 0
  for await (const chunk of socket) length += (chunk as Buffer).length
  return length
}

for (const [direction, name] of [
  ['down', 'a client that does not read stops the server from sending'],
  ['up', 'a server that does not read stops the client from sending'],
] as const) {
  test(`HA-01 ${name}, and all bytes arrive when it reads`, options, async () => {
    let accept = (_: net.Socket) => {}
    const accepted = new Promise<net.Socket>((resolve) => {
      accept = resolve
    })
    await using a = await namedServer('a', (socket) => accept(socket.pause()))
    using front = await balanced([a])
    using client = new TestClient(front)
    client.socket.pause()
    const [from, to] = direction === 'down' ? [await accepted, client.socket] : [client.socket, await accepted]
    const { sent } = pour(from)
    const stalled = await untilStalled(sent)
    // The kernel's buffers of two connections, and the balancer's small ones.
    assert.ok(stalled < total / 2, `${stalled} bytes were taken`)
    assert.equal(await readAll(to), total)
  })
}

test('HA-01 connections beyond the limit are reset, and the place of one that ended is free', options, async () => {
  await using a = await namedServer('a')
  using front = await balanced([a], { given: { ...limits, ofListener: 3 } })
  const first = Array.from({ length: 3 }, () => new TestClient(front))
  await Promise.all(first.map((client) => client.ask()))
  const flood = Array.from({ length: 20 }, () => new TestClient(front))
  assert.deepEqual(new Set(await Promise.all(flood.map((client) => client.ended()))), new Set(['ECONNRESET']))
  assert.equal(a.sockets.size, 3)
  first[0]?.socket.destroy()
  let answer: string | undefined
  // The balancer learns of the end a moment later.
  while (answer === undefined) {
    using late = new TestClient(front)
    answer = await late.ask().catch(() => undefined)
  }
  assert.equal(answer, 'a')
  for (const client of first) client.socket.destroy()
})

test('HA-01 one address that is not IPv4 loopback has no more connections than its share', options, async () => {
  await using a = await namedServer('a')
  using front = await balanced([a], { host: '::1', given: { ...limits, ofAddress: 2 } })
  const first = Array.from({ length: 2 }, () => new TestClient(front))
  await Promise.all(first.map((client) => client.ask()))
  using third = new TestClient(front)
  assert.equal(await third.ended(), 'ECONNRESET')
  for (const client of first) client.socket.destroy()
})
