/**
 * The keys of pods' certificates and the requests that prove them (L3): a PKCS#10 request without a subject, signed with its key.
 * Upstream: generateKeyAndProof of kubelet/podcertificate, Go's crypto/x509 CreateCertificateRequest. RFC 2986.
 */
import { createPublicKey, generateKeyPair, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { ownValue } from '#base/bareMap'
import { derTag } from '#base/der'
import { encodeDer, encodeIdentifier } from '#base/derEncoding'

const generate = promisify(generateKeyPair)

interface KeyType {
  generate(): Promise<{ readonly privateKey: KeyObject }>
  /** The signature's digest; null: the scheme defines it. */
  readonly digest: string | null
  /** DER of the signature's algorithm. */
  readonly algorithm: Uint8Array
}

const algorithm = (identifier: string, ...parameters: readonly Uint8Array[]) => encodeDer(derTag.sequence, encodeIdentifier(identifier), ...parameters)
const noParameters = Uint8Array.of(5, 0)
const rsa = (modulusLength: number): KeyType => ({
  generate: () => generate('rsa', { modulusLength }),
  digest: 'sha256',
  algorithm: algorithm('1.2.840.113549.1.1.11', noParameters),
})
const ecdsa = (namedCurve: string, digest: string, identifier: string): KeyType => ({
  generate: () => generate('ec', { namedCurve }),
  digest,
  algorithm: algorithm(identifier),
})

const keyTypes: Readonly<Record<string, KeyType>> = {
  RSA3072: rsa(3072),
  RSA4096: rsa(4096),
  ECDSAP256: ecdsa('P-256', 'sha256', '1.2.840.10045.4.3.2'),
  ECDSAP384: ecdsa('P-384', 'sha384', '1.2.840.10045.4.3.3'),
  ECDSAP521: ecdsa('P-521', 'sha512', '1.2.840.10045.4.3.4'),
  ED25519: { generate: () => generate('ed25519'), digest: null, algorithm: algorithm('1.3.101.112') },
}

export interface NewKey {
  /** PEM of the private key, as PKCS#8. */
  readonly key: string
  /** Base64 of the request's DER. */
  readonly request: string
}

/** @throws Error for a type that is not known */
export async function newKey(type: string): Promise<NewKey> {
  const known = ownValue(keyTypes, type)
  if (!known) throw new Error(`unknown key type ${JSON.stringify(type)}`)
  const { privateKey } = await known.generate()
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  const version = Uint8Array.of(derTag.integer, 1, 0)
  const noAttributes = Uint8Array.of(0xa0, 0)
  const signed = encodeDer(derTag.sequence, version, encodeDer(derTag.sequence), publicKey, noAttributes)
  const signature = encodeDer(derTag.bitString, Uint8Array.of(0), sign(known.digest, signed, privateKey))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    request: Buffer.from(encodeDer(derTag.sequence, signed, known.algorithm, signature)).toString('base64'),
  }
}
