/**
 * Records requests for readers (L3): all stages of a request that has a reader, and a small record of every refusal, because users ask for
 * the reason afterwards. Without a reader a request costs one look at whether there is one.
 */
import { explainHeader, isTracesPath, type TracedObject, type TracedRequest } from '#api/debug/traces'
import { StatusError } from '#api/machinery/status'
import { cut, type RequestTracer } from '#trace/requestTracer'
import type { TraceBook } from '#trace/traceBook'
import type { Answer } from '../core/answer.ts'
import { requestUri, type ServerRequest } from '../core/request.ts'
import { codeOf, finished, type Stage } from '../core/stage.ts'

export type TraceReader = Pick<TraceBook, 'begin' | 'finish' | 'refused' | 'followsUser'>

export function traceStage(book: TraceReader): Stage {
  return {
    name: 'trace',
    handle(request, next) {
      const { info } = request
      if (!info || isTracesPath(request.path)) return next(request)
      const { verb, resource, namespace, name } = info
      const tracer = book.begin({ isAsked: request.headers[explainHeader] !== undefined, verb, resource, namespace, name })
      if (!tracer) return next(request)
      request.trace = tracer
      tracer.add('requestInfo', info.isResourceRequest ? `${verb} ${resource}` : verb, 0)
      return finished(next, request, (answer, error) => {
        if (isAuthenticated(request)) book.finish(tracer, recordOf(request, tracer, answer, error))
      })
    },
  }
}

/** Once the user is known: a rule about one user must not make the requests of all others pay. */
export function tracedUserStage(book: TraceReader): Stage {
  return {
    name: 'tracedUser',
    handle(request, next) {
      const { trace, originalUser, user } = request
      if (trace?.isTentative && !book.followsUser(originalUser?.name ?? '', user?.name)) request.trace = undefined
      return next(request)
    },
  }
}

function recordOf(request: ServerRequest, tracer: RequestTracer, answer: Answer | undefined, error: unknown): TracedRequest {
  const code = codeOf(answer, error)
  const { stages, revision, watchers, created } = tracer
  return {
    ...basics(request, tracer.atMs, tracer.now() - tracer.atMs, code, error),
    ...(created ? { object: created } : {}),
    stages,
    ...(revision === undefined ? {} : { revision }),
    ...(watchers === undefined ? {} : { watchers }),
  }
}

/** Keeps refusals. Does not keep GETs that return 404: controllers make many. */
export function refusalKeeper(book: TraceReader): (request: ServerRequest, code: number, error: unknown, durationMs: number) => void {
  return (request, code, error, durationMs) => {
    if (code === 404 && request.method === 'GET') return
    // The request of an unknown user could never be read.
    if (request.originalUser) book.refused({ ...basics(request, request.receivedMs, durationMs, code, error), stages: [] })
  }
}

/** Anonymous users cannot read traces, and must not push out those of others. */
function isAuthenticated({ originalUser }: ServerRequest): boolean {
  return originalUser !== undefined && !originalUser.groups.includes('system:unauthenticated')
}

const mostGroups = 32
const mostCauses = 8

function basics(request: ServerRequest, atMs: number, durationMs: number, code: number, error: unknown) {
  const { auditId = '', info, originalUser, user } = request
  return {
    id: auditId.slice(0, 64),
    atMs,
    user: cut(originalUser?.name ?? ''),
    ...(user === originalUser ? {} : { as: cut(user?.name ?? '') }),
    groups: (user?.groups ?? []).slice(0, mostGroups).map(cut),
    verb: info?.verb ?? request.method.toLowerCase(),
    uri: cut(requestUri(request)),
    code,
    durationMs,
    ...(info?.isResourceRequest ? { object: objectOf(info, error) } : {}),
    ...(code >= 400 ? failureOf(request, error) : {}),
  }
}

function objectOf({ apiGroup, resource, subresource, namespace, name }: NonNullable<ServerRequest['info']>, error: unknown): TracedObject {
  return { group: apiGroup, resource, ...(subresource === '' ? {} : { subresource }), namespace, name: cut(name || refusedName(error)) }
}

const namesObject: ReadonlySet<string> = new Set(['AlreadyExists', 'Forbidden', 'Invalid'])

/** A creation has the name in its body, and a refusal in its Status. */
function refusedName(error: unknown): string {
  const name = error instanceof StatusError && namesObject.has(error.reason) ? error.details?.name : undefined
  return name === undefined || name === 'Unknown' ? '' : name
}

function failureOf({ refusedBy }: ServerRequest, error: unknown) {
  const by = refusedBy === undefined ? {} : { refusedBy }
  if (!(error instanceof StatusError)) return by
  const causes = (error.details?.causes ?? []).slice(0, mostCauses).map(({ field = '', message = '' }) => ({ field: cut(field), message: cut(message) }))
  return { ...by, reason: error.reason, message: cut(error.message), ...(causes.length > 0 ? { causes } : {}) }
}
