/**
 * Credentials that change while a process runs (L2): a transport gets them before each call, and reports those that a server refused.
 */
export interface Credentials {
  readonly token?: string | undefined
  /** PEM; both or none. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export interface CredentialSource {
  /** The current credentials. The same object as long as nothing has changed. */
  get(): Promise<Credentials>
  /** The server refused `used` (401): the next {@link get} may give others. Does nothing when they have changed meanwhile. */
  refresh(used: Credentials): Promise<void>
}
