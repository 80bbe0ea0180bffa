/** Tells a process from a later one with the same pid (L1): by its start time where /proc has it, elsewhere only that it lives. */
import { readFileSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import type { Clock } from '#base/clock'
import { listIfExists, readTextIfExists } from './files.ts'

export interface ProcessRef {
  readonly pid: number
  readonly startTime: string
}

interface ProcessStat {
  readonly startTime: string
  readonly isZombie: boolean
  /** It runs no code any more. Process 1 of a pid namespace stays so until every process of the namespace is reaped. */
  readonly isExiting: boolean
}

/** Index of a field of /proc/PID/stat behind the name, which may hold blanks and brackets. */
const fieldAt = { state: 0, flags: 6, startTime: 19 } as const
/** PF_EXITING of the kernel's include/linux/sched.h. */
const exitingFlag = 0x4

/** Without a promise: the kernel answers from memory, and processes are looked at often. */
function statOf(pid: number): ProcessStat | undefined {
  if (process.platform !== 'linux') return lives(pid) ? { startTime: 'alive', isZombie: false, isExiting: false } : undefined
  const fields = fieldsOf(pid)
  const startTime = fields?.[fieldAt.startTime]
  if (!fields || startTime === undefined) return undefined
  return { startTime, isZombie: fields[fieldAt.state] === 'Z', isExiting: (Number(fields[fieldAt.flags]) & exitingFlag) !== 0 }
}

function fieldsOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** The 22nd field of /proc/PID/stat (`alive` where there is no /proc); undefined when the process is gone, exiting or a zombie. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  const found = statOf(pid)
  return found && !found.isZombie && !found.isExiting ? found.startTime : undefined
}

export async function isRunning(ref: ProcessRef): Promise<boolean> {
  return (await startTimeOf(ref.pid)) === ref.startTime
}

/** True while a process that was ended still holds what it used: it is exiting, and neither gone nor a zombie. */
export async function isExiting(ref: ProcessRef): Promise<boolean> {
  const found = statOf(ref.pid)
  return found !== undefined && found.startTime === ref.startTime && found.isExiting && !found.isZombie
}

/** Waits until the process is gone or a zombie. False when it is still there after `timeoutMs`. */
export async function waitForEnd(ref: ProcessRef, timeoutMs: number, clock: Clock): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + timeoutMs
  while ((await isRunning(ref)) || (await isExiting(ref))) {
    if (clock.monotonicMs() >= deadlineMs) return false
    await clock.sleep(pollMs)
  }
  return true
}

const pollMs = 10

/** Sends a signal; a process that has just ended is no error. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Pids of the processes whose parent is the first thread of `pid`. */
export async function childrenOf(pid: number): Promise<number[]> {
  const text = (await readTextIfExists(`/proc/${pid}/task/${pid}/children`).catch(() => undefined)) ?? ''
  return text.split(' ').filter(Boolean).map(Number)
}

/** The name of a process's program, at most 15 bytes; undefined when it is gone. */
export async function programOf(pid: number): Promise<string | undefined> {
  // A process that ends between open and read is ESRCH, not a missing file.
  return (await readTextIfExists(`/proc/${pid}/comm`).catch(() => undefined))?.trimEnd()
}

/** The words of a process's command line; none when it is gone. */
export async function commandOf(pid: number): Promise<string[]> {
  const text = (await readTextIfExists(`/proc/${pid}/cmdline`).catch(() => undefined)) ?? ''
  return text.split('\0').slice(0, -1)
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Every process of this pid namespace. */
export async function allPids(): Promise<number[]> {
  return (await listIfExists('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}

/** The names of a pid namespace and a mount namespace, such as `pid:[4026531836]`. */
export interface HostNamespaces {
  readonly pid: string | undefined
  readonly mnt: string | undefined
}

/** The namespaces of this process. Read once for many processes that are compared. */
export async function ownNamespaces(): Promise<HostNamespaces> {
  return { pid: await namespaceOf('self', 'pid'), mnt: await namespaceOf('self', 'mnt') }
}

/** True when a process is in both namespaces. False for a container's, for another user's, and for one that has ended. */
export async function isIn({ pid: wanted, mnt }: HostNamespaces, pid: number): Promise<boolean> {
  return wanted !== undefined && (await namespaceOf(pid, 'pid')) === wanted && (await namespaceOf(pid, 'mnt')) === mnt
}

/** Names a namespace of a process, such as `net:[4026531840]`; undefined when the process is gone or another user's. */
export async function namespaceOf(pid: number | 'self', kind: 'pid' | 'mnt' | 'net'): Promise<string | undefined> {
  return readlink(`/proc/${pid}/ns/${kind}`).catch(() => undefined)
}

/** The value of a variable in a process's environment as it was started; undefined when it has none, is gone or another user's. */
export async function variableOf(pid: number, name: string): Promise<string | undefined> {
  const text = (await readTextIfExists(`/proc/${pid}/environ`).catch(() => undefined)) ?? ''
  const found = text.split('\0').find((entry) => entry.startsWith(`${name}=`))
  return found?.slice(name.length + 1)
}
