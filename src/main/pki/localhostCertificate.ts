/**
 * A self-signed certificate for a server on 127.0.0.1 (L5), its own authority. It is written as DER here: loading the X.509 library takes longer than a command
 * that only shows a file should. RFC 5280.
 */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { derTag } from '#base/der'
import { encodeDer, encodeIdentifier } from '#base/derEncoding'
import type { KeyPair } from './certificates.ts'

const tag = { boolean: 0x01, utcTime: 0x17, version: 0xa0, extensions: 0xa3, ipAddress: 0x87 } as const
const id = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAlternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

const msPerDay = 86_400_000
const backdateMs = 300_000

const sequence = (...contents: readonly Uint8Array[]) => encodeDer(derTag.sequence, ...contents)
const bitString = (bytes: Uint8Array, unusedBits = 0) => encodeDer(derTag.bitString, Uint8Array.of(unusedBits), bytes)
const algorithm = sequence(encodeIdentifier(id.ecdsaWithSha256))

/** @param nowMs before 2050, up to which certificates write the year with two digits */
export function localhostCertificate(commonName: string, nowMs: number, validDays: number): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' })
  const name = nameOf(commonName)
  const content = sequence(
    encodeDer(tag.version, encodeDer(derTag.integer, Uint8Array.of(2))),
    encodeDer(derTag.integer, serialNumber()),
    algorithm,
    name,
    sequence(timeOf(nowMs - backdateMs), timeOf(nowMs + validDays * msPerDay)),
    name,
    publicKeyInfo,
    encodeDer(tag.extensions, sequence(...extensionsOf(publicKeyInfo))),
  )
  const der = sequence(content, algorithm, bitString(sign('sha256', content, privateKey)))
  return { cert: pemOf(der), key: privateKey.export({ type: 'sec1', format: 'pem' }).toString() }
}

function extensionsOf(publicKeyInfo: Uint8Array): Uint8Array[] {
  const keyIdentifier = createHash('sha1').update(publicKeyInfo).digest()
  return [
    extension(id.basicConstraints, sequence(), true),
    // digitalSignature, the first of its bits.
    extension(id.keyUsage, bitString(Uint8Array.of(0x80), 7), true),
    extension(id.extendedKeyUsage, sequence(encodeIdentifier(id.serverAuth))),
    extension(id.subjectKeyIdentifier, encodeDer(derTag.octetString, keyIdentifier)),
    extension(id.subjectAlternativeName, sequence(encodeDer(tag.ipAddress, Uint8Array.of(127, 0, 0, 1)))),
  ]
}

function extension(identifier: string, content: Uint8Array, isCritical = false): Uint8Array {
  const critical = isCritical ? [encodeDer(tag.boolean, Uint8Array.of(0xff))] : []
  return sequence(encodeIdentifier(identifier), ...critical, encodeDer(derTag.octetString, content))
}

function nameOf(commonName: string): Uint8Array {
  return sequence(encodeDer(derTag.set, sequence(encodeIdentifier(id.commonName), encodeDer(derTag.utf8String, Buffer.from(commonName)))))
}

/** Positive, and of full length: the first two bits are 01. */
function serialNumber(): Uint8Array {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes
}

/** YYMMDDHHMMSSZ */
function timeOf(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, '')
  return encodeDer(tag.utcTime, Buffer.from(`${digits.slice(2, 14)}Z`))
}

function pemOf(der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .match(/.{1,64}/g)
  return `-----BEGIN CERTIFICATE-----\n${lines?.join('\n')}\n-----END CERTIFICATE-----\n`
}
