/**
 * Remote command streams (L1): what exec, attach and port-forward carry, independent of WebSocket or SPDY/3.1.
 * A server side accepts an upgrade and gets these; a client side opens an upgrade and gets the same.
 */
import type { Duplex, Readable, Writable } from 'node:stream'

export interface TerminalSize {
  readonly width: number
  readonly height: number
}

/** The server's side of one exec or attach. */
export interface RemoteCommandSession {
  readonly stdin?: Readable | undefined
  readonly stdout?: Writable | undefined
  /** Absent with a TTY. */
  readonly stderr?: Writable | undefined
  /** Sizes as the client sends them; ends with the session. */
  readonly resizes?: AsyncIterable<TerminalSize> | undefined
  /** Ends the session with the metav1.Status the protocol calls for: exit 0 is Success; others are NonZeroExitCode with cause ExitCode. */
  finish(result: { readonly exitCode: number } | { readonly error: string }): Promise<void>
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
}

/** The server's side of port-forward: one connection per accepted pair of data and error streams. */
export interface PortForwardConnection {
  readonly port: number
  readonly data: Duplex
  /** Reports why the connection failed; the data stream is then closed. */
  fail(message: string): void
}

export interface RemoteCommandOptions {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}
