/**
 * Collects the head of a request, field by field (L3): pseudo headers and headers, and whether they are a valid request. A head that an HTTP/1.1
 * server behind this one could read as two requests is malformed. Pure. Upstream: RFC 9113 sections 8.1 to 8.3, RFC 9110 section 8.6.
 */
import { emptyMap } from '#base/bareMap'
import { isListedHeader } from '../headers.ts'
import type { FieldSink } from './hpack/decoder.ts'
import { fieldOverhead } from './hpack/dynamicTable.ts'

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const digits = /^\d{1,15}$/
/** Connection headers of HTTP/1.1: meaningless in HTTP/2, but a backend that the request is proxied to could act on them. */
const ofConnection: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])
/** Of repeated headers with these names the first one counts, as in node's HTTP/1.1 server; others are joined. */
const single: ReadonlySet<string> = new Set([
  ...['age', 'authorization', 'content-type', 'date', 'etag', 'expires', 'from', 'if-modified-since', 'if-unmodified-since', 'last-modified'],
  ...['location', 'max-forwards', 'proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
])

type Headers = Record<string, string | string[]>

export class RequestHead implements FieldSink {
  method = ''
  path = ''
  headers: Headers = emptyMap()
  /** From the content-length header. */
  contentLength: number | undefined
  isTooLarge = false
  #scheme = ''
  #authority = ''
  #isMalformed = false
  #hasHeaders = false
  #bytes = 0
  readonly #mostBytes: number

  /** @param mostBytes of names and values, and 32 for each field */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  field(name: string, value: string, isSound: boolean): void {
    this.#bytes += name.length + value.length + fieldOverhead
    if (this.#bytes > this.#mostBytes) this.isTooLarge = true
    else if (!isSound) this.#isMalformed = true
    else if (name.charCodeAt(0) === 0x3a) this.#pseudo(name, value)
    else this.#header(name, value)
  }

  /** True if the fields are a valid request; called after the last one. @param ends no body follows */
  isRequest(ends: boolean): boolean {
    if (this.#isMalformed || !token.test(this.method)) return false
    const { host } = this.headers
    if (this.#authority !== '') {
      if (host !== undefined && host !== this.#authority) return false
      this.headers.host = this.#authority
    }
    if (ends && this.contentLength) return false
    if (this.method === 'CONNECT') return this.#authority !== '' && this.#scheme === '' && this.path === ''
    if (this.#scheme === '') return false
    return this.path.charCodeAt(0) === 0x2f || (this.path === '*' && this.method === 'OPTIONS')
  }

  #pseudo(name: string, value: string): void {
    if (this.#hasHeaders || value === '') this.#isMalformed = true
    else if (name === ':path' && this.path === '') this.path = value
    else if (name === ':method' && this.method === '') this.method = value
    else if (name === ':scheme' && this.#scheme === '') this.#scheme = value
    else if (name === ':authority' && this.#authority === '') this.#authority = value
    else this.#isMalformed = true
  }

  #header(name: string, value: string): void {
    this.#hasHeaders = true
    if (name === 'content-length') this.#announce(value)
    else if (ofConnection.has(name) || (name === 'te' && value !== 'trailers')) this.#isMalformed = true
    const known = this.headers[name]
    if (typeof known === 'object') known.push(value)
    else if (isListedHeader(name)) this.headers[name] = [value]
    else if (known === undefined || !Object.hasOwn(this.headers, name)) this.headers[name] = value
    else if (!single.has(name)) this.headers[name] = `${known}${name === 'cookie' ? '; ' : ', '}${value}`
  }

  #announce(value: string): void {
    const length = digits.test(value) ? Number(value) : -1
    if (length < 0 || (this.contentLength !== undefined && this.contentLength !== length)) this.#isMalformed = true
    this.contentLength = length
  }
}

/** Fields after a body, which are checked and dropped. */
export class Trailers implements FieldSink {
  isSound = true

  field(name: string, _value: string, isSound: boolean): void {
    if (!isSound || name.charCodeAt(0) === 0x3a || ofConnection.has(name)) this.isSound = false
  }
}
