/** Writes DER (L0, pure). Apart from der.ts, so that a process which only reads does not load it. X.690. */
import { derTag } from './der.ts'

/** One element with these contents, one after the other. */
export function encodeDer(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const size = contents.reduce((sum, { length }) => sum + length, 0)
  const lengthBytes: number[] = []
  for (let left = size; left > 0; left = Math.floor(left / 256)) lengthBytes.unshift(left % 256)
  const head = size < 0x80 ? [tag, size] : [tag, 0x80 | lengthBytes.length, ...lengthBytes]
  const bytes = new Uint8Array(head.length + size)
  bytes.set(head)
  let at = head.length
  for (const content of contents) {
    bytes.set(content, at)
    at += content.length
  }
  return bytes
}

/** An object identifier from its dotted form. */
export function encodeIdentifier(identifier: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = identifier.split('.').map(Number)
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc % 128]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) digits.unshift((left % 128) | 0x80)
    return digits
  })
  return encodeDer(derTag.objectIdentifier, Uint8Array.from(bytes))
}
