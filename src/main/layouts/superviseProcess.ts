/**
 * Keeps one process running (L5): starts it again when it ends, after a pause that grows while it ends soon, and ends it with this process.
 * The caller defines the process, its start and its end. Upstream's counterpart: systemd with Restart=always.
 */
import type { ChildProcess } from 'node:child_process'
import { type EventEmitter, once } from 'node:events'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import { createBackoff } from '#client/backoff'

/** A child, or a process that follows another one that is no child of ours. Emits `exit` once, when the process has ended. */
export interface FollowedProcess extends EventEmitter {
  readonly pid?: number | undefined
  /** Null while it runs; undefined when it has ended and only its parent knows how. */
  readonly exitCode: number | null | undefined
  readonly signalCode: NodeJS.Signals | null
}

export interface SupervisedProcess<P extends FollowedProcess = ChildProcess> {
  /** Starts the process. Undefined while something that it needs is missing: start() is called again soon. */
  start(): Promise<P | undefined>
  /** Called for the first of several starts in a row that returned undefined. */
  onMissing(): void
  /** Called when the process is there; the process may have ended by then. */
  onStarted(child: P): Promise<void>
  /** Called when the process has ended, by itself unless `stopped`. */
  onEnded(child: P, stopped: boolean): Promise<void>
  /** Asks the process to end; resolves when it has. For a process that outlives this one, it does nothing. */
  end(child: P, ended: Promise<unknown>): Promise<void>
}

/** One that ran for a minute was healthy: the next start is not held back. */
const restarts = { initialMs: 500, maxMs: 10_000, factor: 2, jitter: 0, resetAfterMs: 60_000 }
/** A start that returns undefined is cheap: look often, so that the process starts soon after the missing part is back. */
const missingPauseMs = 500

/** Resolves when `signal` has aborted and end() has resolved. @throws Error when the process cannot be started at all. */
export async function superviseProcess<P extends FollowedProcess>(
  supervised: SupervisedProcess<P>,
  deps: { clock: Clock; random: Random },
  signal: AbortSignal,
): Promise<void> {
  const { clock, random } = deps
  const nextPauseMs = createBackoff(clock, random, restarts)
  const pause = (ms: number) => clock.sleep(ms, signal).catch(() => {})
  let missed = false
  while (!signal.aborted) {
    const child = await supervised.start()
    if (child) await follow(supervised, child, signal)
    else if (!missed) supervised.onMissing()
    missed = !child
    await pause(child ? nextPauseMs() : missingPauseMs)
  }
}

async function follow<P extends FollowedProcess>(supervised: SupervisedProcess<P>, child: P, signal: AbortSignal): Promise<void> {
  const ended = new Promise<unknown>((resolve) => child.once('exit', resolve))
  try {
    await supervised.onStarted(child)
    // `once` with a signal takes its listener off the signal again, which outlives many processes.
    if (!hasEnded(child)) await once(child, 'exit', { signal }).catch(() => {})
  } finally {
    // Also after a failed onStarted(): no other code would end the process.
    if (!hasEnded(child)) await supervised.end(child, ended)
  }
  await supervised.onEnded(child, signal.aborted)
}

function hasEnded(child: FollowedProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
