/** A pipeline around a handler of the test's own, on virtual time (tests only): what comes in is told as over HTTP/2. */
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { type Answer, textAnswer } from '../answer.ts'
import { Cancellation } from '../cancellation.ts'
import type { ServerRequest, UserInfo } from '../request.ts'
import { createPipeline, type PipelineConfig, type PipelineDeps } from './index.ts'
import { RequestGroup } from './requestGroup.ts'
import type { Handler } from './stage.ts'

export const jane: UserInfo = { name: 'jane', groups: ['dev', 'system:authenticated'] }
export const baseConfig: PipelineConfig = { requestTimeoutMs: 60_000, maxInFlight: { readOnly: 10, mutating: 10 } }

/** Everybody is jane, who may do everything. */
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

export interface Sent {
  readonly method?: string
  readonly url?: string
  readonly headers?: ServerRequest['headers']
}

export function requestOf({ method = 'GET', url = '/api/v1/namespaces/a/pods/p', headers = {} }: Sent = {}): ServerRequest {
  const [path = '', query] = url.split('?')
  return {
    ...{ method, path, query: new URLSearchParams(query), headers, remoteAddress: '192.0.2.7', isHttp2: true, responseHeaders: {}, receivedMs: 0 },
    ...{ cancellation: new Cancellation(), warnings: [], readBody: () => Promise.resolve({ type: 'value', value: undefined, contentType: '' }) },
  }
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
