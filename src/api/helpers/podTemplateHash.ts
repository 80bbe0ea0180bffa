/**
 * Hashes of pod templates (L1), equal to upstream's, so that an object keeps its ReplicaSets and revisions when the other controller manager takes
 * it over. The creation time of a template is not hashed: Go hashes a set one with the time zone of its machine.
 * Upstream: kubernetes/pkg/controller ComputeHash, apimachinery/pkg/util/rand SafeEncodeString (v1.36).
 */
import { fnv32a, fnv32aBytes } from '#base/fnv'
import { dumpPodTemplate } from './podTemplateDump.ts'

const alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The value of `pod-template-hash`. @param collisionCount the workload's, for another name after a collision */
export function podTemplateHash(template: unknown, collisionCount?: number): string {
  let hash = fnv32a('')
  dumpPodTemplate(template, (text) => {
    hash = fnv32a(text, hash)
  })
  if (collisionCount !== undefined) hash = fnv32aBytes(littleEndian64(collisionCount), hash)
  return safeEncode(String(hash))
}

/** Each character moved into an alphabet without vowels, so that no word appears by chance. */
export function safeEncode(text: string): string {
  return [...text].map((char) => alphabet[char.charCodeAt(0) % alphabet.length]).join('')
}

/** Eight bytes, of which Go fills four. */
function littleEndian64(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}
