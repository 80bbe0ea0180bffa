/** Starts, finds and ends the background processes of a local cluster (L5). A process is known by its pid and its start time. */
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import type { Clock } from '#base/clock'
import { readTextIfExists, writeFileAtomic } from '#host/files'
import { isRunning, type ProcessRef, startTimeOf } from '#host/processes'

/** Starts a program that outlives this one, with its output appended to a log; remembers it in a pid file. */
export async function startDetached(command: readonly string[], logFile: string, pidFile: string, env: Readonly<Record<string, string>>): Promise<ProcessRef> {
  const log = await fs.open(logFile, 'a', 0o600)
  try {
    await log.chmod(0o600)
    const [file = '', ...args] = command
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log.fd, log.fd], cwd: '/', env: { ...process.env, ...env } })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    const pid = child.pid as number
    const ref = { pid, startTime: (await startTimeOf(pid)) ?? '' }
    await writeFileAtomic(pidFile, JSON.stringify(ref), 0o600)
    return ref
  } finally {
    await log.close()
  }
}

/** The process of a pid file, if it still runs. */
export async function runningProcess(pidFile: string): Promise<ProcessRef | undefined> {
  const text = await readTextIfExists(pidFile)
  if (!text) return undefined
  const ref = JSON.parse(text) as ProcessRef
  return (await isRunning(ref)) ? ref : undefined
}

/** SIGTERM, then SIGKILL after `graceMs`. Returns when the process is gone. */
export async function endProcess(ref: ProcessRef, graceMs: number, clock: Clock): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGTERM', graceMs],
    ['SIGKILL', 5000],
  ] as const) {
    if (!(await isRunning(ref))) return
    process.kill(ref.pid, signal)
    for (let waited = 0; waited < waitMs; waited += 10) {
      if (!(await isRunning(ref))) return
      await clock.sleep(10)
    }
  }
  throw new Error(`process ${ref.pid} does not end`)
}
