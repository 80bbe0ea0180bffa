/**
 * Exec, attach and port-forward over WebSocket (L1): the first byte of a message names the channel. v5 adds a close signal, so stdin can be
 * half-closed; the base64 forms carry text. Upstream: apimachinery/pkg/util/remotecommand/websocket.go, httpstream/wsstream.
 */
import { Duplex, PassThrough, Writable } from 'node:stream'
import WebSocket from 'ws'
import { offeredProtocols } from './offeredProtocols.ts'
import { serveSpdyPortForward } from './spdyCommand.ts'
import type { PortForwardConnection, RemoteCommandOptions, RemoteCommandSession } from './streams.ts'
import { exitStatus, plainExit, readResizes, refuse, type Upgrade } from './upgrade.ts'
import { acceptTunnel, acceptWebSocket, tunnelPrefix } from './webSocketHandshake.ts'

const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const
const commandProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io', 'channel.k8s.io', 'base64.channel.k8s.io'] as const
/** kubectl's: SPDY frames carried in binary messages. */
const tunnelProtocol = `${tunnelPrefix}portforward.k8s.io`
const portForwardProtocols = [tunnelProtocol, 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io'] as const
const maxMessageBytes = 32 * 1024 * 1024
const pauseAboveBytes = 1024 * 1024

/** The first protocol of ours that the client offers. A client that offers none gets channel.k8s.io, as upstream. */
function chooseProtocol(upgrade: Upgrade, known: readonly string[]): { readonly protocol: string; readonly answered: string | undefined } {
  const offered = offeredProtocols(upgrade.request.headers['sec-websocket-protocol'])
  if (offered.length === 0) return { protocol: 'channel.k8s.io', answered: undefined }
  const protocol = known.find((name) => offered.includes(name))
  if (!protocol) throw refuse(upgrade, 403, `requested protocol(s) are not supported: ${offered.join(', ')}; supports ${known.join(', ')}`)
  return { protocol, answered: protocol }
}

/** @throws Error of a malformed handshake, which is answered with 400 */
function refusingFaults<T>(upgrade: Upgrade, accepted: Promise<T>): Promise<T> {
  return accepted.catch((error: Error) => {
    refuse(upgrade, 400, error.message)
    throw error
  })
}

/** Accepts an exec or attach. */
export async function acceptWebSocketCommand(upgrade: Upgrade, options: RemoteCommandOptions): Promise<RemoteCommandSession> {
  const { protocol, answered } = chooseProtocol(upgrade, commandProtocols)
  const socket = await refusingFaults(upgrade, acceptWebSocket(upgrade, answered, maxMessageBytes))
  const base64 = protocol.includes('base64')
  const gone = new AbortController()
  const stdin = options.stdin ? new PassThrough({ highWaterMark: pauseAboveBytes }) : undefined
  const resize = options.tty ? new PassThrough() : undefined
  const incoming = new Map<number, PassThrough>()
  if (stdin) incoming.set(channel.stdin, stdin)
  if (resize) incoming.set(channel.resize, resize)
  receiveChannels(socket, base64, incoming)
  socket.once('close', () => {
    stdin?.end()
    resize?.end()
    gone.abort(new Error('the client went away'))
  })
  const stdout = options.stdout ? channelWriter(socket, channel.stdout, base64) : undefined
  const stderr = options.stderr && !options.tty ? channelWriter(socket, channel.stderr, base64) : undefined
  const hasStatus = protocol.startsWith('v')
  return {
    stdin,
    stdout,
    stderr,
    resizes: resize ? readResizes(resize) : undefined,
    signal: gone.signal,
    finish: async (result) => {
      // Data in these streams may still be queued: the copy loop saw it accepted, not sent.
      await Promise.all([flushed(stdout), flushed(stderr)])
      const text = hasStatus ? JSON.stringify(exitStatus(result)) : plainExit(result)
      if (text) await send(socket, channel.error, Buffer.from(text), base64).catch(() => {})
      socket.close(1000)
    },
  }
}

/** Hands each message to its channel; pauses the socket while a reader is behind. */
function receiveChannels(socket: WebSocket, base64: boolean, incoming: ReadonlyMap<number, PassThrough>): void {
  socket.on('error', () => socket.terminate())
  socket.on('message', (data) => {
    const message = data as Buffer
    if (message.length === 0) return
    const number = base64 ? (message[0] ?? 0) - 48 : (message[0] ?? 0)
    if (number === channel.close) {
      incoming.get(message[1] ?? -1)?.end()
      return
    }
    const target = incoming.get(number)
    if (!target || target.writableEnded) return
    const payload = base64 ? Buffer.from(message.toString('latin1', 1), 'base64') : message.subarray(1)
    if (payload.length > 0 && !target.write(payload)) {
      socket.pause()
      const resume = () => {
        target.off('drain', resume)
        target.off('close', resume)
        socket.resume()
      }
      // A reader that is gone never drains, and the client's farewell must still be heard.
      target.once('drain', resume)
      target.once('close', resume)
    }
  })
  socket.resume()
}

/** Until everything written so far is out, or cannot go out any more. */
function flushed(writable: Writable | undefined): Promise<void> {
  if (!writable || writable.destroyed || writable.writableFinished) return Promise.resolve()
  return new Promise((resolve) => writable.end(() => resolve()))
}

/** A writable whose bytes go out on one channel. */
function channelWriter(socket: WebSocket, number: number, base64: boolean): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      send(socket, number, chunk, base64).then(() => done(), done)
    },
  })
}

