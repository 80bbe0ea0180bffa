/**
 * The one TLS port (L3): HTTP/2 and HTTP/1.1 by ALPN, client certificates, upgrades, graceful shutdown. Each protocol has its
 * own plain server behind the TLS one, so that neither's compatibility layer is in the way.
 */
import { constants } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createServer, DEFAULT_CIPHERS, type SecureContextOptions, type TLSSocket, type TlsOptions } from 'node:tls'
import type { ExchangeDeps } from './exchange.ts'
import { http1Server } from './http1.ts'
import { http2Server } from './http2/server.ts'
import { type ClientAuthorities, peerReader } from './peerCertificate.ts'

export interface ListenOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** How long an HTTP/2 connection may be without a request; default 90 s, as upstream's. */
  readonly idleTimeoutMs?: number | undefined
  /** For a handshake, and for the headers of an HTTP/1.1 request; default 32 s, as upstream's. */
  readonly headersTimeoutMs?: number | undefined
  readonly tls: ServingTls
}

/** PEM. */
export interface ServingTls extends ClientAuthorities {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** For connections from now on; those that are there stay. */
  setTls(tls: ServingTls): void
  /** Stops accepting; once `drained`, gives connections a short while to end by themselves, then closes every one. */
  close(drained?: Promise<void>): Promise<void>
}

const drainMs = 2_000
const idleTimeoutMs = 90_000
const defaultHeadersTimeoutMs = 32_000

/** Resolves when the port accepts connections; speaks HTTP/2 and HTTP/1.1 on it. */
export async function listen(given: Omit<ExchangeDeps, 'peerOf'>, options: ListenOptions): Promise<Listener> {
  const peers = peerReader(options.tls)
  const deps: ExchangeDeps = { ...given, peerOf: peers.peerOf }
  const { headersTimeoutMs = defaultHeadersTimeoutMs } = options
  const http1 = http1Server(deps, headersTimeoutMs)
  const http2 = http2Server(deps, options.idleTimeoutMs ?? idleTimeoutMs)
  const sockets = new Set<TLSSocket>()
  const tlsOptions: TlsOptions = {
    ...contextOf(options.tls),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
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
    server.listen(options.port, options.host, () => resolve())
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
    },
    async close(drained) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      http2.endGracefully()
      // Closes what is idle.
      http1.close()
      await Promise.race([closed, drained])
      await Promise.race([closed, deps.clock.sleep(drainMs)])
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/**
 * As Go prefers them: of those that a client offers, AES with 128 bits first, which costs half of what OpenSSL's own first choice costs. The rest is
 * what Node offers.
 */
const first = 'TLS_AES_128_GCM_SHA256'
const ciphers = [first, ...DEFAULT_CIPHERS.split(':').filter((name) => name !== first)].join(':')

/** The server chooses; ChaCha20 for a client that names it first, since that has no AES in hardware. */
const secureOptions = constants.SSL_OP_CIPHER_SERVER_PREFERENCE | constants.SSL_OP_PRIORITIZE_CHACHA

function contextOf({ cert, key, clientCa, requestHeaderCa }: ServingTls): SecureContextOptions {
  const authorities = [clientCa, requestHeaderCa].filter((one) => one !== undefined)
  return { cert, key, ...(authorities.length > 0 ? { ca: authorities } : {}), minVersion: 'TLSv1.2', ciphers, secureOptions }
}
