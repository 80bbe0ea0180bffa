/** What the numbers were measured on, and what a process used. Linux only: everything comes from /proc. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import os from 'node:os'

export interface MachineFacts {
  readonly time: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  readonly commit: string
  readonly loadAverage: number
}

export function machineFacts(): MachineFacts {
  return {
    time: new Date().toISOString(),
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: os.release(),
    node: process.version,
    commit: commit(),
    loadAverage: os.loadavg()[0] ?? 0,
  }
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return 'unknown'
  }
}

export interface ProcessUsage {
  /** User and system time since the process started. */
  readonly cpuSeconds: number
  readonly rssMB: number
}

/** One process with its threads; /proc counts time in hundredths of a second. */
export function usageOf(pid: number): ProcessUsage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const rssKiB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
  return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100, rssMB: (rssKiB * 1024) / 1e6 }
}

/** Time that the threads of a process have spent on a processor, in microseconds: finer than the ticks of `usageOf`. */
export function cpuMicrosOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const nanos = threads.map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]))
  return nanos.reduce((sum, each) => sum + each, 0) / 1_000
}

/** Its proportional set size, in megabytes: a page that so many processes share, such as the program text of Node, counts as so small a part. */
export function shareOfMemoryMB(pid: number): number {
  const kib = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1] ?? 0)
  return (kib * 1024) / 1e6
}