function send(socket: WebSocket, number: number, payload: Buffer, base64: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.readyState !== WebSocket.OPEN) {
      reject(new Error('the client went away'))
      return
    }
    const done = (error?: Error | null) => (error ? reject(error) : resolve())
    if (base64) socket.send(`${number}${payload.toString('base64')}`, { binary: false }, done)
    else socket.send(Buffer.concat([Buffer.from([number]), payload]), { binary: true }, done)
  })
}

/** Accepts a port-forward: kubectl's tunnelled SPDY, or the old form with a pair of channels for each port of the query. */
export async function acceptWebSocketPortForward(
  upgrade: Upgrade,
  ports: readonly number[],
  onConnection: (connection: PortForwardConnection) => void,
): Promise<void> {
  const { protocol, answered } = chooseProtocol(upgrade, portForwardProtocols)
  if (protocol === tunnelProtocol) return serveSpdyPortForward(await refusingFaults(upgrade, acceptTunnel(upgrade, answered)), onConnection)
  const socket = await refusingFaults(upgrade, acceptWebSocket(upgrade, answered, maxMessageBytes))
  return servePortChannels(socket, protocol.includes('base64'), ports, onConnection)
}

/** Channel 2i carries the data of the i-th port, 2i+1 its errors; each begins with the port, two bytes, little-endian. */
function servePortChannels(
  socket: WebSocket,
  base64: boolean,
  ports: readonly number[],
  onConnection: (connection: PortForwardConnection) => void,
): Promise<void> {
  const incoming = new Map<number, PassThrough>()
  ports.forEach((port, i) => {
    const fromClient = new PassThrough({ highWaterMark: pauseAboveBytes })
    incoming.set(2 * i, fromClient)
    const data = Duplex.from({ readable: fromClient, writable: channelWriter(socket, 2 * i, base64) })
    data.on('error', () => {})
    const portBytes = Buffer.from([port & 0xff, port >> 8])
    const announce = Promise.all([send(socket, 2 * i, portBytes, base64), send(socket, 2 * i + 1, portBytes, base64)])
    announce.then(
      () =>
        onConnection({
          port,
          data,
          fail: (message) => {
            void send(socket, 2 * i + 1, Buffer.from(message), base64).catch(() => {})
            data.destroy()
          },
        }),
      () => {},
    )
  })
  receiveChannels(socket, base64, incoming)
  return new Promise((resolve) => {
    socket.once('close', () => {
      for (const stream of incoming.values()) stream.end()
      resolve()
    })
  })
}
