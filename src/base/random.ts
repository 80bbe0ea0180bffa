/**
 * Chance as a parameter (L0): one seeded source for names, jitter, uids and tie-breaking, so that a run can be replayed.
 * Secrets (keys, tokens) never come from here; those are made by the platform's cryptographic source.
 */
export interface Random {
  /** A float in [0, 1). */
  next(): number
  /** An integer in [0, bound). */
  int(bound: number): number
}

/** xoshiro128** seeded through splitmix32: small, fast, good enough for everything but secrets. */
export function seededRandom(seed: number): Random {
  let s = seed >>> 0
  const splitmix = () => {
    s = (s + 0x9e3779b9) >>> 0
    let z = s
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
    return (z ^ (z >>> 16)) >>> 0
  }
  const state = [splitmix(), splitmix(), splitmix(), splitmix()] as [number, number, number, number]
  const rotl = (x: number, k: number) => ((x << k) | (x >>> (32 - k))) >>> 0
  const next32 = () => {
    const result = Math.imul(rotl(Math.imul(state[1], 5) >>> 0, 7), 9) >>> 0
    const t = (state[1] << 9) >>> 0
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] = (state[2] ^ t) >>> 0
    state[3] = rotl(state[3] >>> 0, 11)
    return result
  }
  const next = () => next32() / 0x1_0000_0000
  return { next, int: (bound) => Math.floor(next() * bound) }
}

const nameAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The suffix that generateName appends: 5 characters of upstream's vowel-free alphabet (apimachinery/pkg/util/rand). */
export function randomName(random: Random, length = 5): string {
  let out = ''
  for (let i = 0; i < length; i++) out += nameAlphabet[random.int(nameAlphabet.length)]
  return out
}

const hexBytes: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** A version 4 UUID. Every request needs one, so it is made of whole bytes. */
export function randomUid(random: Random): string {
  const word = () => (random.next() * 0x1_0000_0000) >>> 0
  const first = word()
  const second = (word() & 0xffff_0fff) | 0x4000
  const third = (word() & 0x3fff_ffff) | 0x8000_0000
  const last = word()
  return `${upper(first)}${lower(first)}-${upper(second)}-${lower(second)}-${upper(third)}-${lower(third)}${upper(last)}${lower(last)}`
}

function upper(word: number): string {
  return hexBytes[word >>> 24]! + hexBytes[(word >>> 16) & 255]!
}

function lower(word: number): string {
  return hexBytes[(word >>> 8) & 255]! + hexBytes[word & 255]!
}
