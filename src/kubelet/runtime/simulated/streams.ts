/** The answers of simulated containers to probes, exec, attach, port-forward and logs (L3). */
import { abortScope } from '#base/abortScope'
import { formatMicroTime } from '#base/time'
import type { RuntimeContainerStatus } from '#grpc/criTypes'
import { GrpcError } from '#grpc/grpcError'
import type { RemoteCommandSession } from '#streaming/streams'
import type { LogOptions, Streams } from '../../core/runtimeService.ts'
import { LogWriter } from '../../logs/criLog.ts'
import { passesAt, type SimulatedExec } from './behaviour.ts'
import { behaviour, type Container, events, type State } from './state.ts'

export function streamCalls(state: State): Streams {
  const get = (id: string): Container => {
    const container = state.containers.get(id)
    if (container?.status.state !== 'CONTAINER_RUNNING') throw new GrpcError('NOT_FOUND', `container "${id}" is not running`)
    return container
  }
  const scripted = (container: Container, command: readonly string[]) => behaviour(state, container).exec?.(command)
  const notRun = (what: string, container: Container, exitCode: number): SimulatedExec => ({
    stderr: `${what}: not run, container ${container.config.metadata.name} is simulated\n`,
    exitCode,
  })
  return {
    probe: async (id, kind) => {
      const container = get(id)
      const passes = passesAt(behaviour(state, container)[kind], state.clock.now() - container.status.startedAt / 1e6)
      return { passes, output: passes ? '' : 'a failure on purpose' }
    },
    execSync: async (id, command) => {
      const container = get(id)
      // The kubelet runs lifecycle hooks this way: those that no script answers succeed.
      const { stdout = '', stderr = '', exitCode = 0 } = scripted(container, command) ?? notRun(command.join(' '), container, 0)
      return { stdout: Buffer.from(stdout), stderr: Buffer.from(stderr), exitCode }
    },
    exec: async (id, command) => {
      const container = get(id)
      return { serve: (session) => answer(session, scripted(container, command) ?? notRun(command.join(' '), container, cannotRun)) }
    },
    attach: async (id, { stdin }) => {
      const container = get(id)
      // Nothing would read what the client types, so that an interactive session ends at once.
      if (stdin) return { serve: (session) => answer(session, notRun('attach with stdin', container, cannotRun)) }
      return { serve: (session) => showLog(state, container, session) }
    },
    portForward: async (podSandboxId) => ({
      connect: async (port) => {
        const containers = [...state.containers.values()].filter(({ record }) => record.podSandboxId === podSandboxId)
        for (const container of containers) {
          const stream = behaviour(state, container).connect?.(port)
          if (stream) return stream
        }
        throw new GrpcError('UNAVAILABLE', `port ${port}: nothing listens in a simulated pod`)
      },
    }),
    logs: (status, options, signal) => simulatedLogs(state, status, options, signal),
  }
}

/** The exit code of shells for a command that they find and cannot execute. */
const cannotRun = 126

async function answer(session: RemoteCommandSession, { stdout, stderr, exitCode = 0 }: SimulatedExec): Promise<void> {
  if (stdout) session.stdout?.write(stdout)
  if (stderr) (session.stderr ?? session.stdout)?.write(stderr)
  await session.finish({ exitCode })
}

/** The log so far and what comes, until the container ends or the client goes away. */
async function showLog(state: State, container: Container, session: RemoteCommandSession): Promise<void> {
  const { stdout, signal } = session
  for await (const line of simulatedLogs(state, container.status, { follow: true, timestamps: false }, signal)) {
    // A client that reads slowly is waited for; one that goes away ends the write with an error.
    await new Promise<void>((resolve) => (stdout ? stdout.write(line, () => resolve()) : resolve()))
  }
  await session.finish({ exitCode: 0 })
}

async function* simulatedLogs(state: State, status: RuntimeContainerStatus, options: LogOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const writer = new LogWriter(options)
  const lines = state.containers.get(status.id)?.logs ?? []
  // Dropped lines leave the list at its beginning, so that the last shown line marks where to continue.
  let last = options.tailLines === undefined ? undefined : lines.at(-options.tailLines - 1)
  if (options.tailLines === 0) last = lines.at(-1)
  // Line by line: a client that reads slowly keeps no copy of the log in memory.
  function* unseen(): Generator<Uint8Array> {
    const from = last === undefined ? 0 : lines.lastIndexOf(last) + 1
    last = lines.at(-1) ?? last
    for (const { atMs, text } of lines.slice(from)) {
      const timestamp = formatMicroTime(atMs).replace(/Z$/, '000Z')
      const bytes = writer.write({ timestamp, stream: 'stdout', partial: false, content: Buffer.from(text) })
      if (bytes) yield bytes
    }
  }
  using stop = abortScope(signal)
  // Subscribed before the first look, so that nothing falls between.
  const changes = options.follow ? events(state, stop.signal) : undefined
  let next = changes?.next()
  try {
    for (;;) {
      yield* unseen()
      if (!changes || writer.full || state.containers.get(status.id)?.status.state !== 'CONTAINER_RUNNING') return
      if ((await next)?.done) return
      next = changes.next()
    }
  } finally {
    stop.abort()
  }
}
