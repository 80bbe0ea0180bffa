/** A refusal of the kubelet's API (L3): plain text with a code, as upstream's kubelet answers. */
export class HttpError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'HttpError'
    this.code = code
  }
}
