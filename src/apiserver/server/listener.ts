/**
 * The one TLS port (L3): HTTP/2 and HTTP/1.1 by ALPN, client certificates, upgrades, graceful shutdown. Each protocol has its
 * own plain server behind the TLS one, without node's compatibility layer.
 */
import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import type { ExchangeDeps } from './exchange.ts'
import { http1Server } from './http1.ts'
import { http2Server } from './http2/server.ts'
import { peerReader } from './peerCertificate.ts'
import { contextOf, namedContexts, type ServingTls } from './servingTls.ts'

export interface ListenOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** How long an HTTP/2 connection may be without a request; default 90 s, as upstream's. */
  readonly idleTimeoutMs?: number | undefined
  /** For a handshake, and for the headers of an HTTP/1.1 request; default 32 s, as upstream's. */
  readonly headersTimeoutMs?: number | undefined
  /** Concurrent streams of one HTTP/2 connection; default 100, as upstream's. */
  readonly maxStreams?: number | undefined
  /** Default true. */
  readonly http2?: boolean | undefined
  /** Other processes may bind the same address and port; Node.js 22.12 or later. */
  readonly sharesPort?: boolean | undefined
  readonly tls: ServingTls
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** Applies to new connections; existing ones keep their settings. */
  setTls(tls: ServingTls): void
  /** Stops accepting; once `drained`, gives connections a short while to end by themselves, then closes every one. */
  close(drained?: Promise<void>): Promise<void>
}

const drainMs = 2_000
const idleTimeoutMs = 90_000
const defaultHeadersTimeoutMs = 32_000
const defaultMaxStreams = 100

/** Resolves when the port accepts connections; speaks HTTP/2 and HTTP/1.1 on it. */
export async function listen(given: Omit<ExchangeDeps, 'peerOf'>, options: ListenOptions): Promise<Listener> {
  const peers = peerReader(options.tls)
  const deps: ExchangeDeps = { ...given, peerOf: peers.peerOf }
  const { headersTimeoutMs = defaultHeadersTimeoutMs } = options
  const http1 = http1Server(deps, headersTimeoutMs)
  const http2 = http2Server(deps, { idleMs: options.idleTimeoutMs ?? idleTimeoutMs, maxStreams: options.maxStreams ?? defaultMaxStreams })
  const sockets = new Set<TLSSocket>()
  let named = namedContexts(options.tls)
  const tlsOptions: TlsOptions = {
    ...contextOf(options.tls),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: options.http2 === false ? ['http/1.1'] : ['h2', 'http/1.1'],
    SNICallback: (name, done) => done(null, named(name)),
    handshakeTimeout: headersTimeoutMs,
  }
  const server = createServer(tlsOptions, (socket) => {
    sockets.add(socket)
    peers.peerOf(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.setNoDelay(true)
    if (socket.alpnProtocol === 'h2') http2.accept(socket)
    else http1.emit('connection', socket)
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const shared = options.sharesPort ? { reusePort: true } : {}
    server.listen({ port: options.port, host: options.host, ...shared }, () => resolve())
  })
  server.removeAllListeners('error')
  server.on('error', (error) => deps.log.error(error, 'The listening socket failed'))
  const address = server.address() as AddressInfo
  return {
    host: address.address,
    port: address.port,
    setTls(tls) {
      peers.trust(tls)
      server.setSecureContext(contextOf(tls))
      named = namedContexts(tls)
    },
    async close(drained) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      http2.endGracefully()
      // Closes idle connections.
      http1.close()
      await Promise.race([closed, drained])
      const cut = deps.clock.timer(drainMs, () => {
        for (const socket of sockets) socket.destroy()
      })
      await closed
      cut.cancel()
    },
  }
}
