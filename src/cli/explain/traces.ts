/** Reads traces from a server (L4). */
import { type ExplainedRequest, type TraceList, tracesPath } from '#api/debug/traces'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import { CommandError } from '../exitCodes.ts'

/** @throws CommandError notFound with what a reader can do to have one next time */
export async function traceOf(transport: Transport, id: string): Promise<ExplainedRequest> {
  try {
    return (await transport.request({ method: 'GET', path: `${tracesPath}/${encodeURIComponent(id)}` })).body as ExplainedRequest
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
    throw new CommandError('notFound', `there is no record of a request ${id} that you may read`, { hint: askBefore, cause: error })
  }
}

export async function tracesOf(transport: Transport, query: Readonly<Record<string, string>>): Promise<TraceList> {
  return (await transport.request({ method: 'GET', path: tracesPath, query })).body as TraceList
}

export const askBefore = 'only refusals are kept without being asked for: send the request with the header Skiff-Explain: true, and repeat'

/** What to do first, so that the next requests of a user or about an object are recorded: kubectl can send no header. */
export function followFirst(subject: { readonly user: string } | { readonly object: string }): string {
  const rule = JSON.stringify({ ...subject, seconds: 600 })
  return `only refusals are kept without being asked for: echo '${rule}' | kubectl create --raw /skiff/traces/rules -f - keeps what follows, for ten minutes`
}
