/** How the proxy ends TLS of clients (L3): with the certificate of each server name. */
import { X509Certificate } from 'node:crypto'
import { DEFAULT_CIPHERS, type SecureContext, type TlsOptions } from 'node:tls'
import { preferNamedCertificates } from '#base/namedCertificates'
import type { ProxyDeps } from './proxyDeps.ts'

export interface TlsOfListener {
  /** PEM, for server names without a certificate of their own. */
  readonly cert: string
  readonly key: string
  /** Undefined: the certificate above. */
  readonly contextOf: (serverName: string) => SecureContext | undefined
}

export function tlsOptions({ limits }: ProxyDeps, tls: TlsOfListener): TlsOptions {
  return {
    cert: tls.cert,
    key: tls.key,
    ...preferNamedCertificates(new X509Certificate(tls.cert).publicKey.asymmetricKeyType, DEFAULT_CIPHERS.split(':')),
    minVersion: 'TLSv1.2',
    handshakeTimeout: limits.headersTimeoutMs,
    SNICallback: (name, done) => done(null, tls.contextOf(name)),
  }
}
