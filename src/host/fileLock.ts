/**
 * Locks a file to this process (L1): the kernel releases the lock when the process ends, however it ends. Node cannot lock files itself; util-linux's flock locks
 * the open file that it inherits, and so locks it for this process. Where there is no flock, nothing is locked.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface FileLockOptions {
  /** How long to wait for another holder. */
  readonly waitMs: number
  /** Called once when another process holds the lock; undefined when it has not written its pid yet. */
  readonly onWait?: (pid: number | undefined) => void
  /** The error to throw when the wait is over. */
  readonly refuse: (pid: number | undefined) => Error
}

/** Time between two tries while another process holds the lock. */
const pollMs = 100
/** Of util-linux and BusyBox for a lock that another process holds. */
const heldCode = 1

/** Resolves with the function that releases the lock. The file is created if need be, and holds the pid of its last holder. */
export async function lockFile(file: string, { waitMs, onWait, refuse }: FileLockOptions): Promise<() => void> {
  const fd = openSync(file, 'a+', 0o600)
  try {
    const deadlineMs = performance.now() + waitMs
    for (let tries = 0; await isHeld(fd); tries++) {
      if (tries === 0) onWait?.(holderOf(file))
      if (performance.now() >= deadlineMs) throw refuse(holderOf(file))
      await sleep(pollMs)
    }
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return () => closeSync(fd)
}

/** Takes the lock, or finds that another process holds it. A file system without locks, and a host without flock, count as free. */
async function isHeld(fd: number): Promise<boolean> {
  const child: ChildProcess = spawn('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
  const code = await once(child, 'close').then(
    ([one]) => one,
    () => undefined,
  )
  return code === heldCode
}

function holderOf(file: string): number | undefined {
  const pid = Number.parseInt(readFileSync(file, 'utf8'), 10)
  return Number.isInteger(pid) ? pid : undefined
}
