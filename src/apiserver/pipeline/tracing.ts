/**
 * One span per request (L3); without an exporter no span is made. The caller's W3C trace context is continued for administrators and monitoring,
 * and only linked for other users, who must not choose what is sampled.
 * Upstream: apiserver/pkg/endpoints/filters/traces.go.
 */
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import { statusOf } from '../core/answer.ts'
import { requestUri, type ServerRequest } from '../core/request.ts'
import type { Handler, Stage } from '../core/stage.ts'

export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly sampled: boolean
}

export interface Span extends SpanContext {
  /** As `GET /api/v1/namespaces/{:namespace}/pods/{:name}`. */
  readonly name: string
  readonly parentSpanId?: string | undefined
  readonly link?: SpanContext | undefined
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number>>
}

export interface SpanSink {
  /** Called once per request; false: no span is made. */
  samples(parent: SpanContext | undefined): boolean
  /** Must not throw, and must not wait. */
  end(span: Span): void
}

export function tracingStage(sink: SpanSink | undefined, clock: Clock, random: Random): Stage {
  return { name: 'tracing', handle: (request, next) => (sink ? traced(sink, request, next) : next(request)) }

  async function traced(spans: SpanSink, request: ServerRequest, next: Handler) {
    const caller = parseTraceParent(request.headers.traceparent)
    const parent = caller && mayChooseSampling(request) ? caller : undefined
    if (!spans.samples(parent)) return next(request)
    const context = { traceId: parent?.traceId ?? hexOf(random, 32), spanId: hexOf(random, 16), sampled: true }
    let code = 500
    try {
      const answer = await next(request)
      code = statusOf(answer)
      return answer
    } catch (error) {
      if (error instanceof StatusError) code = error.code
      throw error
    } finally {
      spans.end({
        ...context,
        name: spanName(request),
        parentSpanId: parent?.spanId,
        ...(caller && !parent ? { link: caller } : {}),
        startMs: request.receivedMs,
        endMs: clock.now(),
        attributes: { 'http.method': request.method, 'http.target': requestUri(request), 'http.status_code': code, 'audit-id': request.auditId ?? '' },
      })
    }
  }
}

/** Parses the W3C header, version 00. Undefined when it is absent or invalid. */
export function parseTraceParent(header: ServerRequest['headers'][string]): SpanContext | undefined {
  const match = typeof header === 'string' ? /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header) : null
  const [, traceId = '', spanId = '', flags = ''] = match ?? []
  if (!match || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const privileged: ReadonlySet<string> = new Set(['system:masters', 'system:monitoring'])

function mayChooseSampling(request: ServerRequest): boolean {
  return request.user?.groups.some((group) => privileged.has(group)) ?? false
}

function spanName({ method, info }: ServerRequest): string {
  if (!info?.isResourceRequest) return method
  const { apiPrefix, apiGroup, apiVersion, namespace, resource, name, subresource } = info
  const parts = [apiPrefix, apiGroup, apiVersion, namespace && 'namespaces/{:namespace}', resource, name && '{:name}', subresource]
  return `${method} /${parts.filter((part) => part !== '').join('/')}`
}

function hexOf(random: Random, digits: number): string {
  let text = ''
  while (text.length < digits)
    text += Math.floor(random.next() * 0x10000)
      .toString(16)
      .padStart(4, '0')
  return text
}
