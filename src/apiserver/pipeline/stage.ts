/** One stage of the request pipeline (L3): decides about a request, or passes it on. */
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'

export type Handler = (request: ServerRequest) => Promise<Answer> | Answer

export interface Stage {
  readonly name: string
  handle(request: ServerRequest, next: Handler): Promise<Answer> | Answer
}

/** Chains stages, the first one outermost, around the handler. */
export function compose(stages: readonly Stage[], handler: Handler): Handler {
  return stages.reduceRight<Handler>((next, stage) => (request) => stage.handle(request, next), handler)
}

/** Records what a stage decided, when somebody reads the trace. */
export function decided(request: ServerRequest, stage: string, decision: string, durationMs: number): void {
  request.trace?.push({ stage, decision, durationMs })
}

/** Requests that may last: they count in no limit and have no deadline. Upstream: genericfilters.BasicLongRunningRequestCheck. */
export function isLongRunning(request: ServerRequest): boolean {
  const { info } = request
  if (!info) return false
  if (info.verb === 'watch' || info.verb === 'proxy') return true
  return info.isResourceRequest && longRunningSubresources.has(info.subresource)
}

const longRunningSubresources: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])
