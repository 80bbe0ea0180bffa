/** Tells a process from a later one with the same pid (L1): by its start time where /proc has it, elsewhere only that it lives. */
import { readFile } from 'node:fs/promises'

export interface ProcessRef {
  readonly pid: number
  readonly startTime: string
}

/** The 22nd field of /proc/PID/stat (`alive` where there is no /proc); undefined when the process is gone or a zombie. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return lives(pid) ? 'alive' : undefined
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields && fields[0] !== 'Z' ? fields[19] : undefined
}

export async function isRunning(ref: ProcessRef): Promise<boolean> {
  return (await startTimeOf(ref.pid)) === ref.startTime
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
