/** Exec, attach and port-forward over SPDY/3.1 (L1): one stream each for stdin, stdout, stderr, resize and the final status. */
import type { Duplex } from 'node:stream'
import { finished } from 'node:stream/promises'
import { SpdyConnection, type SpdyStream } from './spdy.ts'
import type { PortForwardConnection, RemoteCommandOptions, RemoteCommandSession } from './streams.ts'
import { exitStatus, plainExit, readResizes, refuse, type SessionResult, type Upgrade } from './upgrade.ts'

/** In the server's order of preference. */
const commandProtocols = ['v4.channel.k8s.io', 'v3.channel.k8s.io', 'v2.channel.k8s.io', 'channel.k8s.io'] as const
const portForwardProtocol = 'portforward.k8s.io'
const streamCreationTimeoutMs = 30_000

/** Accepts an exec or attach: waits until the client has opened the streams that the options call for. */
export async function acceptSpdyCommand(upgrade: Upgrade, options: RemoteCommandOptions): Promise<RemoteCommandSession> {
  const offered = offeredProtocols(upgrade)
  // A client that offers none speaks the first version.
  const protocol = offered.length === 0 ? 'channel.k8s.io' : commandProtocols.find((known) => offered.includes(known))
  if (!protocol)
    throw refuse(
      upgrade,
      403,
      `unable to upgrade: unable to negotiate protocol: client supports ${offered.join(', ')}, server accepts ${commandProtocols.join(', ')}`,
    )
  const resizable = options.tty && (protocol === 'v4.channel.k8s.io' || protocol === 'v3.channel.k8s.io')
  const wanted = ['error', ...(options.stdin ? ['stdin'] : []), ...(options.stdout ? ['stdout'] : []), ...(options.stderr && !options.tty ? ['stderr'] : [])]
  if (resizable) wanted.push('resize')
  switchProtocols(upgrade, offered.length === 0 ? undefined : protocol)
  const { streams, connection } = await collectStreams(upgrade, wanted)
  return commandSession(connection, streams, protocol === 'v4.channel.k8s.io')
}

function commandSession(connection: SpdyConnection, streams: ReadonlyMap<string, SpdyStream>, statusAsJson: boolean): RemoteCommandSession {
  const gone = new AbortController()
  connection.onClose(() => gone.abort(new Error('the client went away')))
  const resize = streams.get('resize')
  return {
    stdin: streams.get('stdin'),
    stdout: streams.get('stdout'),
    stderr: streams.get('stderr'),
    resizes: resize ? readResizes(resize) : undefined,
    signal: gone.signal,
    finish: async (result: SessionResult) => {
      const output = ['stdout', 'stderr'].flatMap((name) => streams.get(name) ?? [])
      await Promise.all(output.map((stream) => endWriting(stream)))
      const error = streams.get('error')
      const text = statusAsJson ? JSON.stringify(exitStatus(result)) : plainExit(result)
      if (error && text && !error.destroyed) error.write(text)
      if (error) await endWriting(error)
      connection.close()
    },
  }
}

async function endWriting(stream: SpdyStream): Promise<void> {
  if (stream.destroyed) return
  stream.end()
  await finished(stream, { readable: false }).catch(() => {})
}

/** Resolves when every wanted stream type has been opened; rejects and closes when the client takes too long. */
function collectStreams(upgrade: Upgrade, wanted: readonly string[]): Promise<{ streams: Map<string, SpdyStream>; connection: SpdyConnection }> {
  return new Promise((resolve, reject) => {
    const streams = new Map<string, SpdyStream>()
    const connection = new SpdyConnection(upgrade.socket, {
      client: false,
      maxStreams: 16,
      onStream: (stream) => {
        const type = stream.headers.streamtype ?? ''
        if (!wanted.includes(type) || streams.has(type)) {
          stream.destroy()
          return
        }
        streams.set(type, stream)
        stream.accept().then(() => {
          if (streams.size < wanted.length) return
          clearTimeout(timer)
          resolve({ streams, connection })
        }, reject)
      },
    })
    const timer = setTimeout(() => {
      reject(new Error('timed out waiting for client to create streams'))
      connection.close()
    }, streamCreationTimeoutMs)
    connection.onClose(() => {
      clearTimeout(timer)
      reject(new Error('the client went away before it created its streams'))
    })
    if (upgrade.head.length > 0) upgrade.socket.unshift(upgrade.head)
  })
}

/** Accepts a port-forward: pairs of data and error streams, matched by request id. Resolves when the client has left. */
export async function acceptSpdyPortForward(upgrade: Upgrade, onConnection: (connection: PortForwardConnection) => void): Promise<void> {
  const offered = offeredProtocols(upgrade)
  if (offered.length > 0 && !offered.includes(portForwardProtocol))
    throw refuse(upgrade, 403, `unable to upgrade: unable to negotiate protocol: client supports ${offered.join(', ')}`)
  switchProtocols(upgrade, portForwardProtocol)
  if (upgrade.head.length > 0) upgrade.socket.unshift(upgrade.head)
  await serveSpdyPortForward(upgrade.socket, onConnection)
}

/** The same on a connection that already speaks SPDY (for example inside a WebSocket tunnel). */
export function serveSpdyPortForward(socket: Duplex, onConnection: (connection: PortForwardConnection) => void): Promise<void> {
  return new Promise((resolve) => {
    const waiting = new Map<string, { data?: SpdyStream; error?: SpdyStream }>()
    const connection = new SpdyConnection(socket, {
      client: false,
      onStream: (stream) => {
        const type = stream.headers.streamtype
        const port = Number(stream.headers.port)
        if ((type !== 'data' && type !== 'error') || !Number.isInteger(port) || port < 1 || port > 65_535) {
          stream.destroy()
          return
        }
        const requestId = stream.headers.requestid ?? String(type === 'error' ? stream.id : stream.id - 2)
        const pair = waiting.get(requestId) ?? {}
        pair[type] = stream
        waiting.set(requestId, pair)
        // A stream that ends without its partner must not be remembered for as long as the connection lives.
        stream.once('close', () => {
          if (waiting.get(requestId) === pair) waiting.delete(requestId)
        })
        void stream.accept().catch(() => {})
        const { data, error } = pair
        if (!data || !error) return
        waiting.delete(requestId)
        error.resume()
        data.once('close', () => error.end())
        onConnection({
          port,
          data,
          fail: (message) => {
            error.end(message)
            data.destroy()
          },
        })
      },
    })
    connection.onClose(resolve)
  })
}

function offeredProtocols(upgrade: Upgrade): string[] {
  const header = upgrade.request.headers['x-stream-protocol-version']
  return (Array.isArray(header) ? header : [header ?? ''])
    .flatMap((value) => value.split(','))
    .map((value) => value.trim())
    .filter(Boolean)
}

function switchProtocols(upgrade: Upgrade, protocol: string | undefined): void {
  const named = protocol ? `X-Stream-Protocol-Version: ${protocol}\r\n` : ''
  upgrade.socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${named}\r\n`)
}
