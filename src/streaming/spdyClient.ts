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
  const result = text(error).then(resultOfStatus)
  // It fails when the connection is closed, which the caller may have done without waiting for it.
  result.catch(() => {})
  return {
    stdin,
    stdout,
    stderr,
    resize: (size) => {
      if (resize) writeLatest(resize, `${JSON.stringify({ Width: size.width, Height: size.height })}\n`)
    },
    result,
    close,
  }
}

const waitingText = new WeakMap<Writable, string>()

/** While the other side takes nothing, only the newest text waits: a client can send sizes faster than they are taken. */
function writeLatest(stream: Writable, text: string): void {
  if (stream.destroyed) return
  if (!stream.writableNeedDrain) {
    stream.write(text)
    return
  }
  if (!waitingText.has(stream)) {
    stream.once('drain', () => {
      const newest = waitingText.get(stream)
      waitingText.delete(stream)
      if (newest !== undefined) writeLatest(stream, newest)
    })
  }
  waitingText.set(stream, text)
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
      const message = text(error)
      message.catch(() => {})
      return { data: await openStream(connection, { streamtype: 'data', port: String(port), requestid }), error: message }
    },
    close: () => connection.close(),
  }
}

async function openStream(connection: SpdyConnection, headers: SpdyHeaders) {
  const stream = await connection.open(headers)
  stream.on('error', () => {})
  return stream
}

const maxErrorLength = 400

async function beginningOf(body: AsyncIterable<unknown>): Promise<string> {
  let beginning = ''
  for await (const chunk of body) {
    beginning += String(chunk)
    if (beginning.length >= maxErrorLength) break
  }
  return beginning.slice(0, maxErrorLength)
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
    request.once('upgrade', (response, socket, head) => {
      if (response.headers.upgrade?.toLowerCase() === 'spdy/3.1') resolve({ socket, head })
      else {
        socket.destroy()
        reject(new Error(`unable to upgrade connection: the server switched to ${JSON.stringify(response.headers.upgrade)}`))
      }
    })
    request.once('response', (response) => {
      beginningOf(response).then((body) => reject(new Error(`unable to upgrade connection: ${response.statusCode}: ${body.trim()}`)), reject)
    })
    request.once('error', reject)
    request.end()
  })
}
