/** OTLP's message of spans (L0), for its JSON and its protobuf form, which differ in how they write ids. Upstream: opentelemetry-proto, trace.proto. */
import type { Span, SpanContext } from './traceContext.ts'

export interface OtlpForm {
  readonly scope: { readonly name: string; readonly version?: string }
  /** Writes an id of hexadecimal digits. */
  id(hex: string): unknown
}

/** OTLP's numbers. */
const spanKinds = { internal: 1, server: 2, client: 3 } as const
const statusError = 2

/** ExportTraceServiceRequest: the spans of each component together. */
export function otlpRequest(spans: readonly Span[], form: OtlpForm): object {
  const byService = new Map<string, Span[]>()
  for (const span of spans) {
    const own = byService.get(span.service)
    if (own) own.push(span)
    else byService.set(span.service, [span])
  }
  return {
    resourceSpans: [...byService].map(([service, own]) => ({
      resource: { attributes: [attribute('service.name', service)] },
      scopeSpans: [{ scope: form.scope, spans: own.map((span) => spanMessage(span, form)) }],
    })),
  }
}

function spanMessage(span: Span, { id }: OtlpForm): object {
  const { name, kind, parentSpanId, link, startMs, endMs, attributes, error } = span
  const ids = ({ traceId, spanId }: SpanContext) => ({ traceId: id(traceId), spanId: id(spanId) })
  return {
    ...ids(span),
    ...(parentSpanId === undefined ? {} : { parentSpanId: id(parentSpanId) }),
    name,
    kind: spanKinds[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [attribute(key, value)])),
    ...(link ? { links: [ids(link)] } : {}),
    ...(error === undefined ? {} : { status: { message: error, code: statusError } }),
  }
}

/** Microseconds are exact in a double, nanoseconds are not. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms * 1000)}000`
}

function attribute(key: string, value: string | number | boolean): object {
  if (typeof value === 'string') return { key, value: { stringValue: value } }
  return { key, value: typeof value === 'boolean' ? { boolValue: value } : { intValue: value } }
}
