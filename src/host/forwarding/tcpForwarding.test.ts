/** Forwarding of connections between two loopback addresses, in this process. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createWakeUp } from '#base/wakeUp'
import { realClock } from '#testing/realClock'
import { createTcpForwarding } from './tcpForwarding.ts'

type OnConnection = (socket: net.Socket) => void

async function listening(server: net.Server, host: string): Promise<number> {
  server.listen({ host, port: 0 })
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

interface Setup {
  readonly hosts?: readonly string[]
  readonly limits?: { readonly ofListener: number; readonly ofProcess: number }
}

/** A backend on 127.0.0.2, and a forwarding port on 127.0.0.1 that tries the hosts. */
async function behind(onConnection: OnConnection, { hosts = ['127.0.0.2'], limits }: Setup = {}) {
  const sockets = new Set<net.Socket>()
  const backend = net.createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  const backendPort = await listening(backend, '127.0.0.2')
  const bound = net.createServer()
  const port = await listening(bound, '127.0.0.1')
  const forwarder = createTcpForwarding(realClock, limits).serve(
    bound,
    hosts.map((address) => ({ address, port: backendPort })),
  )
  const close = () => {
    forwarder.close()
    backend.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port, forwarder, backendPort, close }
}

/** Answers, once the client has ended, with what it got. */
const echo: OnConnection = (socket) => {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('end', () => socket.end(Buffer.concat(chunks)))
}

function connectTo(port: number): net.Socket {
  return net.connect({ host: '127.0.0.1', port, allowHalfOpen: true })
}

async function ask(port: number, text: string): Promise<string> {
  const socket = connectTo(port)
  socket.end(text)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(socket, 'end')
  return answer
}

test('SVC-02 bytes go both ways, past a node that refuses, also after one side has ended', async () => {
  const { port, close } = await behind(echo, { hosts: ['127.0.0.3', '127.0.0.2'] })
  const long = 'x'.repeat(300_000)
  assert.equal(await ask(port, long), long)
  assert.equal(await ask(port, 'again'), 'again')
  close()
})

test('SVC-02 a connection is reset when no node answers, and served after the targets have changed', async () => {
  const { port, forwarder, backendPort, close } = await behind(echo, { hosts: [] })
  await assert.rejects(ask(port, 'no node'), { code: 'ECONNRESET' })
  forwarder.setTargets([{ address: '127.0.0.2', port: backendPort }])
  assert.equal(await ask(port, 'a node'), 'a node')
  close()
})

test('SVC-02 a closed port refuses clients, and its established connections stay', async () => {
  const { port, forwarder, close } = await behind((socket) => socket.pipe(socket))
  const client = connectTo(port)
  client.write('before ')
  await once(client, 'data')
  forwarder.close()
  await assert.rejects(ask(port, 'late'), { code: 'ECONNREFUSED' })
  client.write('after')
  assert.equal(String((await once(client, 'data'))[0]), 'after')
  client.destroy()
  close()
})

test('SVC-02 a node that resets its connection ends the client’s, after the bytes that it had sent', async () => {
  const { port, close } = await behind((socket) => void socket.once('data', () => socket.write('x'.repeat(20_000), () => socket.resetAndDestroy())))
  const client = connectTo(port)
  client.write('request')
  let received = 0
  client.on('data', (chunk) => {
    received += chunk.length
  })
  // Node sends a FIN before a reset: which of them is seen is a matter of time.
  await new Promise((resolve) => client.once('end', resolve).once('error', resolve))
  assert.equal(received, 20_000)
  client.destroy()
  close()
})

test('SVC-02 a client that resets its connection ends the node’s', async () => {
  const ended = createWakeUp()
  const { port, close } = await behind((socket) => {
    socket.resume()
    socket.on('end', () => socket.end())
    socket.once('close', ended.ring)
    socket.write('hello')
  })
  const client = connectTo(port)
  await once(client, 'data')
  client.resetAndDestroy()
  await ended.wait(new AbortController().signal)
  close()
})

test('SVC-02 connections beyond the limits of a port and of the process are reset; the next is served when one has ended', async () => {
  for (const limits of [
    { ofListener: 2, ofProcess: 100 },
    { ofListener: 100, ofProcess: 2 },
  ]) {
    const { port, close } = await behind((socket) => socket.pipe(socket), { limits })
    const clients = [connectTo(port), connectTo(port)]
    for (const client of clients) {
      client.write('served')
      await once(client, 'data')
    }
    await assert.rejects(ask(port, 'one more'), { code: 'ECONNRESET' })
    for (const client of clients) client.end()
    await Promise.all(clients.map((client) => once(client.resume(), 'close')))
    assert.equal(await ask(port, 'the next'), 'the next')
    close()
  }
})
