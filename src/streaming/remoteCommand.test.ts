import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type net from 'node:net'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import WebSocket from 'ws'
import { acceptPortForward, acceptRemoteCommand } from './remoteCommand.ts'
import { dialPortForward, dialRemoteCommand, type RemoteCommand } from './spdyClient.ts'
import type { RemoteCommandOptions, RemoteCommandSession } from './streams.ts'

/** A server that runs `handle` for each exec and echoes each forwarded port with the port's number before it. */
async function serve(options: RemoteCommandOptions, handle: (session: RemoteCommandSession) => Promise<void>) {
  const server = http.createServer((_request, response) => response.end('no upgrade'))
  const failures: unknown[] = []
  server.on('upgrade', (request, socket, head) => {
    const upgrade = { request, socket, head }
    const served = request.url?.startsWith('/portforward')
      ? acceptPortForward(upgrade, [8080], ({ port, data, fail }) => {
          if (port === 1) return fail('nobody listens on port 1')
          data.write(`${port}:`)
          data.pipe(data)
        })
      : acceptRemoteCommand(upgrade, options).then(handle)
    served.catch((error) => failures.push(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { base, close, failures }
}

async function echo(session: RemoteCommandSession): Promise<void> {
  const input = session.stdin ? await text(session.stdin) : ''
  session.stdout?.write(`out ${input}`)
  session.stderr?.write('err')
  await session.finish({ exitCode: input === 'fail' ? 3 : 0 })
}

const all: RemoteCommandOptions = { stdin: true, stdout: true, stderr: true, tty: false }

for (const [input, exitCode] of [
  ['hello', 0],
  ['fail', 3],
] as const) {
  test(`ARC-05 exec over SPDY: input ${input} comes back on both outputs with exit code ${exitCode}`, async () => {
    const server = await serve(all, echo)
    const command = await dialRemoteCommand(`http://${server.base}/exec`, all)
    command.stdin?.end(input)
    const [out, err, result] = await Promise.all([text(command.stdout!), text(command.stderr!), command.result])
    assert.deepEqual({ out, err, result }, { out: `out ${input}`, err: 'err', result: { exitCode } })
    await server.close()
  })
}

interface Message {
  channel: number
  text: string
}

async function webSocketMessages(url: string, protocol: string, onOpen: (socket: WebSocket) => void): Promise<{ messages: Message[]; code: number }> {
  const socket = new WebSocket(url, protocol)
  const messages: Message[] = []
  socket.on('message', (data: Buffer) => {
    const last = messages.at(-1)
    const channel = data[0] ?? -1
    if (last?.channel === channel) last.text += data.toString('utf8', 1)
    else messages.push({ channel, text: data.toString('utf8', 1) })
  })
  await once(socket, 'open')
  onOpen(socket)
  const [code] = (await once(socket, 'close')) as [number]
  return { messages, code }
}

test('ARC-05 exec over WebSocket v5: stdin is half-closed by channel 255, the status ends the session with close code 1000', async () => {
  const server = await serve(all, echo)
  const { messages, code } = await webSocketMessages(`ws://${server.base}/exec`, 'v5.channel.k8s.io', (socket) => {
    socket.send(Buffer.from('\x00he'))
    socket.send(Buffer.from('\x00y'))
    socket.send(Buffer.from([255, 0]))
  })
  assert.deepEqual(messages, [
    { channel: 1, text: 'out hey' },
    { channel: 2, text: 'err' },
    { channel: 3, text: '{"metadata":{},"status":"Success"}' },
  ])
  assert.equal(code, 1000)
  await server.close()
})

const closeFrame = Buffer.from([0x88, 0x80, 0, 0, 0, 0])

/** A short frame of a client: final, binary, masked with zeros. */
function clientFrame(...payload: readonly number[]): Buffer {
  return Buffer.from([0x82, 0x80 | payload.length, 0, 0, 0, 0, ...payload])
}

test('ARC-05 what a client sends along with its handshake is read like the rest', { timeout: 60_000 }, async () => {
  const heard: string[] = []
  const server = await serve(all, async (session) => {
    heard.push(await text(session.stdin ?? assert.fail()))
    await session.finish({ exitCode: 0 })
  })
  const { hostname, port } = new URL(`http://${server.base}`)
  const socket = connect(Number(port), hostname)
  const key = Buffer.alloc(16).toString('base64')
  const lines = ['GET /exec HTTP/1.1', 'host: x', 'connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', `sec-websocket-key: ${key}`]
  const head = [...lines, 'sec-websocket-protocol: v5.channel.k8s.io', '', ''].join('\r\n')
  socket.write(Buffer.concat([Buffer.from(head), clientFrame(0, 0x68, 0x69), clientFrame(255, 0)]))
  // The server ends the connection when its close frame, with the code 1000, has been answered.
  let received = Buffer.alloc(0)
  socket.on('data', (data) => {
    received = Buffer.concat([received, data])
    if (received.subarray(-4).equals(Buffer.from([0x88, 2, 0x03, 0xe8]))) socket.write(closeFrame)
  })
  await once(socket, 'end')
  socket.destroy()
  assert.deepEqual([heard, server.failures], [['hi'], []])
  await server.close()
})

test('ARC-05 the last output of a command precedes its status, however slowly it is sent', async () => {
  const options = { stdin: false, stdout: true, stderr: true, tty: false }
  const server = await serve(options, async (session) => {
    // As a copy does: the writes are accepted, and none is waited for.
    for (let i = 0; i < 200; i++) session.stdout?.write('x'.repeat(4096))
    session.stderr?.write('last words')
    await session.finish({ exitCode: 7 })
  })
  const { messages } = await webSocketMessages(`ws://${server.base}/exec`, 'v5.channel.k8s.io', () => {})
  const lengths = new Map<number, number>()
  for (const { channel, text } of messages) lengths.set(channel, (lengths.get(channel) ?? 0) + text.length)
  assert.deepEqual([lengths.get(1), lengths.get(2), messages.at(-1)?.channel], [200 * 4096, 'last words'.length, 3])
  await server.close()
})

test('ARC-05 a terminal gets sizes and no stderr', async () => {
  const options = { stdin: true, stdout: true, stderr: true, tty: true }
  const server = await serve(options, async (session) => {
    assert.equal(session.stderr, undefined)
    for await (const size of session.resizes!) {
      session.stdout?.write(`${size.width}x${size.height}`)
      break
    }
    await session.finish({ exitCode: 0 })
  })
  const { messages } = await webSocketMessages(`ws://${server.base}/exec`, 'v4.channel.k8s.io', (socket) =>
    socket.send(Buffer.from('\x04{"Width":132,"Height":43}')),
  )
  assert.equal(messages[0]?.text, '132x43')
  await server.close()
})

test('ARC-05 a client that leaves aborts the session', async () => {
  let aborted: Promise<unknown> | undefined
  const server = await serve(all, async (session) => {
    aborted = once(session.signal, 'abort')
  })
  const socket = new WebSocket(`ws://${server.base}/exec`, 'v5.channel.k8s.io')
  await once(socket, 'open')
  socket.terminate()
  while (!aborted) await new Promise((resolve) => setImmediate(resolve))
  await aborted
  await server.close()
})

test('ARC-05 port-forward over SPDY carries several connections and reports one that fails', async () => {
  const server = await serve(all, echo)
  const forward = await dialPortForward(`http://${server.base}/portforward`)
  for (const port of [80, 443]) {
    const { data, error } = await forward.connect(port)
    data.end('ping')
    assert.equal(await text(data), `${port}:ping`)
    assert.equal(await error, '')
  }
  const refused = await forward.connect(1)
  assert.equal(await refused.error, 'nobody listens on port 1')
  forward.close()
  await server.close()
})

test('ARC-05 port-forward in the old WebSocket form announces the port on both channels', async () => {
  const server = await serve(all, echo)
  const socket = new WebSocket(`ws://${server.base}/portforward?ports=8080`, 'v4.channel.k8s.io')
  const received: Buffer[] = []
  const enough = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      received.push(data)
      if (Buffer.concat(received).includes('pong')) resolve()
    })
  })
  await once(socket, 'open')
  socket.send(Buffer.from('\x00pong'))
  await enough
  assert.deepEqual(received.slice(0, 2), [Buffer.from([0, 0x90, 0x1f]), Buffer.from([1, 0x90, 0x1f])])
  socket.close()
  await server.close()
})

