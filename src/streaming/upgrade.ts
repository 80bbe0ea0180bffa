/** What every upgrade handler shares (L1): the raw upgrade, the plain refusal, and the status that ends a session. */
import type { IncomingMessage } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { TerminalSize } from './streams.ts'

export interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/** Answers an upgrade with a plain HTTP error and returns the error to throw. */
export function refuse(upgrade: Upgrade, code: 400 | 403, message: string): Error {
  const body = `${message}\n`
  const reason = code === 403 ? 'Forbidden' : 'Bad Request'
  upgrade.socket.end(
    `HTTP/1.1 ${code} ${reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
  return new Error(message)
}

export type SessionResult = { readonly exitCode: number } | { readonly error: string }

/** The metav1.Status that ends a session, as v4 and later write it on the error channel. */
export function exitStatus(result: SessionResult): Record<string, unknown> {
  if ('error' in result) return { metadata: {}, status: 'Failure', message: result.error, reason: 'InternalError', code: 500 }
  if (result.exitCode === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: error executing command, exit code ${result.exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(result.exitCode) }] },
  }
}

/** Protocols before v4 know only success (nothing) and a text. */
export function plainExit(result: SessionResult): string {
  if ('error' in result) return result.error
  return result.exitCode === 0 ? '' : `error executing remote command: command terminated with exit code ${result.exitCode}`
}

/** The reverse of {@link exitStatus}, as a client reads it. */
export function resultOfStatus(text: string): SessionResult {
  // The fourth protocol always states how the command ended: where nothing is said the connection was cut, which must not pass for success.
  if (text.trim() === '') return { error: 'the connection to the container runtime ended before the status of the command came' }
  try {
    const status = JSON.parse(text) as { status?: string; message?: string; reason?: string; details?: { causes?: { reason?: string; message?: string }[] } }
    if (status.status === 'Success') return { exitCode: 0 }
    const exit = status.details?.causes?.find((cause) => cause.reason === 'ExitCode')
    if (status.reason === 'NonZeroExitCode' && exit) return { exitCode: Number(exit.message) }
    return { error: status.message ?? text }
  } catch {
    return { error: text }
  }
}

/**
 * Terminal sizes as they come, one JSON object after another: `{"Width":80,"Height":24}`. The first text that is no JSON ends them, as upstream's
 * decoder; what follows is read and dropped, because an error costs much more time than the byte that causes it.
 */
export async function* readResizes(stream: Readable): AsyncGenerator<TerminalSize> {
  let pending = ''
  let isOver = false
  for await (const chunk of stream) {
    if (isOver) continue
    pending += String(chunk)
    for (let end = pending.indexOf('}'); end >= 0 && !isOver; end = pending.indexOf('}')) {
      const size = parseSize(pending.slice(0, end + 1))
      pending = pending.slice(end + 1)
      if (size === 'no JSON') isOver = true
      else if (size) yield size
    }
    isOver ||= pending.length > 4096
  }
}

function parseSize(text: string): TerminalSize | 'no JSON' | undefined {
  try {
    const { Width, Height } = JSON.parse(text) as { Width?: unknown; Height?: unknown }
    return typeof Width === 'number' && typeof Height === 'number' ? { width: Width, height: Height } : undefined
  } catch {
    return 'no JSON'
  }
}
