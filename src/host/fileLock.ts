/**
 * Locks a file to this process (L1): the kernel releases the lock when the process ends, however it ends. Node cannot lock files itself; util-linux's flock locks
 * the open file that it inherits, and so locks it for this process. Where there is no flock, nothing is locked.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, ftruncateSync, openSync, readFileSync, readlinkSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '#base/messageOf'

export interface FileLockOptions {
  /** How long to wait for another holder. */
  readonly waitMs: number
  /** Called once when another process holds the lock; undefined when it has not written its pid yet, and when the pid belongs to another pid namespace. */
  readonly onWait?: (pid: number | undefined) => void
  /** The error to throw when the wait is over. */
  readonly refuse: (pid: number | undefined) => Error
  /** Ends the wait: lockFile() rejects with what `refuse` says. */
  readonly signal?: AbortSignal | undefined
}

/** Time between two tries while another process holds the lock. */
const pollMs = 100
/** Of util-linux and BusyBox for a lock that another process holds. */
const heldCode = 1

/** Resolves with the function that releases the lock. The file is created if need be, and holds the pid of its last holder. */
export async function lockFile(file: string, { waitMs, onWait, refuse, signal }: FileLockOptions): Promise<() => void> {
  const fd = openSync(file, 'a+', 0o600)
  try {
    const deadlineMs = performance.now() + waitMs
    for (let tries = 0; await isHeld(fd); tries++) {
      if (tries === 0) onWait?.(holderOf(file))
      if (performance.now() >= deadlineMs) throw refuse(holderOf(file))
      if (signal) await sleep(pollMs, undefined, { signal }).catch(() => {})
      else await sleep(pollMs)
      if (signal?.aborted) throw new Error(`stopped by ${messageOf(signal.reason)} while waiting: ${refuse(holderOf(file)).message}`)
    }
    ftruncateSync(fd)
    writeSync(fd, `${process.pid} ${pidNamespace()}\n`)
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

/** A pid of another pid namespace would name another process here. Earlier versions wrote no namespace. */
function holderOf(file: string): number | undefined {
  const [pid, namespace = pidNamespace()] = readFileSync(file, 'utf8').trim().split(' ')
  return /^\d+$/.test(pid ?? '') && namespace === pidNamespace() ? Number(pid) : undefined
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return 'unknown'
  }
}
