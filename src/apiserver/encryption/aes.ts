/**
 * AES for values at rest (L3): GCM, CBC, and GCM with keys derived from a seed. The layouts are upstream's, so that each server can read the
 * other's values. Upstream: apiserver/pkg/storage/value/encrypt/aes (v1.36).
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { ValueTransformer } from './transformer.ts'

const nonceSize = 12
const tagSize = 16
const blockSize = 16
const infoSize = 32
/** The shortest seed. */
export const seedSize = 32

const tooShort = 'the stored data was shorter than the required size'

/** Random nonce, ciphertext, tag; the storage key is authenticated. @param key of 16, 24 or 32 bytes */
export function gcmTransformer(key: Uint8Array): ValueTransformer {
  return {
    fromStorage: (data, context) => ({ data: openGcm(key, data, context.key), stale: false }),
    toStorage: (data, context) => sealGcm(key, data, context.key),
  }
}

function sealGcm(key: Uint8Array, data: Uint8Array, authenticated: string): Buffer {
  const nonce = randomBytes(nonceSize)
  const cipher = createCipheriv(gcmName(key), key, nonce)
  cipher.setAAD(Buffer.from(authenticated))
  return Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()])
}

function openGcm(key: Uint8Array, data: Uint8Array, authenticated: string): Buffer {
  if (data.length < nonceSize) throw new Error(tooShort)
  if (data.length < nonceSize + tagSize) throw new Error(unauthentic)
  const tagAt = data.length - tagSize
  const decipher = createDecipheriv(gcmName(key), key, data.subarray(0, nonceSize))
  decipher.setAAD(Buffer.from(authenticated))
  decipher.setAuthTag(data.subarray(tagAt))
  try {
    return Buffer.concat([decipher.update(data.subarray(nonceSize, tagAt)), decipher.final()])
  } catch (error) {
    throw new Error(unauthentic, { cause: error })
  }
}

/** Go's error text. */
const unauthentic = 'cipher: message authentication failed'

const gcmName = (key: Uint8Array) => `aes-${(key.length * 8) as 128 | 192 | 256}-gcm` as const

/** Random vector, ciphertext with PKCS#7 padding; not authenticated. @param key of 16, 24 or 32 bytes */
export function cbcTransformer(key: Uint8Array): ValueTransformer {
  const name = `aes-${key.length * 8}-cbc`
  return {
    fromStorage(data) {
      if (data.length < blockSize) throw new Error(tooShort)
      if (data.length % blockSize !== 0) throw new Error('the stored data is not a multiple of the block size')
      if (data.length === blockSize) throw new Error('invalid PKCS7 data (empty or not padded)')
      const decipher = createDecipheriv(name, key, data.subarray(0, blockSize)).setAutoPadding(false)
      return { data: unpadded(Buffer.concat([decipher.update(data.subarray(blockSize)), decipher.final()])), stale: false }
    },
    toStorage(data) {
      const vector = randomBytes(blockSize)
      const cipher = createCipheriv(name, key, vector)
      return Buffer.concat([vector, cipher.update(data), cipher.final()])
    },
  }
}

function unpadded(padded: Buffer): Buffer {
  const padding = padded[padded.length - 1] as number
  if (padding === 0 || padding > padded.length) throw new Error('invalid PKCS7 data (empty or not padded)')
  const end = padded.length - padding
  for (let at = end; at < padded.length; at++) if (padded[at] !== padding) throw new Error('invalid padding on input')
  return padded.subarray(0, end)
}

/** GCM with a separate key for each value: HKDF-expand of the seed and of 32 random bytes, which precede the value. */
export function extendedNonceGcmTransformer(seed: Uint8Array): ValueTransformer {
  if (seed.length < seedSize) throw new Error(`invalid seed length ${seed.length} used for key generation`)
  return {
    fromStorage(data, context) {
      if (data.length < infoSize) throw new Error(tooShort)
      return { data: openGcm(derivedKey(seed, data.subarray(0, infoSize)), data.subarray(infoSize), context.key), stale: false }
    },
    toStorage(data, context) {
      const info = randomBytes(infoSize)
      return Buffer.concat([info, sealGcm(derivedKey(seed, info), data, context.key)])
    },
  }
}

/** The first block of HKDF-expand with SHA-256 (RFC 5869), which is as long as a key is. */
function derivedKey(seed: Uint8Array, info: Uint8Array): Buffer {
  return createHmac('sha256', seed).update(info).update(Buffer.of(1)).digest()
}
