import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import type { Node, Service } from '#api/gen/types/core.v1'
import { localNodePorts, openForwarder, realNodeAddresses } from './localPorts.ts'

function service(name: string, type: string, ports: { nodePort?: number; protocol?: string }[]): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { type, ports: ports.map((port) => ({ port: 80, ...port })) },
    status: {},
  }
}

function node(address: string, ready: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: address },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: ready }] },
  }
}

test('the TCP node ports of NodePort and LoadBalancer Services are wanted, nothing else', () => {
  const list = [
    service('a', 'NodePort', [{ nodePort: 30001 }, { nodePort: 30002, protocol: 'UDP' }, { nodePort: 30003, protocol: 'TCP' }]),
    service('b', 'LoadBalancer', [{ nodePort: 30004 }, {}]),
    service('c', 'ClusterIP', [{ nodePort: 30005 }]),
  ]
  assert.deepEqual(
    [...localNodePorts(list)].map(([port, { metadata }]) => [port, metadata.name]),
    [
      [30001, 'a'],
      [30003, 'a'],
      [30004, 'b'],
    ],
  )
})

test('only real nodes are targets, ready ones first', () => {
  const list = [node('10.88.1.10', 'Unknown'), node('10.88.1.11', 'True'), node('10.200.0.1', 'True')]
  assert.deepEqual(
    realNodeAddresses(list, (address) => address.startsWith('10.88.1.')),
    ['10.88.1.11', '10.88.1.10'],
  )
})

/** A server on 127.0.0.2 that answers, once the client has ended, with what it got; and a forwarder on 127.0.0.1 with the same port. */
async function echoBehind(targets: readonly string[]) {
  const echo = net.createServer({ allowHalfOpen: true }, (socket) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('end', () => socket.end(Buffer.concat(chunks)))
    socket.on('error', () => {})
  })
  // A port that is free on one address may be taken on the other by another program: then another one is tried.
  for (let attempt = 1; ; attempt++) {
    echo.listen({ host: '127.0.0.2', port: 0 })
    await once(echo, 'listening')
    const { port } = echo.address() as net.AddressInfo
    try {
      const forwarder = await openForwarder({ host: '127.0.0.1', port, targets: () => targets })
      return { port, forwarder, close: () => echo.close() }
    } catch (error) {
      echo.close()
      await once(echo, 'close')
      if (attempt === 10) throw error
    }
  }
}

async function ask(port: number, text: string): Promise<string> {
  const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.end(text)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(socket, 'end')
  return answer
}

test('SVC-02 bytes go both ways, past a node that refuses, also after one side has ended', async () => {
  const { port, forwarder, close } = await echoBehind(['127.0.0.3', '127.0.0.2'])
  const long = 'x'.repeat(300_000)
  assert.equal(await ask(port, long), long)
  assert.equal(await ask(port, 'again'), 'again')
  await forwarder.close(true)
  close()
})

test('with no node the connection is reset; a taken port is refused; a closed one is free again', async () => {
  const { port, forwarder, close } = await echoBehind([])
  await assert.rejects(ask(port, 'anybody?'), { code: 'ECONNRESET' })
  await assert.rejects(openForwarder({ host: '127.0.0.1', port, targets: () => [] }), { code: 'EADDRINUSE' })
  await forwarder.close(false)
  const again = await openForwarder({ host: '127.0.0.1', port, targets: () => ['127.0.0.2'] })
  assert.equal(await ask(port, 'back'), 'back')
  await again.close(true)
  close()
})
