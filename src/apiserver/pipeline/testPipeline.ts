/** A pipeline around a test's own handler, on virtual time (tests only): requests count as HTTP/2. */
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { type Answer, textAnswer } from '../core/answer.ts'
import type { ServerRequest, UserInfo } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { requestOf, type Sent } from '../core/testRequest.ts'
import { createPipeline, type PipelineConfig, type PipelineDeps } from './index.ts'
import { RequestGroup } from './requestGroup.ts'

export const jane: UserInfo = { name: 'jane', groups: ['dev', 'system:authenticated'] }
export const baseConfig: PipelineConfig = { requestTimeoutMs: 60_000, maxInFlight: { readOnly: 10, mutating: 10 } }

/** Every request is authenticated as jane, and allowed. */
export function pipelineDeps(changes: Partial<PipelineDeps> = {}): PipelineDeps & { readonly clock: VirtualClock } {
  return {
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
    log: noLog,
    metrics: noMetrics,
    random: seededRandom(1),
    authenticators: [{ name: 'test', authenticate: () => ({ decision: 'authenticated', user: jane }) }],
    authorizers: [{ name: 'test', authorize: () => ({ decision: 'allow', reason: '' }) }],
    shutdown: new AbortController().signal,
    requests: new RequestGroup(),
    watches: new RequestGroup(),
    ...changes,
  } as PipelineDeps & { readonly clock: VirtualClock }
}

/** Sends one request through the whole pipeline. */
export async function sendThrough(
  sent: Sent = {},
  { deps = {}, config = {}, handler = () => textAnswer(200, 'ok') }: { deps?: Partial<PipelineDeps>; config?: Partial<PipelineConfig>; handler?: Handler } = {},
): Promise<{ request: ServerRequest; answer: Answer }> {
  const request = requestOf(sent)
  const answer = await createPipeline(pipelineDeps(deps), { ...baseConfig, ...config }, handler)(request)
  return { request, answer }
}
