/** One stage of the request pipeline (L3): decides about a request, or passes it on. */
import { StatusError } from '#api/machinery/status'
import type { StageDetail } from '#trace/requestTracer'
import { type Answer, statusOf } from './answer.ts'
import type { ServerRequest } from './request.ts'

export type Handler = (request: ServerRequest) => Promise<Answer> | Answer

export interface Stage {
  readonly name: string
  handle(request: ServerRequest, next: Handler): Promise<Answer> | Answer
}

/** Chains stages, the first one outermost, around the handler. */
export function compose(stages: readonly Stage[], handler: Handler): Handler {
  return stages.reduceRight<Handler>((next, stage) => (request) => stage.handle(request, next), handler)
}

/** Passes the request on, and calls `done` when the work on it is over: answered at once, answered later, or failed. */
export function finished(next: Handler, request: ServerRequest, done: (answer: Answer | undefined, error?: unknown) => void): Promise<Answer> | Answer {
  let work: Promise<Answer> | Answer
  try {
    work = next(request)
  } catch (error) {
    done(undefined, error)
    throw error
  }
  if (!(work instanceof Promise)) {
    done(work)
    return work
  }
  return work.then(
    (answer) => {
      done(answer)
      return answer
    },
    (error: unknown) => {
      done(undefined, error)
      throw error
    },
  )
}

/** The HTTP code that the work on a request ended with. */
export function codeOf(answer: Answer | undefined, error: unknown): number {
  if (answer) return statusOf(answer)
  return error instanceof StatusError ? error.code : 500
}

/** Records what a stage decided, if the request is traced. */
export function decided(request: ServerRequest, stage: string, decision: string, durationMs: number, detail?: StageDetail): void {
  request.trace?.add(stage, decision, durationMs, detail)
}

/** Long-running requests: no limit counts them, and they have no deadline. Upstream: genericfilters.BasicLongRunningRequestCheck. */
export function isLongRunning(request: ServerRequest): boolean {
  const { info } = request
  if (!info) return false
  if (info.verb === 'watch' || info.verb === 'proxy') return true
  return info.isResourceRequest ? longRunningSubresources.has(info.subresource) : info.path.startsWith('/debug/pprof/')
}

const longRunningSubresources: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])
