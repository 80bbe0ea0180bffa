/** What every long-running process needs from its surroundings (L5): log, metrics, chance, and running components together. */
import { randomInt } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { type Random, seededRandom } from '#base/random'
import type { LogSettings } from '../apiserver/options/logs.ts'
import { createErrorOutput, droppedLines } from '../errorOutput.ts'
import { withProcessMetrics } from '../processMetrics.ts'
import { createPrometheusMetrics, type PrometheusMetrics } from '../prometheus.ts'
import { createRealClock } from '../realClock.ts'
import { createTextLog } from '../textLog.ts'

export interface ProcessTools {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: PrometheusMetrics
}

/** @param disabledMetrics names of metrics that are not exposed */
export function processTools(
  name: string,
  { verbosity, format = 'text' }: { readonly verbosity: number; readonly format?: LogSettings['format'] | undefined },
  disabledMetrics?: readonly string[],
): ProcessTools {
  const clock = createRealClock()
  const metrics = withProcessMetrics(createPrometheusMetrics(disabledMetrics))
  const { write } = createErrorOutput(droppedLines(metrics))
  const root = createTextLog({ write, verbosity, format, nowMs: () => clock.now(), pid: process.pid })
  return { clock, random: seededRandom(randomInt(0xffff_ffff)), log: root.with(name), metrics }
}

/** Words that run this program, for the processes that it starts. */
export function ownProgram(): string[] {
  return [process.execPath, process.argv[1] ?? '']
}

/**
 * Runs components until the signal aborts. One that fails is logged and started again after a pause: a broken part must not take the
 * others down, nor stay down.
 */
export async function runTogether(components: readonly Component[], tools: ProcessTools, signal: AbortSignal): Promise<void> {
  await Promise.all(components.map((component) => keepRunning(component, tools, signal)))
}

const restartPauseMs = 1000

async function keepRunning(component: Component, tools: ProcessTools, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await component.run(signal)
      if (!signal.aborted) tools.log.warn('A component ended by itself', { component: component.name })
    } catch (error) {
      if (signal.aborted) return
      tools.log.error(error, 'A component failed', { component: component.name })
    }
    await tools.clock.sleep(restartPauseMs, signal).catch(() => {})
  }
}
