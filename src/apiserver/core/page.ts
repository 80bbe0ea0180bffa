/** Pages outside the API (L3): paths that belong to no resource, such as /openapi, /statusz or an issuer's keys. A part that serves some adds to a list. */
import type { Answer } from './answer.ts'
import type { ServerRequest } from './request.ts'

export interface Page {
  /** The path, or the beginning of several paths up to a slash: `/debug/pprof` serves `/debug/pprof/heap` too. */
  readonly prefix: string
  /** It answers POST, too. */
  readonly acceptsPost?: boolean | undefined
  /** Undefined for a path below the prefix that does not exist. */
  handle(request: ServerRequest): Promise<Answer | undefined> | Answer | undefined
}

/** Answers a request by the first page of the list that serves its path; undefined when none does. */
export async function answerByPage(pages: readonly Page[], request: ServerRequest): Promise<Answer | undefined> {
  for (const { prefix, handle } of pages) {
    if (request.path !== prefix && !request.path.startsWith(`${prefix}/`)) continue
    const answer = await handle(request)
    if (answer) return answer
  }
  return undefined
}
