/**
 * A file that only one process can create (L1), as client-go locks kubeconfigs: who made it may change what it guards. It says who holds it, so
 * that one whose holder has ended is taken over; one that says nothing, as kubectl's, is waited for. Upstream: clientcmd/loader.go lockFile.
 */
import { mkdir, readlink, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Clock } from '#base/clock'
import { readTextIfExists } from './files.ts'
import { isRunning, type ProcessRef, startTimeOf } from './processes.ts'

interface Holder extends ProcessRef {
  /** Where the pid means something: the host, and its pid namespace. */
  readonly place: string
}

export interface LockFileOptions {
  readonly clock: Clock
  /** How long to wait for another holder. */
  readonly timeoutMs: number
  /** Called once when another holds it; undefined when the file does not say who. */
  readonly onWait?: (pid: number | undefined) => void
  /** The error to throw when the wait times out. */
  readonly refuse: (pid: number | undefined) => Error
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

async function take(file: string, { clock, timeoutMs, onWait, refuse }: LockFileOptions): Promise<void> {
  const place = await here()
  const own = JSON.stringify({ pid: process.pid, startTime: (await startTimeOf(process.pid)) ?? '', place } satisfies Holder)
  const deadlineMs = clock.monotonicMs() + timeoutMs
  for (let waited = false; !(await createWith(file, own)); waited = true) {
    const text = (await readTextIfExists(file)) ?? ''
    const holder = parse(text)
    if (holder?.place === place && !(await isRunning(holder))) {
      await removeStale(file, text, clock)
      continue
    }
    if (!waited) onWait?.(holder?.pid)
    if (clock.monotonicMs() >= deadlineMs) throw refuse(holder?.pid)
    await clock.sleep(pollMs)
  }
}

/** False when the file exists. It is empty for a moment after its creation: a contender waits then, as for any lock without a readable owner. */
async function createWith(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
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
    if ((await readTextIfExists(file)) === text) await rm(file, { force: true })
  } finally {
    await rmdir(guard)
  }
}

async function here(): Promise<string> {
  return `${hostname()} ${await readlink('/proc/self/ns/pid').catch(() => '')}`
}

function parse(text: string): Holder | undefined {
  try {
    const { pid, startTime, place } = JSON.parse(text) as Partial<Holder>
    return typeof pid === 'number' && typeof startTime === 'string' && typeof place === 'string' ? { pid, startTime, place } : undefined
  } catch {
    return undefined
  }
}
