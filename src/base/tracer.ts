/**
 * Makes spans (L0): samples traces, keeps the current span over asynchronous work, and gives ended spans to an exporter. Loaded only where tracing is on.
 * Upstream: the ParentBased and TraceIDRatioBased samplers of OpenTelemetry's SDK, which component-base/tracing chooses.
 */
import type { Clock } from './clock.ts'
import { messageOf } from './messageOf.ts'
import type { Random } from './random.ts'
import {
  type ActiveSpan,
  parseTraceParent,
  type Span,
  type SpanAttributes,
  type SpanContext,
  type SpanOptions,
  type Tracer,
  traceAnnotation,
} from './traceContext.ts'

export interface TracerOptions {
  readonly clock: Clock
  readonly random: Random
  /** One AsyncLocalStorage per tracer; holds the current span. */
  readonly storage: WorkStorage
  /** New traces sampled per million; 0: only traces that the caller sampled. */
  readonly samplingRatePerMillion: number
  /** Whether objects carry the context of the request that wrote them. */
  readonly marksObjects?: boolean | undefined
  /** Takes an ended span; it must not throw, and must not wait. */
  readonly end: (span: Span) => void
}

/** Keeps a value over the asynchronous work that begins with `run`: Node's AsyncLocalStorage. */
export interface WorkStorage {
  getStore(): unknown
  run<T>(value: unknown, work: () => T): T
}

interface Current extends SpanContext {
  readonly service: string
  /** The span of the request that this one is within, or is. */
  readonly request?: SpanContext | undefined
  isEnded?: boolean
}

/** How long components follow the trace of an object after they first saw it: its later changes have their own causes. */
const followedMs = 5 * 60_000
const mostFollowed = 4096

export function createTracer({ clock, random, storage, samplingRatePerMillion, marksObjects = false, end }: TracerOptions): Tracer {
  const firstSeenMs = new Map<string, number>()
  const active = () => {
    const span = storage.getStore() as Current | undefined
    return span?.isEnded ? undefined : span
  }
  const begin = ({ parent, isRoot, service, kind }: SpanOptions): Current | undefined => {
    const around = active()
    const above = parent ?? around
    if (above ? !above.sampled : !isRoot) return undefined
    const traceId = above?.traceId ?? hexOf(random, 32)
    if (!above && !isSampled(traceId, samplingRatePerMillion)) return undefined
    const span = { traceId, spanId: hexOf(random, 16), sampled: true, service: service ?? around?.service ?? 'skiff' }
    return { ...span, request: kind === 'server' ? span : around?.request }
  }
  return {
    marksObjects,
    current: active,
    request: () => active()?.request,
    within: (context, work) => storage.run(context?.sampled ? { ...context, service: active()?.service ?? 'skiff' } : undefined, work),
    followedTraceOf(object) {
      if (!marksObjects) return undefined
      const context = parseTraceParent(object.metadata.annotations?.[traceAnnotation])
      if (!context?.sampled) return undefined
      const nowMs = clock.monotonicMs()
      const seenMs = firstSeenMs.get(context.traceId) ?? nowMs
      firstSeenMs.set(context.traceId, seenMs)
      // The oldest is first.
      if (firstSeenMs.size > mostFollowed) firstSeenMs.delete(firstSeenMs.keys().next().value as string)
      return nowMs - seenMs <= followedMs ? context : undefined
    },
    span(options, work) {
      const span = begin(options)
      if (!span) return work(undefined)
      const above = options.parent ?? active()
      const startMs = options.startMs ?? clock.now()
      let attributes: SpanAttributes = options.attributes ?? {}
      const shown: ActiveSpan = {
        ...span,
        set(more) {
          attributes = { ...attributes, ...more }
        },
      }
      const ended = (error?: unknown) => {
        span.isEnded = true
        const { traceId, spanId, sampled, service } = span
        const { name, kind = 'internal', link } = options
        const failure = error === undefined ? {} : { error: messageOf(error) }
        end({ traceId, spanId, sampled, service, name, kind, link, parentSpanId: above?.spanId, startMs, endMs: clock.now(), attributes, ...failure })
      }
      return whenDone(() => storage.run(span, () => work(shown)), ended)
    },
  }
}

/** Calls `ended` when the work is over: at once, or when its promise settles. */
function whenDone<T>(work: () => T, ended: (error?: unknown) => void): T {
  let result: T
  try {
    result = work()
  } catch (error) {
    ended(error)
    throw error
  }
  if (!(result instanceof Promise)) {
    ended()
    return result
  }
  return result.then(
    (value) => {
      ended()
      return value
    },
    (error: unknown) => {
      ended(error)
      throw error
    },
  ) as T
}

/** The same decision for every component that sees the trace: by its id alone. */
function isSampled(traceId: string, ratePerMillion: number): boolean {
  // 52 bits of the lower half, as many as a double holds.
  return Number.parseInt(traceId.slice(19), 16) < (ratePerMillion / 1_000_000) * 2 ** 52
}

function hexOf(random: Random, digits: number): string {
  let text = ''
  while (text.length < digits)
    text += Math.floor(random.next() * 0x10000)
      .toString(16)
      .padStart(4, '0')
  return text
}
