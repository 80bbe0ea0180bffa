/** HTTP/2's error codes, and its two scopes of errors (L3). Upstream: RFC 9113 sections 5.4 and 7. */
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

/** An error of the connection, which ends with a GOAWAY of that code. */
export class ConnectionError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'ConnectionError'
    this.code = code
  }
}
