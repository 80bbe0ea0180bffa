/**
 * Runs programs (L1): one interface for every component that drives ip, nft, mount or conntrack, so that decisions stay testable without root.
 * Nothing goes through a shell. A program that fails is a value (its exit code) for run(), an error for check().
 */
import { type ChildProcessWithoutNullStreams, spawn as spawnChild } from 'node:child_process'

export interface ExecOptions {
  /** Written to the program's standard input, which is then closed. */
  readonly input?: string | Uint8Array | undefined
  /** The program gets SIGKILL after this many milliseconds. */
  readonly timeoutMs?: number | undefined
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** The most that either output may hold: a program that writes more is killed, and what it wrote until then is kept. Absent: 256 MiB. */
  readonly maxOutputBytes?: number | undefined
  /** Kills the program when aborted. */
  readonly signal?: AbortSignal | undefined
  /** Open files that the program gets as its descriptors 3, 4 and so on. */
  readonly descriptors?: readonly number[] | undefined
}

export interface ExecResult {
  /** -1 when the program could not be started, 128 + n when signal n ended it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly timedOut: boolean
}

export interface Exec {
  /** Runs to the end and captures both outputs. Never rejects. */
  run(command: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>
  /** Starts a program whose streams the caller handles. */
  spawn(command: string, args: readonly string[], options?: Pick<ExecOptions, 'cwd' | 'env' | 'signal'>): ChildProcessWithoutNullStreams
}

/** What a failed program left behind. */
export class ExecError extends Error {
  readonly result: ExecResult

  constructor(command: string, args: readonly string[], result: ExecResult) {
    super(`${[command, ...args].join(' ')}: ${result.timedOut ? 'timed out' : `exit ${result.code}`}: ${(result.stderr || result.stdout).trim()}`)
    this.name = 'ExecError'
    this.result = result
  }
}

/** Runs a program and returns its standard output; throws ExecError unless it exits 0. */
export async function check(exec: Exec, command: string, args: readonly string[], options?: ExecOptions): Promise<string> {
  const result = await exec.run(command, args, options)
  if (result.code !== 0) throw new ExecError(command, args, result)
  return result.stdout
}

const signalNumbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGPIPE: 13, SIGTERM: 15 }

/** Far more than any program that we run writes. */
const mostOutputBytes = 256 * 2 ** 20

/**
 * The real thing.
 * @param prefix words put before every command, e.g. ['nsenter', '-t', '42', '-m', '-n', '--'] to act inside another node's namespaces.
 */
export function createExec(prefix: readonly string[] = []): Exec {
  const start = (command: string, args: readonly string[], options: ExecOptions, input: 'pipe' | 'ignore') => {
    const [file = command, ...rest] = [...prefix, command, ...args]
    return spawnChild(file, rest, {
      stdio: [input, 'pipe', 'pipe', ...(options.descriptors ?? [])],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
  }
  return {
    // All three are pipes.
    spawn: (command, args, options = {}) => start(command, args, options, 'pipe') as ChildProcessWithoutNullStreams,
    run: (command, args, options = {}) =>
      new Promise((resolve) => {
        const stdout: Buffer[] = []
        const stderr: Buffer[] = []
        let failure = ''
        let timedOut = false
        // Without input it reads from /dev/null, which is one pipe less to make.
        const child = start(command, args, options, options.input === undefined ? 'ignore' : 'pipe')
        const timer =
          options.timeoutMs === undefined
            ? undefined
            : setTimeout(() => {
                timedOut = true
                child.kill('SIGKILL')
              }, options.timeoutMs)
        const collect = (stream: NodeJS.ReadableStream | null, parts: Buffer[]) => {
          let room = options.maxOutputBytes ?? mostOutputBytes
          stream?.on('data', (chunk: Buffer) => {
            if (room > 0) parts.push(chunk.subarray(0, room))
            room -= chunk.length
            if (room < 0) child.kill('SIGKILL')
          })
        }
        collect(child.stdout, stdout)
        collect(child.stderr, stderr)
        child.on('error', (error) => {
          failure = error.message
        })
        // A program that exits without reading all its input is not an error of ours.
        child.stdin?.on('error', () => {})
        child.on('close', (code, signal) => {
          clearTimeout(timer)
          const text = Buffer.concat(stderr).toString()
          resolve({
            code: child.pid === undefined ? -1 : (code ?? 128 + (signalNumbers[signal ?? ''] ?? 0)),
            stdout: Buffer.concat(stdout).toString(),
            stderr: failure ? `${text}${failure}` : text,
            timedOut,
          })
        })
        child.stdin?.end(options.input)
      }),
  }
}
