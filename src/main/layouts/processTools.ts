/** What every long-running process needs from its surroundings (L5): log, metrics, chance, and running components together. */
import { randomInt } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { type Random, seededRandom } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { TraceBook } from '#trace/traceBook'
import type { LogSettings } from '../apiserver/options/logs.ts'
import { createComponentMetrics } from '../componentMetrics.ts'
import { createErrorOutput, droppedLines } from '../errorOutput.ts'
import type { MetricRules, PrometheusMetrics } from '../prometheus.ts'
import { createRealClock } from '../realClock.ts'
import { createTextLog } from '../textLog.ts'
import type { TracingOptions } from '../tracing/startTracing.ts'

export interface ProcessTools {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: PrometheusMetrics
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  /** Where the components of a server note what they do about objects that a reader follows. */
  readonly trace?: TraceBook | undefined
}

/** The same tools with a tracer, where a configuration asks for traces, and what sends the last spans. */
export async function withTracing(tools: ProcessTools, options: TracingOptions | undefined): Promise<{ tools: ProcessTools; close(): Promise<void> }> {
  if (!options) return { tools, close: async () => {} }
  const { startTracing } = await import('../tracing/startTracing.ts')
  const { tracer, close } = startTracing(options, tools)
  return { tools: { ...tools, tracer }, close }
}

/** @param metricRules absent: they are not known yet, or every metric is shown */
export function processTools(
  name: string,
  { verbosity, format = 'text' }: { readonly verbosity: number; readonly format?: LogSettings['format'] | undefined },
  metricRules?: MetricRules,
): ProcessTools {
  const clock = createRealClock()
  const metrics = createComponentMetrics()
  if (metricRules) metrics.restrict(metricRules)
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
