/**
 * The key under which certificates travel to a further control plane (L5): AES-256-GCM, the nonce in front, the tag at the end.
 * Upstream: kubeadm's util/crypto and phases/copycerts (v1.36).
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { CommandError } from '#cli/exitCodes'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** @throws CommandError usage; the text is not shown, it may be a key with a typo in it */
export function parseCertificateKey(text: string): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new CommandError('usage', '--certificate-key: expected 64 hexadecimal digits')
  return Buffer.from(text, 'hex')
}

export function sealed(content: Uint8Array, key: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce)
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** Undefined when this key did not seal it. */
export function unsealed(content: Buffer, key: Buffer): Buffer | undefined {
  if (content.length < nonceBytes + tagBytes) return undefined
  const decipher = createDecipheriv(algorithm, key, content.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAuthTag(content.subarray(-tagBytes))
  try {
    return Buffer.concat([decipher.update(content.subarray(nonceBytes, -tagBytes)), decipher.final()])
  } catch {
    return undefined
  }
}
