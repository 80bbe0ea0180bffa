/** TLS connections that are routed by their server names, over real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { after, test } from 'node:test'
import tls from 'node:tls'
import type { ProxyLimits } from '#ingress/proxy/config'
import { testCertificates } from '#testing/testCertificates'
import { eventually } from '../controllers/cluster.ts'
import { ends, freePort, host, proxyTo, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

const backendRef = { service: 'd/s', port: 443 }

async function listening(server: net.Server): Promise<number> {
  const sockets = new Set<net.Socket>()
  server.on('connection', (socket: net.Socket) => sockets.add(socket.on('error', () => {})))
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as net.AddressInfo).port
}

/** Sends back what it gets, behind its own name and the server name that it was asked with. */
async function tlsEcho(name: string): Promise<number> {
  const { cert, key } = await testCertificates(`CN=${name}`)
  const server = tls.createServer({ cert, key, allowHalfOpen: true } as tls.TlsOptions, (socket) => {
    socket.on('error', () => {})
    socket.write(`${name} ${socket.servername}:`)
    socket.pipe(socket)
  })
  return listening(server.on('tlsClientError', () => {}))
}

async function openPort(endpoints: readonly number[], limits: Partial<ProxyLimits> = {}) {
  const made = await proxyTo(endpoints, limits)
  const listener = await made.proxy.openStreams(
    { host, port: 0, publicPort: 443, gateway: 'd/g' },
    { ...(await testCertificates('CN=ended')), contextOf: () => undefined },
  )
  ends.push(() => listener.close())
  return { ...made, listener, port: listener.port }
}

function connectTo(port: number, servername: string): tls.TLSSocket {
  const socket = tls.connect({ host, port, servername, rejectUnauthorized: false, allowHalfOpen: true } as tls.ConnectionOptions)
  ends.push(() => socket.destroy())
  return socket.on('error', () => {})
}

async function outcomeOf(socket: net.Socket, connected = 'secureConnect'): Promise<string> {
  return new Promise((resolve) => {
    socket.once(connected, () => resolve('connected'))
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code))
    socket.once('close', () => resolve('closed'))
  })
}

test('ING-05 a connection reaches its backend with its bytes as they are: the backend has the certificate, and each side may end first', async () => {
  const { port, streams, backend } = await openPort([await tlsEcho('backend')])
  streams.set('a.test', { isPassthrough: true, backend: backendRef })
  const socket = connectTo(port, 'a.test')
  await once(socket, 'secureConnect')
  assert.equal(socket.getPeerCertificate().subject.CN, 'backend')
  assert.equal(backend.inFlight, 1)
  const sent = 'x'.repeat(3_000_000)
  socket.end(sent)
  assert.equal(await textOf(socket), `backend a.test:${sent}`)
  await eventually(async () => backend.inFlight === 0)
})

test('ING-05 TLS ends at the proxy with its own certificate, and the backend gets the content', async () => {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.write('clear:')
    socket.pipe(socket)
  })
  const { port, streams, backend } = await openPort([await listening(server)])
  streams.set('a.test', { isPassthrough: false, backend: backendRef })
  const socket = connectTo(port, 'a.test')
  await once(socket, 'secureConnect')
  assert.equal(socket.getPeerCertificate().subject.CN, 'ended')
  const sent = 'y'.repeat(1_000_000)
  socket.end(sent)
  assert.equal(await textOf(socket), `clear:${sent}`)
  await eventually(async () => backend.inFlight === 0)
})

test('ING-05 connections of one port pass through or end at the proxy, as the route of their server name says', async () => {
  const { port, streams } = await openPort([await tlsEcho('backend')])
  streams.set('through.test', { isPassthrough: true, backend: backendRef })
  streams.set('ended.test', { isPassthrough: false, backend: backendRef })
  const names = ['through.test', 'ended.test', 'through.test'].map(async (name) => {
    const socket = connectTo(port, name)
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().subject.CN
  })
  assert.deepEqual(await Promise.all(names), ['backend', 'ended', 'backend'])
})

test('ING-05 a connection that no route takes, without a usable endpoint, or beyond the limit of the backend, is ended without an answer', async () => {
  const working = await tlsEcho('backend')
  const { port, streams, backend } = await openPort([], { maxInFlight: 1 })
  const refused = /^(ECONNRESET|closed)$/
  assert.match(await outcomeOf(connectTo(port, 'other.test')), refused)
  streams.set('a.test', { isPassthrough: true, backend: backendRef })
  assert.match(await outcomeOf(connectTo(port, 'a.test')), refused)
  backend.setEndpoints([{ ip: host, port: await freePort() }])
  assert.match(await outcomeOf(connectTo(port, 'a.test')), refused)
  await eventually(async () => backend.inFlight === 0)
  backend.setEndpoints([{ ip: host, port: working }])
  const first = connectTo(port, 'a.test')
  assert.equal(await outcomeOf(first), 'connected')
  assert.match(await outcomeOf(connectTo(port, 'a.test')), refused)
  first.destroy()
  await eventually(async () => backend.inFlight === 0)
  assert.equal(await outcomeOf(connectTo(port, 'a.test')), 'connected')
})

test('ING-05 another endpoint is tried when the first one refuses', async () => {
  const { port, streams } = await openPort([await freePort(), await tlsEcho('backend')])
  streams.set('a.test', { isPassthrough: true, backend: backendRef })
  for (let i = 0; i < 4; i++) assert.equal(await outcomeOf(connectTo(port, 'a.test')), 'connected')
})

test('ING-05 a client that sends no ClientHello in time, another protocol, or more than a ClientHello may have, is cut off', async () => {
  const { port } = await openPort([await tlsEcho('backend')], { headersTimeoutMs: 300 })
  const ask = async (bytes: Buffer) => {
    const socket = net.connect(port, host)
    ends.push(() => socket.destroy())
    if (bytes.length > 0) socket.write(bytes)
    return outcomeOf(socket, 'never')
  }
  const whole = Buffer.from([22, 3, 1, 63, 255, 1, 0, 63, 250, ...Array(17_000).fill(0)])
  const outcomes = [Buffer.alloc(0), Buffer.from([22, 3]), Buffer.from('GET / HTTP/1.1\r\n\r\n'), whole].map(ask)
  assert.deepEqual(new Set((await Promise.all(outcomes)).map((one) => one.replace('ECONNRESET', 'closed'))), new Set(['closed']))
})

test('ING-05 a silent tunnel ends after its time, and one that is cut by the backend is cut for the client', async () => {
  const { port, streams, backend } = await openPort([await tlsEcho('backend')], { tunnelIdleMs: 300 })
  streams.set('a.test', { isPassthrough: true, backend: backendRef })
  const silent = connectTo(port, 'a.test')
  await once(silent, 'secureConnect')
  silent.resume()
  await once(silent, 'end')
  const resetting = net.createServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
  backend.setEndpoints([{ ip: host, port: await listening(resetting) }])
  assert.match(await outcomeOf(connectTo(port, 'a.test')), /^(ECONNRESET|closed)$/)
  await eventually(async () => backend.inFlight === 0)
})

test('ING-05 a port that closes takes no connections, and ends those that there are after the time to drain', async () => {
  const { port, streams, listener } = await openPort([await tlsEcho('backend')], { drainMs: 200 })
  streams.set('a.test', { isPassthrough: true, backend: backendRef })
  const socket = connectTo(port, 'a.test')
  await once(socket, 'secureConnect')
  socket.resume()
  const closing = listener.close()
  assert.equal(await outcomeOf(connectTo(port, 'a.test')), 'ECONNREFUSED')
  await Promise.all([closing, once(socket, 'end')])
})
