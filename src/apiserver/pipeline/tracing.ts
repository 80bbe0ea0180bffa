/**
 * One span per request (L3); without a tracer no span is made. The caller's W3C trace context is continued for administrators and monitoring,
 * and only linked for other users, who must not choose what is sampled. A component of this process continues its own span.
 * Upstream: apiserver/pkg/endpoints/filters/traces.go.
 */
import { StatusError } from '#api/machinery/status'
import { parseTraceParent, type Tracer } from '#base/traceContext'
import { statusOf } from '../core/answer.ts'
import { requestUri, type ServerRequest } from '../core/request.ts'
import type { Handler, Stage } from '../core/stage.ts'

export function tracingStage(tracer: Tracer | undefined): Stage {
  return { name: 'tracing', handle: (request, next) => (tracer ? spanOf(tracer, request, next) : next(request)) }
}

function spanOf(tracer: Tracer, request: ServerRequest, next: Handler): ReturnType<Handler> {
  const caller = parseTraceParent(request.headers.traceparent)
  const parent = caller && mayChooseSampling(request) ? caller : undefined
  const options = {
    name: spanName(request),
    kind: 'server',
    service: 'apiserver',
    isRoot: true,
    parent: parent ?? (request.inProcessUser && tracer.current()),
    link: parent ? undefined : caller,
    startMs: request.receivedMs,
    attributes: { 'http.method': request.method, 'http.target': requestUri(request), 'audit-id': request.auditId ?? '' },
  } as const
  return tracer.span(options, async (span) => {
    request.span = span
    let code = 500
    try {
      const answer = await next(request)
      code = statusOf(answer)
      return answer
    } catch (error) {
      if (error instanceof StatusError) code = error.code
      throw error
    } finally {
      span?.set({ 'http.status_code': code })
    }
  })
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
