/**
 * Spans and the context that hands a trace on from one component to the next (L0). ./tracer.ts makes them and is loaded only where tracing is on.
 * Upstream: component-base/tracing; W3C Trace Context, version 00.
 */
export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly sampled: boolean
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>
export type SpanKind = 'internal' | 'server' | 'client'

/** A span that has ended. */
export interface Span extends SpanContext {
  readonly name: string
  readonly kind: SpanKind
  /** The component that did the work. */
  readonly service: string
  readonly parentSpanId?: string | undefined
  readonly link?: SpanContext | undefined
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  /** Why the work failed. */
  readonly error?: string | undefined
}

export interface SpanOptions {
  readonly name: string
  readonly kind?: SpanKind | undefined
  /** Absent: that of the span around it. */
  readonly service?: string | undefined
  readonly attributes?: SpanAttributes | undefined
  /** Absent: the span that is current. */
  readonly parent?: SpanContext | undefined
  /** Begins a trace where there is no parent; otherwise such work has no span. */
  readonly isRoot?: boolean | undefined
  readonly link?: SpanContext | undefined
  readonly startMs?: number | undefined
}

/** A span whose work is under way. */
export interface ActiveSpan extends SpanContext {
  set(attributes: SpanAttributes): void
}

export interface Tracer {
  /** The sampled span around this work. */
  current(): SpanContext | undefined
  /** The span of the request around this work: what caused a write. */
  request(): SpanContext | undefined
  /** Does the work as a span; where the trace is not sampled it only does the work. */
  span<T>(options: SpanOptions, work: (span: ActiveSpan | undefined) => T): T
  /** Does work whose spans belong to `context`. */
  within<T>(context: SpanContext | undefined, work: () => T): T
  /** The trace of the request that last changed the object's spec, for five minutes after it is first seen. */
  followedTraceOf(object: TracedObject): SpanContext | undefined
  /** Whether objects carry the context of the request that wrote their spec. */
  readonly marksObjects: boolean
}

export interface TracedObject {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined }
}

/** Holds the W3C context of the request that last wrote the object's spec. */
export const traceAnnotation = 'skiff.dev/traceparent'

/** Parses the W3C header. Undefined when it is absent or invalid. */
export function parseTraceParent(header: unknown): SpanContext | undefined {
  const match = typeof header === 'string' ? /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header) : null
  const [, traceId = '', spanId = '', flags = ''] = match ?? []
  if (!match || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceParent({ traceId, spanId, sampled }: SpanContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/** The header that hands the current trace on; none where there is no trace. */
export function traceHeaders(tracer: Tracer | undefined): Readonly<Record<string, string>> {
  const context = tracer?.current()
  return context ? { traceparent: formatTraceParent(context) } : {}
}

/** Does work as a span where tracing is on. */
export function traced<T>(tracer: Tracer | undefined, options: SpanOptions, work: (span: ActiveSpan | undefined) => T): T {
  return tracer ? tracer.span(options, work) : work(undefined)
}
