/**
 * The format of a value that was encrypted with a key management service (L3, pure): a protobuf message with the encrypted value, the encrypted data
 * key, and what the service needs to decrypt this key.
 * Upstream: apiserver/pkg/storage/value/encrypt/envelope/kmsv2 (envelope.go, v2/api.proto; v1.36).
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { isDns1123Subdomain } from '#api/machinery/names'
import { aggregate } from './transformer.ts'

/** The kind of the decrypted source: the key itself, or a seed from which each value's key is derived. */
export const sourceTypes = { aesGcmKey: 0, hkdfSha256ExtendedNonceAesGcmSeed: 1 } as const

export type Annotations = ReadonlyMap<string, Uint8Array>

/** A data encryption key as the service encrypted it. */
export interface EncryptedSource {
  readonly keyId: string
  readonly encryptedDekSource: Uint8Array
  readonly annotations: Annotations
  readonly sourceType: number
}

export interface EncryptedObject extends EncryptedSource {
  readonly encryptedData: Uint8Array
}

const field = { encryptedData: 1, keyId: 2, encryptedDekSource: 3, annotations: 4, sourceType: 5 } as const

/** Encodes the fields that are the same for all values of a key; made once per key. @returns the fields after the value */
export function encodeSource({ keyId, encryptedDekSource, annotations, sourceType }: EncryptedSource): Uint8Array {
  const writer = new BinaryWriter()
  writer.tag(field.keyId, WireType.LengthDelimited).string(keyId)
  writer.tag(field.encryptedDekSource, WireType.LengthDelimited).bytes(encryptedDekSource)
  for (const [name, value] of annotations) {
    writer.tag(field.annotations, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.LengthDelimited).string(name)
    writer.tag(2, WireType.LengthDelimited).bytes(value)
    writer.join()
  }
  if (sourceType !== 0) writer.tag(field.sourceType, WireType.Varint).int32(sourceType)
  return writer.finish()
}

/** @param source from {@link encodeSource} */
export function encodeEncryptedObject(encryptedData: Uint8Array, source: Uint8Array): Uint8Array {
  const head = new BinaryWriter().tag(field.encryptedData, WireType.LengthDelimited).uint32(encryptedData.length).finish()
  return Buffer.concat([head, encryptedData, source])
}

/** @throws Error when the bytes are no such message, or an invalid one */
export function decodeEncryptedObject(bytes: Uint8Array): EncryptedObject {
  const decoded = parse(bytes)
  if (decoded.encryptedData.length === 0) throw new Error('encrypted data is empty')
  validateSource(decoded)
  return decoded
}

function parse(bytes: Uint8Array): EncryptedObject {
  const reader = new BinaryReader(bytes)
  const annotations = new Map<string, Uint8Array>()
  let [encryptedData, encryptedDekSource, keyId, sourceType]: [Uint8Array, Uint8Array, string, number] = [new Uint8Array(), new Uint8Array(), '', 0]
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    if (number === field.encryptedData) encryptedData = reader.bytes()
    else if (number === field.keyId) keyId = reader.string()
    else if (number === field.encryptedDekSource) encryptedDekSource = Buffer.from(reader.bytes())
    else if (number === field.annotations) annotations.set(...parseAnnotation(reader.bytes()))
    else if (number === field.sourceType) sourceType = reader.int32()
    else reader.skip(wireType, number)
  }
  return { encryptedData, keyId, encryptedDekSource, annotations, sourceType }
}

function parseAnnotation(bytes: Uint8Array): [string, Uint8Array] {
  const reader = new BinaryReader(bytes)
  let [name, value]: [string, Uint8Array] = ['', new Uint8Array()]
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag()
    if (number === 1) name = reader.string()
    else if (number === 2) value = Buffer.from(reader.bytes())
    else reader.skip(wireType, number)
  }
  return [name, value]
}

const mostSourceBytes = 1024
const mostKeyIdBytes = 1024
const mostAnnotationBytes = 32 * 1024

/** @throws Error when the service's answer must not be stored */
export function validateSource({ sourceType, encryptedDekSource, keyId, annotations }: EncryptedSource): void {
  if (!Object.values<number>(sourceTypes).includes(sourceType)) throw new Error(`unknown encryptedDEKSourceType: ${sourceType}`)
  const size = encryptedDekSource.length
  if (size === 0) throw new Error('failed to validate encrypted DEK source: encrypted DEK source is empty')
  if (size > mostSourceBytes) {
    throw new Error(`failed to validate encrypted DEK source: encrypted DEK source is ${size} bytes, which exceeds the max size of ${mostSourceBytes}`)
  }
  const fault = keyIdFault(keyId)
  if (fault) throw new Error(`failed to validate key id: ${fault.message}`)
  const faults = annotationFaults(annotations)
  if (faults.length > 0) throw new Error(`failed to validate annotations: ${aggregate(faults.map((text) => new Error(text))).message}`)
}

export function keyIdFault(keyId: string): { readonly code: 'empty' | 'too_long'; readonly message: string } | undefined {
  if (keyId === '') return { code: 'empty', message: 'keyID is empty' }
  const size = Buffer.byteLength(keyId)
  return size > mostKeyIdBytes ? { code: 'too_long', message: `keyID is ${size} bytes, which exceeds the max size of ${mostKeyIdBytes}` } : undefined
}

function annotationFaults(annotations: Annotations): string[] {
  const faults: string[] = []
  let total = 0
  for (const [name, value] of annotations) {
    total += Buffer.byteLength(name) + value.length
    if (name === '') faults.push('annotations: Required value')
    else if (isDns1123Subdomain(name).length > 0) faults.push(`annotations: Invalid value: ${JSON.stringify(name)}: ${isDns1123Subdomain(name)[0]}`)
    else if (name.split('.').length < 2)
      faults.push(`annotations: Invalid value: ${JSON.stringify(name)}: should be a domain with at least two segments separated by dots`)
  }
  if (total > mostAnnotationBytes) faults.push(`total size of annotations is ${total}, which exceeds the max size of ${mostAnnotationBytes}`)
  return faults
}

/** Equal for sources that decrypt to the same. */
export function sourceKey({ sourceType, encryptedDekSource, keyId, annotations }: EncryptedSource): string {
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  const sorted = [...annotations].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, base64(value)])
  return JSON.stringify([sourceType, base64(encryptedDekSource), keyId, sorted])
}
