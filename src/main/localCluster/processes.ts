/** Starts, finds and ends the background processes of a local cluster (L5). A process is known by its pid and its start time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type { Clock } from '#base/clock'
import { readTextIfExists, writeSmallJson } from '#host/files'
import { isRunning, type ProcessRef, signalIfThere, startTimeOf, waitForEnd } from '#host/processes'

/** A process of a pid file. */
export interface WrittenProcess extends ProcessRef {
  /** When it started, in milliseconds of the clock; absent in a file of an earlier version. */
  readonly startedMs?: number
}

interface DetachedOptions {
  readonly logFile: string
  readonly pidFile: string
  readonly clock: Clock
  readonly environment?: Readonly<Record<string, string>> | undefined
}

/** Starts a program that outlives this one, with its output appended to a log; remembers it in a pid file. @throws Error when either fails; nothing runs then */
export async function spawnDetached(command: readonly string[], { logFile, pidFile, clock, environment }: DetachedOptions): Promise<ChildProcess> {
  const log = await fs.open(logFile, 'a', 0o600)
  try {
    await log.chmod(0o600)
    const [file = '', ...args] = command
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/', env: { ...process.env, ...environment } })
    await once(child, 'spawn')
    try {
      await rememberProcess(pidFile, child.pid as number, clock)
    } catch (error) {
      // The next attempt would start a second process.
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
      throw error
    }
    child.unref()
    return child
  } finally {
    await log.close()
  }
}

/** Writes a process into a pid file; one that has ended already is not found in it. */
export async function rememberProcess(pidFile: string, pid: number, clock: Clock): Promise<void> {
  const written: WrittenProcess = { pid, startTime: (await startTimeOf(pid)) ?? '', startedMs: clock.now() }
  await writeSmallJson(pidFile, JSON.stringify(written), 0o600)
}

/** The process of a pid file, if it still runs. */
export async function runningProcess(pidFile: string): Promise<WrittenProcess | undefined> {
  const text = await readTextIfExists(pidFile)
  if (!text) return undefined
  const ref = JSON.parse(text) as WrittenProcess
  return (await isRunning(ref)) ? ref : undefined
}

/** SIGTERM, then SIGKILL after `graceMs`. Returns when the process is gone. */
export async function endProcess(ref: ProcessRef, graceMs: number, clock: Clock): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGTERM', graceMs],
    ['SIGKILL', 5000],
  ] as const) {
    if (!(await isRunning(ref))) return
    signalIfThere(ref.pid, signal)
    if (await waitForEnd(ref, waitMs, clock)) return
  }
  throw new Error(`process ${ref.pid} does not end`)
}
