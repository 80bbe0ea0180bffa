/**
 * The client's side of exec and attach over SPDY/3.1 (L1): what the kubelet uses towards containerd's streaming server.
 * Upstream: client-go/tools/remotecommand v4.
 */
import http from 'node:http'
import https from 'node:https'
import type { Duplex, Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { SpdyConnection, type SpdyHeaders } from './spdy.ts'
import type { RemoteCommandOptions, TerminalSize } from './streams.ts'
import { resultOfStatus, type SessionResult } from './upgrade.ts'

export interface RemoteCommand {
  readonly stdin?: Writable | undefined
  readonly stdout?: Readable | undefined
  readonly stderr?: Readable | undefined
  /** With a TTY only. */
  resize(size: TerminalSize): void
  /** How the command ended, once the other side has said so. */
  readonly result: Promise<SessionResult>
  close(): void
}

export interface DialOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly tls?: https.RequestOptions
  readonly signal?: AbortSignal | undefined
}

/** Opens an exec or attach at `url` (http or https). */
export async function dialRemoteCommand(url: string, options: RemoteCommandOptions, dial: DialOptions = {}): Promise<RemoteCommand> {
  const { socket, head } = await upgradeToSpdy(url, 'v4.channel.k8s.io', dial)
  const connection = new SpdyConnection(socket, { client: true }, head)
  const open = (streamtype: string) => openStream(connection, { streamtype })
  const error = await open('error')
  const stdin = options.stdin ? await open('stdin') : undefined
  const stdout = options.stdout ? await open('stdout') : undefined
  const stderr = options.stderr && !options.tty ? await open('stderr') : undefined
  const resize = options.tty ? await open('resize') : undefined
  error.end()
  stdout?.end()
  stderr?.end()
  stdin?.resume()
  resize?.resume()
  const close = () => connection.close()
  dial.signal?.addEventListener('abort', close, { once: true })
  return {
    stdin,
    stdout,
    stderr,
    resize: (size) => {
      if (resize && !resize.destroyed) resize.write(`${JSON.stringify({ Width: size.width, Height: size.height })}\n`)
    },
    result: text(error).then(resultOfStatus),
    close,
  }
}

/** Opens port-forwarding at `url`; each call of `connect` is one forwarded connection to `port`. */
export async function dialPortForward(url: string, dial: DialOptions = {}) {
  const { socket, head } = await upgradeToSpdy(url, 'portforward.k8s.io', dial)
  const connection = new SpdyConnection(socket, { client: true }, head)
  let requests = 0
  return {
    connect: async (port: number): Promise<{ data: Duplex; error: Promise<string> }> => {
      const requestid = String(requests++)
      const error = await openStream(connection, { streamtype: 'error', port: String(port), requestid })
      error.end()
      const data = await openStream(connection, { streamtype: 'data', port: String(port), requestid })
      return { data, error: text(error) }
    },
    close: () => connection.close(),
  }
}

async function openStream(connection: SpdyConnection, headers: SpdyHeaders) {
  const stream = await connection.open(headers)
  stream.on('error', () => {})
  return stream
}

function upgradeToSpdy(url: string, protocol: string, dial: DialOptions): Promise<{ socket: Duplex; head: Buffer }> {
  return new Promise((resolve, reject) => {
    const client = url.startsWith('https:') ? https : http
    const request = client.request(url, {
      method: 'POST',
      ...dial.tls,
      ...(dial.signal ? { signal: dial.signal } : {}),
      headers: { ...dial.headers, Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': protocol },
    })
    request.once('upgrade', (_response, socket, head) => resolve({ socket, head }))
    request.once('response', (response) => {
      text(response).then((body) => reject(new Error(`unable to upgrade connection: ${response.statusCode}: ${body.trim().slice(0, 400)}`)), reject)
    })
    request.once('error', reject)
    request.end()
  })
}