const refused = [
  { name: 'an unknown WebSocket protocol', headers: { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': 'v9.channel.k8s.io' }, code: 403 },
  { name: 'an unknown SPDY protocol', headers: { Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'v9.channel.k8s.io' }, code: 403 },
  { name: 'an unknown upgrade', headers: { Upgrade: 'h2c' }, code: 400 },
]
for (const c of refused) {
  test(`${c.name} is refused with ${c.code}`, async () => {
    const server = await serve(all, echo)
    const request = http.request(`http://${server.base}/exec`, { headers: { Connection: 'Upgrade', ...c.headers } as http.OutgoingHttpHeaders })
    request.end()
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(response.statusCode, c.code)
    response.resume()
    await once(response, 'end')
    assert.equal(server.failures.length, 1)
    await server.close()
  })
}

/** A runtime that speaks no more than needed: once the client has opened its streams, `then` may do with the connection as it likes. */
async function scriptedRuntime(then: (socket: net.Socket) => void) {
  const server = http.createServer()
  server.on('upgrade', (_request, socket: net.Socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
    // The first half-close of a stream marks all streams as open: an empty data frame with the flag FIN.
    socket.on('data', (chunk: Buffer) => chunk.subarray(-4).equals(Buffer.from([1, 0, 0, 0])) && then(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/exec`, close }
}

test('ARC-05 a connection that is cut before the status of the command came is no success', async () => {
  const runtime = await scriptedRuntime((socket) => socket.end())
  const command = await dialRemoteCommand(runtime.url, { ...all, stdin: false })
  const [out, result] = await Promise.all([text(command.stdout!), command.result])
  assert.deepEqual({ out, result }, { out: '', result: { error: 'the connection to the container runtime ended before the status of the command came' } })
  command.close()
  await runtime.close()
})

const dataFrame = (id: number, body: string) => Buffer.concat([Buffer.from([0, 0, 0, id, 0, 0, 0, body.length]), Buffer.from(body)])

for (const [how, leave] of [
  ['closes', (socket: net.Socket) => socket.destroy()],
  ['resets the connection', (socket: net.Socket) => socket.resetAndDestroy()],
] as const) {
  test(`ARC-05 the last words of a runtime that ${how} while standard input is being written are heard`, async () => {
    let allWritten = () => {}
    const written = new Promise<void>((resolve) => {
      allWritten = resolve
    })
    let command: RemoteCommand | undefined
    const runtime = await scriptedRuntime((socket) => {
      // Streams in the order in which they are opened: error 1, stdin 3, stdout 5.
      socket.write(Buffer.concat([dataFrame(5, 'last output'), dataFrame(1, '{"status":"Success"}')]))
      leave(socket)
      // Before the client's end gets to read, some writes of its own meet a closed connection.
      const write = (left: number) => void command?.stdin?.write('late', () => (left > 0 ? write(left - 1) : allWritten()))
      write(3)
    })
    command = await dialRemoteCommand(runtime.url, { ...all, stderr: false })
    const [out, result] = await Promise.all([text(command.stdout!), command.result, written])
    assert.deepEqual({ out, result }, { out: 'last output', result: { exitCode: 0 } })
    command.close()
    await runtime.close()
  })
}
