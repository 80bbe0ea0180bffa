/**
 * Reaching what stands behind a subresource (L3): kubelets, pods, services. Plain requests are streamed through; upgrades become tunnels,
 * byte for byte, so it does not matter whether SPDY or WebSocket is spoken.
 * Upstream: apimachinery/pkg/util/proxy, pkg/registry/core/rest (LocationStreamer, UpgradeAwareHandler).
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as netConnect } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as tlsConnect } from 'node:tls'
import { StatusError } from '#api/machinery/status'
import type { Answer } from '../../answer.ts'
import type { ServerRequest } from '../../request.ts'

/** The API server's own credentials towards kubelets. Without `ca` their certificates are not checked, as upstream's default. */
export interface KubeletCredentials {
  readonly cert: string | Buffer
  readonly key: string | Buffer
  readonly ca?: string | Buffer | undefined
}

export interface Backend {
  readonly host: string
  readonly port: number
  /** Present: TLS. */
  readonly tls?: Partial<KubeletCredentials> | undefined
  /** Path and query. */
  readonly path: string
}

/** Proxied bodies may be larger than API objects, but still end up in memory. */
const proxyBodyBytes = 64 * 1024 * 1024
const connectTimeoutMs = 30_000

/** Headers of one hop, and those that are ours alone. */
const notForwarded: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'host',
  'content-length',
  'authorization',
  'http2-settings',
])
const bearerProtocol = 'base64url.bearer.authorization.k8s.io.'

export function isUpgrade(request: ServerRequest): boolean {
  const connection = request.headers.connection
  return typeof connection === 'string' && connection.toLowerCase().includes('upgrade') && request.headers.upgrade !== undefined
}

/** Streams a request to the backend and its answer back. */
export async function proxyPlain(request: ServerRequest, backend: Backend): Promise<Answer> {
  const body = await request.readBody(proxyBodyBytes)
  const bytes = body.type === 'bytes' ? body.bytes : body.value === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body.value))
  const response = await open(request, backend, bytes)
  const headers: Record<string, string | readonly string[]> = {}
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined && (name === 'content-length' || !notForwarded.has(name))) headers[name] = value
  }
  return { type: 'stream', status: response.statusCode ?? 502, headers, body: response }
}

/** Sends one request; its answer's body is still to be read. @throws ServiceUnavailable when nobody answers */
export function open(request: ServerRequest, backend: Backend, body: Buffer): Promise<IncomingMessage> {
  const headers: Record<string, string | string[]> = { host: `${backend.host}:${backend.port}`, 'x-forwarded-uri': request.path }
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !notForwarded.has(name) && !name.startsWith('impersonate-')) headers[name] = typeof value === 'string' ? value : [...value]
  }
  if (body.length > 0) headers['content-length'] = String(body.length)
  return new Promise((resolve, reject) => {
    const options = { method: request.method, host: backend.host, port: backend.port, path: backend.path, headers, signal: request.signal, agent: false }
    const outgoing = backend.tls ? httpsRequest({ ...options, ...tlsOptions(backend) }) : httpRequest(options)
    outgoing.setTimeout(connectTimeoutMs, () => {
      if (!outgoing.socket || outgoing.socket.connecting) outgoing.destroy(new Error(`dial tcp ${backend.host}:${backend.port}: i/o timeout`))
    })
    outgoing.on('response', resolve)
    outgoing.on('error', (error) => reject(dialError(error, backend)))
    outgoing.end(body.length > 0 ? body : undefined)
  })
}

/** Hands the client's connection over to the backend. */
export function tunnel(request: ServerRequest, backend: Backend): Answer {
  return {
    type: 'tunnel',
    async connect(socket, head) {
      const upstream = await dial(backend)
      upstream.write(rawHead(request, backend))
      if (head.length > 0) upstream.write(head)
      await join(socket, upstream)
    },
  }
}

function join(a: Duplex, b: Duplex): Promise<void> {
  return new Promise((resolve) => {
    let open = 2
    const closed = () => {
      if (--open === 0) resolve()
    }
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        to.end()
        closed()
      })
    }
  })
}

function dial(backend: Backend): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const { host, port } = backend
    const socket = backend.tls ? tlsConnect({ host, port, ALPNProtocols: ['http/1.1'], ...tlsOptions(backend) }) : netConnect({ host, port })
    const fail = (error: Error) => {
      socket.destroy()
      reject(dialError(error, backend))
    }
    socket.setTimeout(connectTimeoutMs, () => fail(new Error(`dial tcp ${host}:${port}: i/o timeout`)))
    socket.once('error', fail)
    socket.once(backend.tls ? 'secureConnect' : 'connect', () => {
      socket.setTimeout(0)
      socket.setNoDelay(true)
      socket.removeListener('error', fail)
      resolve(socket)
    })
  })
}

function rawHead(request: ServerRequest, backend: Backend): string {
  const lines = [`${request.method} ${backend.path} HTTP/1.1`, `Host: ${backend.host}:${backend.port}`, 'Connection: Upgrade']
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith('impersonate-')) continue
    if (name !== 'upgrade' && name !== 'content-length' && notForwarded.has(name)) continue
    for (const one of typeof value === 'string' ? [value] : value) {
      // A token that browsers smuggle in as a subprotocol is the API server's, not the kubelet's.
      const kept = name === 'sec-websocket-protocol' ? withoutBearer(one) : one
      if (kept !== '') lines.push(`${name}: ${kept}`)
    }
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

function withoutBearer(protocols: string): string {
  return protocols
    .split(',')
    .map((one) => one.trim())
    .filter((one) => !one.startsWith(bearerProtocol))
    .join(', ')
}

function tlsOptions({ tls }: Backend) {
  return {
    ...(tls?.cert ? { cert: tls.cert } : {}),
    ...(tls?.key ? { key: tls.key } : {}),
    ...(tls?.ca ? { ca: tls.ca } : {}),
    rejectUnauthorized: tls?.ca !== undefined,
    servername: '',
    // Kubelets are reached by address; what counts is that the CA signed them.
    checkServerIdentity: () => undefined,
  }
}

function dialError(error: Error, backend: Backend): StatusError {
  if (error.name === 'AbortError') return new StatusError('Timeout', 'the client went away')
  const message = error.message.startsWith('dial') ? error.message : `dial tcp ${backend.host}:${backend.port}: ${error.message}`
  return new StatusError('ServiceUnavailable', `error trying to reach service: ${message}`, { cause: error })
}
