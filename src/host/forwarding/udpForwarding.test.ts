/** Forwarding of datagrams between two loopback addresses, in this process. */
import assert from 'node:assert/strict'
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { flowIdleMs } from './forwarder.ts'
import { createUdpForwarding } from './udpForwarding.ts'

async function bound(address: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind({ address, port: 0 })
  await once(socket, 'listening')
  return socket
}

/** A backend on 127.0.0.2 that answers with the client's text and the number of the flow that it came by. */
async function behind(limits?: { readonly ofListener: number; readonly ofProcess: number }) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const backend = await bound('127.0.0.2')
  const flows: number[] = []
  backend.on('message', (data, { port, address }) => {
    if (!flows.includes(port)) flows.push(port)
    backend.send(`${data} by ${flows.indexOf(port)}`, port, address)
  })
  const entrance = await bound('127.0.0.1')
  const { port } = entrance.address()
  const target = { address: '127.0.0.2', port: backend.address().port }
  const forwarding = createUdpForwarding(clock, limits)
  const forwarder = forwarding.serve(entrance, [target])
  const clients: Socket[] = []
  const client = async (to = port) => {
    const socket = await bound('127.0.0.1')
    clients.push(socket)
    /** All that came. */
    const received: string[] = []
    socket.on('message', (data) => received.push(String(data)))
    const ask = async (text: string) => {
      const answer = once(socket, 'message') as Promise<[Buffer, RemoteInfo]>
      socket.send(text, to, '127.0.0.1')
      const [data, from] = await answer
      assert.equal(from.port, to)
      return String(data)
    }
    return { socket, ask, received }
  }
  const close = () => {
    forwarder.close()
    for (const one of [backend, ...clients]) one.close()
  }
  return { clock, forwarding, forwarder, target, flows, client, close }
}

test('SVC-02 each client of a UDP port has a flow of its own, and gets its answers', async () => {
  const { client, close } = await behind()
  const [a, b] = [await client(), await client()]
  assert.equal(await a.ask('a1'), 'a1 by 0')
  assert.equal(await b.ask('b1'), 'b1 by 1')
  assert.equal(await a.ask('a2'), 'a2 by 0')
  close()
})

test('SVC-02 a flow of a UDP port ends after it was silent for two minutes, not before', async () => {
  const { clock, client, close } = await behind()
  const a = await client()
  assert.equal(await a.ask('a1'), 'a1 by 0')
  await clock.advance(flowIdleMs - 1)
  assert.equal(await a.ask('a2'), 'a2 by 0')
  await clock.advance(flowIdleMs - 1)
  assert.equal(await a.ask('a3'), 'a3 by 0')
  await clock.advance(flowIdleMs)
  assert.equal(await a.ask('a4'), 'a4 by 1')
  close()
})

test('SVC-02 a client beyond the limit of flows takes the place of the one that was silent for longest', async () => {
  for (const limits of [
    { ofListener: 2, ofProcess: 100 },
    { ofListener: 100, ofProcess: 2 },
  ]) {
    const { client, close } = await behind(limits)
    const [a, b, c] = [await client(), await client(), await client()]
    assert.equal(await a.ask('a1'), 'a1 by 0')
    assert.equal(await b.ask('b1'), 'b1 by 1')
    assert.equal(await a.ask('a2'), 'a2 by 0')
    assert.equal(await c.ask('c1'), 'c1 by 2')
    assert.equal(await a.ask('a3'), 'a3 by 0')
    assert.equal(await b.ask('b2'), 'b2 by 3')
    close()
  }
})

test('SVC-02 clients of one UDP port leave room for the first client of another port, which takes the place of one of them', async () => {
  const { forwarding, target, client, close } = await behind({ ofListener: 100, ofProcess: 3 })
  const [a, b, c] = [await client(), await client(), await client()]
  assert.equal(await a.ask('a1'), 'a1 by 0')
  assert.equal(await b.ask('b1'), 'b1 by 1')
  assert.equal(await c.ask('c1'), 'c1 by 2')
  const entrance = await bound('127.0.0.1')
  const other = forwarding.serve(entrance, [target])
  const d = await client(entrance.address().port)
  assert.equal(await d.ask('d1'), 'd1 by 3')
  assert.equal(await b.ask('b2'), 'b2 by 1')
  // The port with two clients gives one up, not the port with one.
  assert.equal(await a.ask('a2'), 'a2 by 4')
  assert.equal(await d.ask('d2'), 'd2 by 3')
  other.close()
  close()
})

test('SVC-02 an answer is dropped when the socket of its client has closed meanwhile', async () => {
  const backend = await bound('127.0.0.2')
  backend.on('message', (data, { port, address }) => backend.send(data, port, address))
  const entrance = new EventEmitter()
  const asked = new Promise((resolve) => {
    // A closed socket throws the same.
    const refuse = () => {
      resolve(undefined)
      throw Object.assign(new Error('Not running'), { code: 'ERR_SOCKET_DGRAM_NOT_RUNNING' })
    }
    Object.assign(entrance, { getSendQueueSize: refuse, send: refuse, close: () => {} })
  })
  const target = { address: '127.0.0.2', port: backend.address().port }
  const forwarder = createUdpForwarding(new VirtualClock()).serve(entrance as Socket, [target])
  entrance.emit('message', Buffer.from('a'), { address: '127.0.0.1', port: 9 })
  // An error that nothing caught would fail the test.
  await asked
  forwarder.close()
  backend.close()
})

test('SVC-02 a client of a UDP port gets datagrams of its node only', async () => {
  const { flows, client, close } = await behind()
  const a = await client()
  assert.equal(await a.ask('a1'), 'a1 by 0')
  const stranger = await bound('127.0.0.2')
  // The flow's socket receives it before the next answer.
  await new Promise((resolve) => stranger.send('forged', flows[0], '127.0.0.1', resolve))
  assert.equal(await a.ask('a2'), 'a2 by 0')
  assert.deepEqual(a.received, ['a1 by 0', 'a2 by 0'])
  stranger.close()
  close()
})

test('SVC-02 a flow of a UDP port moves when the first node is another one', async () => {
  const { forwarder, target, client, close } = await behind()
  const a = await client()
  assert.equal(await a.ask('a1'), 'a1 by 0')
  forwarder.setTargets([target, { address: '127.0.0.3', port: 9 }])
  assert.equal(await a.ask('a2'), 'a2 by 0')
  const other = await bound('127.0.0.3')
  other.on('message', (data, { port, address }) => other.send(`${data} elsewhere`, port, address))
  forwarder.setTargets([{ address: '127.0.0.3', port: other.address().port }, target])
  assert.equal(await a.ask('a3'), 'a3 elsewhere')
  other.close()
  close()
})
