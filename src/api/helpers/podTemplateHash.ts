/**
 * The hash that names a ReplicaSet after its template (L1): FNV-1a over the template's canonical text, printed in the alphabet of
 * generated names. Stable across key order; equal templates give equal names, which is all that upstream's promises too.
 * Upstream: kubernetes/pkg/controller ComputeHash, apimachinery/pkg/util/rand SafeEncodeString (v1.36).
 */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The value of `pod-template-hash`. @param collisionCount the Deployment's, mixed in so that a clash finds another name */
export function podTemplateHash(template: unknown, collisionCount?: number): string {
  let hash = fnv1a(0x811c9dc5, canonicalText(template))
  if (collisionCount !== undefined) hash = fnv1a(hash, `#${collisionCount}`)
  return safeEncode(String(hash))
}

/** A 32-bit FNV-1a hash of a text's UTF-16 units. */
function fnv1a(seed: number, text: string): number {
  let hash = seed
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >> 8), 0x01000193)
  }
  return hash >>> 0
}

/** Each character moved into the alphabet without vowels, so that no word appears by chance. */
function safeEncode(text: string): string {
  return [...text].map((char) => alphabet[char.charCodeAt(0) % alphabet.length]).join('')
}

/** JSON with sorted keys and without absent values. */
function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = value as Readonly<Record<string, unknown>>
  const parts = Object.keys(fields)
    .filter((key) => fields[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalText(fields[key])}`)
  return `{${parts.join(',')}}`
}
