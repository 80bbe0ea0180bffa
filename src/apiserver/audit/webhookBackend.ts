/**
 * Sends audit events to a webhook as an EventList (L3); a failure is retried with growing pauses, five attempts in all.
 * Upstream: apiserver/plugin/pkg/audit/webhook, pkg/util/webhook WithExponentialBackoff.
 */
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import { createHttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import type { AuditBackend, ReportLoss } from './backend.ts'

const attempts = 5
const factor = 1.5
const jitter = 0.2
const timeoutMs = 30_000

/** From the kubeconfig: its server is the full URL to post to. */
export type AuditWebhook = Omit<HttpTransportOptions, 'clock'>

export interface WebhookBackendDeps {
  readonly clock: Clock
  readonly random: Random
  readonly reportLoss: ReportLoss
}

export function createWebhookBackend({ clock, random, reportLoss }: WebhookBackendDeps, webhook: AuditWebhook, initialBackoffMs: number): AuditBackend {
  const transport = createHttpTransport({ ...webhook, clock })
  // The connection adds the URL's own path, which must not gain a slash.
  const path = new URL(webhook.server).pathname === '/' ? '/' : ''
  const post = async (body: string): Promise<string | undefined> => {
    using limit = deadlineScope({ clock, ms: timeoutMs })
    try {
      await transport.request({ method: 'POST', path, body }, limit.signal)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }
  return {
    async process(events) {
      const body = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${events.map((event) => event.json()).join(',')}]}`
      let pauseMs = initialBackoffMs
      let problem = await post(body)
      for (let attempt = 1; problem !== undefined && attempt < attempts; attempt++) {
        await clock.sleep(pauseMs * (1 + jitter * random.next()))
        pauseMs *= factor
        problem = await post(body)
      }
      if (problem !== undefined) reportLoss('webhook', problem, events)
      return problem === undefined
    },
    close: () => transport.close(),
  }
}
