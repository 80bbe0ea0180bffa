/**
 * What the API server of a local cluster and its dialer process send each other, and the limits that both keep (L5).
 */
export interface DialRequest {
  readonly id: number
  readonly address: string
  readonly port: number
}

/** The server no longer waits for the dial. */
export interface DialCancel {
  readonly cancel: number
}

export interface DialError {
  readonly code?: string | undefined
  readonly message: string
  /** The process has too many dials and did not start this one. */
  readonly isRefusal?: boolean | undefined
}

/** Goes with the connection, or with neither when it could not be made. */
export interface DialAnswer {
  readonly id: number
  readonly error?: DialError | undefined
}

/** Both sides give up a connection that is not made by then. */
export const dialTimeoutMs = 30_000

export function timeoutMessage({ address, port }: DialRequest): string {
  return `dial tcp ${address}:${port}: i/o timeout`
}

/**
 * Dials in flight of one API server. A limit per address below 200, the default of --max-mutating-requests-inflight, would refuse calls of a healthy webhook that
 * all need a new connection. One user's dials leave half of the places to others.
 */
export const maxDials = { ofServer: 1024, perAddress: 256, perUser: 512 }
/** Larger than the server's limit: the process also counts connections that it still hands over, for dials that the server has given up. */
export const maxDialsOfProcess = 2 * maxDials.ofServer
