/**
 * The process_* metrics of this process (L5): CPU, memory, open files, start; read at each scrape. They come from /proc, so from Linux only: elsewhere
 * those that need it are absent.
 * Upstream: client_golang's process collector, which component-base/metrics registers in every component.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { PrometheusMetrics } from './prometheus.ts'

export interface ProcessFacts {
  readonly cpuSeconds: number
  readonly residentBytes: number
  readonly virtualBytes?: number | undefined
  /** Infinity: no limit. */
  readonly maxVirtualBytes?: number | undefined
  readonly startSeconds?: number | undefined
  readonly openFds?: number | undefined
  readonly maxFds?: number | undefined
}

/** The kernel's clock ticks, in which /proc counts, are 100 a second for programs on every architecture that Node knows. */
const ticksPerSecond = 100

/** @param stat /proc/PID/stat @param machine /proc/stat @param limits /proc/PID/limits */
export function factsOf(stat: string, machine: string, limits: string): Pick<ProcessFacts, 'virtualBytes' | 'maxVirtualBytes' | 'startSeconds' | 'maxFds'> {
  // The second field is the program's name in brackets, and may have anything in it; the third follows the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const bootSeconds = Number(/^btime (\d+)$/m.exec(machine)?.[1])
  const soft = (name: string) => {
    const found = new RegExp(`^${name} +(\\d+|unlimited)`, 'm').exec(limits)?.[1]
    return found === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found)
  }
  return {
    startSeconds: bootSeconds + Number(fields[19]) / ticksPerSecond,
    virtualBytes: Number(fields[20]),
    maxVirtualBytes: soft('Max address space'),
    maxFds: soft('Max open files'),
  }
}

function readFacts(): ProcessFacts {
  const { user, system } = process.cpuUsage()
  const always = { cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() }
  const read = (file: string) => readFileSync(file, 'utf8')
  try {
    const kernel = factsOf(read('/proc/self/stat'), read('/proc/stat'), read('/proc/self/limits'))
    return { ...always, ...kernel, openFds: readdirSync('/proc/self/fd').length }
  } catch {
    return always
  }
}

/** Adds the metrics of the process to those that every scrape reads. */
export function addProcessMetrics(metrics: PrometheusMetrics, facts: () => ProcessFacts = readFacts): void {
  const cpu = metrics.counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process, in seconds.' })
  const gauges = [
    ['process_max_fds', 'How many files the process may have open.', 'maxFds'],
    ['process_open_fds', 'How many files the process has open.', 'openFds'],
    ['process_resident_memory_bytes', 'Memory of the process, in bytes.', 'residentBytes'],
    ['process_start_time_seconds', 'When the process was started, in seconds since 1970.', 'startSeconds'],
    ['process_virtual_memory_bytes', 'Address space of the process, in bytes.', 'virtualBytes'],
    ['process_virtual_memory_max_bytes', 'How much address space the process may have, in bytes.', 'maxVirtualBytes'],
  ] as const
  let counted = 0
  metrics.onScrape(() => {
    const now = facts()
    cpu.inc({}, now.cpuSeconds - counted)
    counted = now.cpuSeconds
    for (const [name, help, fact] of gauges) {
      const value = now[fact]
      if (value !== undefined && !Number.isNaN(value)) metrics.gauge({ name, help }).set(Number.isFinite(value) ? value : maxUint64)
    }
  })
}

/** What upstream writes for no limit. */
const maxUint64 = 2 ** 64
