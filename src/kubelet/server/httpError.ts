/** A refusal of the kubelet's API (L3): plain text with a code, as upstream's kubelet answers. */
export class HttpError extends Error {
  readonly code: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.name = 'HttpError'
    this.code = code
    this.headers = headers
  }
}
