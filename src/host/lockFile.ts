/**
 * A lock that only one process can create (L1), as client-go locks kubeconfigs: its holder may change what it guards. It is a symbolic link whose target names
 * the holder, so that a lock whose holder has ended is taken over; kubectl's lock is an empty file, and is waited for. Making a link with its target is one
 * step, and the target is short enough for the inode, which works on a full disk, too. Upstream: clientcmd/loader.go lockFile.
 */
import { createHash } from 'node:crypto'
import { mkdir, readlink, rm, rmdir, stat, symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Clock } from '#base/clock'
import { isMissing } from './files.ts'
import { isRunning, type ProcessRef, startTimeOf } from './processes.ts'

interface Holder extends ProcessRef {
  /** Where the pid means something: marks the host and its pid namespace. */
  readonly place: string
}

export interface LockFileOptions {
  readonly clock: Clock
  /** How long to wait for another holder. */
  readonly timeoutMs: number
  /**
   * Called once when another holds it; undefined when the file does not name the holder.
   * @param here the holder as a process of this pid namespace; undefined when the pid belongs to another one, or to another host
   */
  readonly onWait?: (pid: number | undefined, here: ProcessRef | undefined) => void
  /** The error to throw when the wait times out. */
  readonly refuse: (pid: number | undefined) => Error
  /** Ends the wait, with the error of `refuse`. */
  readonly signal?: AbortSignal | undefined
}

const pollMs = 20

/** Runs `work` while holding the lock, which is let go whatever becomes of it. The folder is there. */
export async function withLockFile<T>(file: string, options: LockFileOptions, work: () => Promise<T>): Promise<T> {
  await take(file, options)
  try {
    return await work()
  } finally {
    await rm(file, { force: true })
  }
}

async function take(file: string, { clock, timeoutMs, onWait, refuse, signal }: LockFileOptions): Promise<void> {
  const place = await here()
  const own = textOf({ pid: process.pid, startTime: (await startTimeOf(process.pid)) ?? '', place })
  const deadlineMs = clock.monotonicMs() + timeoutMs
  for (let waited = false; !(await createWith(file, own)); waited = true) {
    const text = await readLock(file)
    const holder = parse(text)
    if (holder?.place === place && !(await isRunning(holder))) {
      await removeStale(file, text, clock)
      continue
    }
    if (!waited) onWait?.(holder?.pid, holder?.place === place ? holder : undefined)
    if (clock.monotonicMs() >= deadlineMs || signal?.aborted) throw refuse(holder?.pid)
    await clock.sleep(pollMs, signal).catch(() => {})
  }
}

/** False when the lock exists. */
async function createWith(file: string, text: string): Promise<boolean> {
  try {
    await symlink(text, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The link's target; empty for a file and for a lock that is gone. */
async function readLock(file: string): Promise<string> {
  try {
    return await readlink(file)
  } catch (error) {
    if (isMissing(error) || (error as NodeJS.ErrnoException).code === 'EINVAL') return ''
    throw error
  }
}

/** A guard left by a process that ended while it held one: it is held for two file operations only. */
const forgottenGuardMs = 10_000

/**
 * One process at a time removes a stale lock, and checks it again first: when several find it stale, the first one may already
 * have made a new lock, which the others must not remove.
 */
async function removeStale(file: string, text: string, clock: Clock): Promise<void> {
  const guard = `${file}.stale`
  try {
    await mkdir(guard)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const { mtimeMs } = await stat(guard).catch(() => ({ mtimeMs: clock.now() }))
    if (clock.now() - mtimeMs > forgottenGuardMs) await rmdir(guard).catch(() => undefined)
    await clock.sleep(pollMs)
    return
  }
  try {
    if ((await readLock(file)) === text) await rm(file, { force: true })
  } finally {
    await rmdir(guard)
  }
}

async function here(): Promise<string> {
  const text = `${hostname()} ${await readlink('/proc/self/ns/pid').catch(() => '')}`
  return createHash('sha256').update(text).digest('hex').slice(0, placeDigits)
}

const placeDigits = 12

function textOf({ pid, startTime, place }: Holder): string {
  return `${pid} ${startTime} ${place}`
}

function parse(text: string): Holder | undefined {
  const [, pid, startTime, place] = /^(\d+) (\S*) ([0-9a-f]+)$/.exec(text) ?? []
  return pid === undefined || startTime === undefined || place === undefined ? undefined : { pid: Number(pid), startTime, place }
}
