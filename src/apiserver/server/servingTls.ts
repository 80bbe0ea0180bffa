/**
 * TLS settings of the port (L3): certificates by server name, versions, ciphers and curves.
 * Upstream: apiserver/pkg/server/secure_serving.go, dynamiccertificates/named_certificates.go (v1.36).
 */
import { constants, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext, type SecureContextOptions } from 'node:tls'
import { preferNamedCertificates } from '#base/namedCertificates'
import type { ClientAuthorities } from './peerCertificate.ts'

/** PEM. */
export interface ServingTls extends ClientAuthorities, TlsRules {
  readonly cert: string | Buffer
  readonly key: string | Buffer
  /** Further certificates, for other server names. */
  readonly named?: readonly NamedCertificate[] | undefined
}

/** PEM. */
export interface NamedCertificate {
  readonly cert: string
  readonly key: string
  /** Server names that select the certificate, perhaps with a leading `*.`; empty: the names in the certificate. */
  readonly names: readonly string[]
}

/** The settings that do not change while the server runs. */
export interface TlsRules {
  /** Default TLSv1.2. */
  readonly minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' | undefined
  /** Suites for versions before 1.3, by OpenSSL's names; absent: Node's defaults. */
  readonly ciphers?: readonly string[] | undefined
  /** Groups for the key exchange, by OpenSSL's names; absent: Node's defaults. */
  readonly curves?: readonly string[] | undefined
}

/**
 * Go's order: AES with 128 bits first if the client offers it, which takes half the time of OpenSSL's first choice. The rest is in Node's order.
 */
const first = 'TLS_AES_128_GCM_SHA256'
const offered = [first, ...DEFAULT_CIPHERS.split(':').filter((name) => name !== first)]
/** The suites of TLS 1.3 are not configurable, as in Go. */
const ofVersion13 = offered.filter((name) => name.startsWith('TLS_'))

/** The server chooses; ChaCha20 for a client that names it first, since that has no AES in hardware. */
const secureOptions = constants.SSL_OP_CIPHER_SERVER_PREFERENCE | constants.SSL_OP_PRIORITIZE_CHACHA

/** The context for clients that send no server name, or one without a certificate. */
export function contextOf({ cert, key, clientCa, requestHeaderCa, minVersion = 'TLSv1.2', ciphers, curves }: Omit<ServingTls, 'named'>): SecureContextOptions {
  const authorities = [clientCa, requestHeaderCa].filter((one) => one !== undefined)
  return {
    cert,
    key,
    ...(authorities.length > 0 ? { ca: authorities } : {}),
    minVersion,
    ...preferNamedCertificates(new X509Certificate(cert).publicKey.asymmetricKeyType, ciphers ? [...ofVersion13, ...ciphers] : offered),
    ...(curves ? { ecdhCurve: curves.join(':') } : {}),
    secureOptions,
  }
}

/** Selects the named certificate for a server name; undefined: none matches. */
export function namedContexts(tls: ServingTls): (name: string) => SecureContext | undefined {
  const byName = new Map<string, SecureContext>()
  const contexts = (tls.named ?? []).map((named) => ({ ...named, context: createSecureContext(contextOf({ ...tls, cert: named.cert, key: named.key })) }))
  // The first certificate with a name wins; explicitly configured names win over names in certificates.
  const given = contexts.flatMap(({ names, context }) => names.map((name) => [name, context] as const))
  const own = contexts.flatMap(({ names, cert, context }) => (names.length > 0 ? [] : namesOf(cert).map((name) => [name, context] as const)))
  for (const [name, context] of [...given, ...own]) {
    const key = name.toLowerCase()
    if (!byName.has(key)) byName.set(key, context)
  }
  return (asked) => {
    const name = asked.toLowerCase().replace(/\.+$/, '')
    return byName.get(name) ?? byName.get(name.replace(/^[^.]*/, '*'))
  }
}

const domain = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Addresses are left out: clients may not ask for them by name. */
function namesOf(pem: string): readonly string[] {
  const certificate = new X509Certificate(pem)
  const commonName = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? ''
  const alternatives = [...(certificate.subjectAltName ?? '').matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name as string)
  const isName = isIP(commonName) === 0 && (commonName === '*' || domain.test(commonName))
  return [...(isName ? [commonName] : []), ...alternatives]
}
