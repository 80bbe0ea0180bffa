/**
 * Reads the server name from the first bytes of a TLS connection (L3, pure), which stay as they are for the backend. What is no ClientHello is named as
 * such, never guessed at. RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3.
 */
import { hostOf } from './hostName.ts'

/** The most bytes of the records with the ClientHello, as in Envoy. Usual ones have some hundred bytes, those with post-quantum keys two thousand. */
export const maxClientHelloBytes = 16 * 1024

const recordHeader = 5
const messageHeader = 4
const handshakeRecord = 22
const majorVersion = 3
const maxRecord = 2 ** 14
const clientHello = 1
const versionAndRandom = 34
const serverNameExtension = 0
const hostNameType = 0

/** `needs`: the least number of bytes, from the first one, with which it is worth another try. */
export type ClientHello = { readonly serverName: string } | { readonly needs: number } | 'invalid'

/** @returns the server name in lower case, without the final dot; empty when the client names none, or none that a host can have */
export function readClientHello(bytes: Uint8Array): ClientHello {
  const message = handshakeOf(bytes)
  if (!('bytes' in message)) return 'needs' in message && message.needs <= maxClientHelloBytes ? message : 'invalid'
  return parseHello(message.bytes) ?? 'invalid'
}

/** The first message, which may be divided among records. */
function handshakeOf(bytes: Uint8Array): { readonly bytes: Uint8Array } | { readonly needs: number } | { readonly isInvalid: true } {
  const parts: Uint8Array[] = []
  let length = 0
  let wanted = messageHeader
  let at = 0
  while (length < wanted) {
    if (bytes[at] !== undefined && bytes[at] !== handshakeRecord) return { isInvalid: true }
    if (bytes[at + 1] !== undefined && bytes[at + 1] !== majorVersion) return { isInvalid: true }
    if (bytes.length < at + recordHeader) return { needs: at + recordHeader }
    const size = numberAt(bytes, at + 3, 2)
    if (size === 0 || size > maxRecord) return { isInvalid: true }
    const end = at + recordHeader + size
    const known = bytes.subarray(at + recordHeader, end)
    parts.push(known)
    length += known.length
    if (wanted === messageHeader && length >= messageHeader) {
      const head = joined(parts)
      if (head[0] !== clientHello) return { isInvalid: true }
      wanted = messageHeader + numberAt(head, 1, 3)
      if (wanted > maxClientHelloBytes) return { isInvalid: true }
    }
    if (length < wanted && bytes.length < end) return { needs: Math.min(end, bytes.length + wanted - length) }
    at = end
  }
  return { bytes: joined(parts).subarray(messageHeader, wanted) }
}

/** Undefined: a length leads beyond the message. */
function parseHello(body: Uint8Array): { readonly serverName: string } | undefined {
  const reader = new Reader(body)
  reader.take(versionAndRandom)
  // The session, the ciphers and the compression methods.
  for (const size of [1, 2, 1]) reader.take(reader.number(size))
  if (!reader.isOver) {
    const extensions = new Reader(reader.take(reader.number(2)))
    const names: string[] = []
    while (!extensions.isOver) {
      const type = extensions.number(2)
      const content = extensions.take(extensions.number(2))
      if (type === serverNameExtension) names.push(...hostNamesIn(content))
    }
    if (extensions.isBroken || reader.isBroken || names.length > 1) return undefined
    return { serverName: nameOf(names[0] ?? '') }
  }
  return reader.isBroken ? undefined : { serverName: '' }
}

/** Two names for one connection, or none in an extension that is for one, are broken; other types of names are not defined. */
function hostNamesIn(extension: Uint8Array): string[] {
  const outer = new Reader(extension)
  const list = new Reader(outer.take(outer.number(2)))
  const names: string[] = []
  while (!list.isOver) {
    const type = list.number(1)
    const name = list.take(list.number(2))
    if (type === hostNameType) names.push(String.fromCharCode(...name))
  }
  return outer.isBroken || !outer.isOver || list.isBroken || names.length === 0 ? ['', ''] : names
}

/** No server name is an address: RFC 6066. */
function nameOf(text: string): string {
  const host = text.includes(':') ? undefined : hostOf(text)
  return host === undefined || /^[\d.]+$/.test(host) ? '' : host
}

/** Reads on after an overrun with nothing but zeros, and says so at the end. */
class Reader {
  readonly #bytes: Uint8Array
  #at = 0
  isBroken = false

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isOver(): boolean {
    return this.isBroken || this.#at >= this.#bytes.length
  }

  number(size: number): number {
    return numberAt(this.take(size), 0, size)
  }

  take(count: number): Uint8Array {
    const from = this.#at
    this.#at += count
    if (this.#at <= this.#bytes.length) return this.#bytes.subarray(from, this.#at)
    this.isBroken = true
    return new Uint8Array(0)
  }
}

function numberAt(bytes: Uint8Array, at: number, size: number): number {
  let value = 0
  for (let i = 0; i < size; i++) value = value * 256 + (bytes[at + i] ?? 0)
  return value
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts
  if (only && parts.length === 1) return only
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
