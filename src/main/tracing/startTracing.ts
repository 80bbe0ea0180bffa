/** Puts the tracer of a process together (L5). Imported only where a configuration asks for traces. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import { createTracer } from '#base/tracer'
import { createOtlpExporter, type ExporterTools } from './otlpExporter.ts'
import type { TracingSettings } from './tracingConfiguration.ts'

export interface Tracing {
  readonly tracer: Tracer
  /** Sends the last spans. */
  close(): Promise<void>
}

export interface TracingOptions extends TracingSettings {
  readonly marksObjects?: boolean | undefined
}

export function startTracing(options: TracingOptions, tools: ExporterTools & { readonly random: Random }): Tracing {
  const { endpoint, samplingRatePerMillion = 0, marksObjects } = options
  const exporter = createOtlpExporter(endpoint, { ...tools, log: tools.log.with('tracing') })
  const tracer = createTracer({ ...tools, storage: new AsyncLocalStorage(), samplingRatePerMillion, marksObjects, end: (span) => exporter.end(span) })
  return { tracer, close: () => exporter.close() }
}
