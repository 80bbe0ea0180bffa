/** The channels of an exec over a WebSocket (L4, pure). Upstream: k8s.io/streaming remotecommand, protocol v5. */
export const execProtocol = 'v5.channel.k8s.io'

export const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const

/** The query of an exec: the words of the command, one by one. */
export function execQuery(container: string, command: readonly string[], streams: readonly ('stdin' | 'stdout' | 'stderr' | 'tty')[]): URLSearchParams {
  return new URLSearchParams([
    ...command.map((word): [string, string] => ['command', word]),
    ['container', container],
    ...streams.map((stream): [string, string] => [stream, 'true']),
  ])
}

/** What the Status on the error channel says about a command that ended; empty: it succeeded. */
export function failureOf(status: string): string {
  try {
    const { status: outcome, message } = JSON.parse(status) as { readonly status?: string; readonly message?: string }
    return outcome === 'Success' ? '' : (message ?? 'the command failed')
  } catch {
    return 'the connection ended before the command'
  }
}
