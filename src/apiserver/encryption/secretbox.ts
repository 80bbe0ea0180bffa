/**
 * NaCl's secretbox for values at rest (L3): XSalsa20-Poly1305 with a random nonce before the value; the storage key is not authenticated.
 * Upstream: apiserver/pkg/storage/value/encrypt/secretbox (v1.36).
 */
import { randomBytes } from 'node:crypto'
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js'
import type { ValueTransformer } from './transformer.ts'

const nonceSize = 24
const overhead = 16

/** @param key of 32 bytes */
export function secretboxTransformer(key: Uint8Array): ValueTransformer {
  return {
    fromStorage(data) {
      if (data.length < nonceSize + overhead) throw new Error('the stored data was shorter than the required size')
      return { data: open(key, data.subarray(0, nonceSize), data.subarray(nonceSize)), stale: false }
    },
    toStorage(data) {
      const nonce = randomBytes(nonceSize)
      return Buffer.concat([nonce, xsalsa20poly1305(key, nonce).encrypt(data)])
    },
  }
}

function open(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array): Uint8Array {
  try {
    return xsalsa20poly1305(key, nonce).decrypt(sealed)
  } catch (error) {
    // Upstream's text, although the actual error is a wrong key or a changed value.
    throw new Error('output array was not large enough for encryption', { cause: error })
  }
}
