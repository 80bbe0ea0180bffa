/** What HTTP/2 calls an error (L3): codes, and the two scopes an error can have. Upstream: RFC 9113 sections 5.4 and 7. */
export const errorCode = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const

/** The whole connection is of no use any more: it ends with a GOAWAY of that code. */
export class ConnectionError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'ConnectionError'
    this.code = code
  }
}
