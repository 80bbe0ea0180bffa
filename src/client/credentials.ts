/**
 * Who one is, when it changes while one works (L2): what a transport asks before each call, and tells when a server did not accept it.
 */
export interface Credentials {
  readonly token?: string | undefined
  /** PEM; both or none. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export interface CredentialSource {
  /** What is valid now. The same object as long as nothing has changed. */
  get(): Promise<Credentials>
  /** The server refused `used` (401): the next {@link get} may give others. Does nothing when they have changed meanwhile. */
  refresh(used: Credentials): Promise<void>
}
