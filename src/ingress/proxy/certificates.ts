/**
 * Certificates from Secrets (L3). A Secret that has changed is another object, so that the next handshake reads it. What a tenant puts into a Secret is read
 * and used by every handshake of its hosts: sizes and kinds of keys whose use takes long are refused.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Secret } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'

export const tlsSecretType = 'kubernetes.io/tls'

/** Base64. A chain has a few kilobytes. */
const maxEncoded = 128 * 1024
/** A signature with 8192 bits takes tens of milliseconds, which all other connections wait for. */
const maxRsaBits = 4096

interface Loaded {
  readonly context?: SecureContext
  /** Why it cannot be used. */
  readonly problem?: string
}

export interface CertificateReader {
  load(secret: Frozen<Secret>): Loaded
}

export function createCertificateReader(): CertificateReader {
  const loaded = new WeakMap<object, Loaded>()
  return {
    load(secret) {
      const there = loaded.get(secret)
      if (there) return there
      const made = contextOf(secret)
      loaded.set(secret, made)
      return made
    },
  }
}

function contextOf({ type, data = {} }: Frozen<Secret>): Loaded {
  if (type !== tlsSecretType) return { problem: `its type is not ${tlsSecretType}` }
  const { 'tls.crt': cert = '', 'tls.key': key = '' } = data as Readonly<Record<string, string>>
  if (cert.length > maxEncoded || key.length > maxEncoded) return { problem: 'its certificate or key is too large' }
  const decode = (text: string) => Buffer.from(text, 'base64')
  try {
    const pair = { cert: decode(cert), key: decode(key) }
    const privateKey = createPrivateKey(pair.key)
    const { modulusLength = 0 } = privateKey.asymmetricKeyDetails ?? {}
    if (modulusLength > maxRsaBits) return { problem: `its RSA key has more than ${maxRsaBits} bits` }
    if (!new X509Certificate(pair.cert).checkPrivateKey(privateKey)) return { problem: 'its key does not belong to its certificate' }
    return { context: createSecureContext({ ...pair, minVersion: 'TLSv1.2' }) }
  } catch (error) {
    return { problem: `its certificate or key cannot be read: ${messageOf(error)}` }
  }
}
