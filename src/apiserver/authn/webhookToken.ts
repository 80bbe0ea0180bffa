/**
 * Authenticates bearer tokens by a webhook (L3), with a TokenReview of either version. Failures are retried for a while.
 * Upstream: apiserver/plugin/pkg/authenticator/token/webhook, pkg/util/webhook (v1.36).
 */
import type { TokenReview } from '#api/gen/types/authentication.v1'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Random } from '#base/random'
import { createHttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import { insistently } from '../webhooks/webhookRetry.ts'
import { withAuthenticatedGroup } from './authenticatedGroup.ts'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'

export interface WebhookTokenSettings {
  /** From the kubeconfig: its server is the full URL to post to. */
  readonly transport: Omit<HttpTransportOptions, 'clock'>
  /** Version of the TokenReview. */
  readonly version: 'v1' | 'v1beta1'
  readonly cacheTtlMs: number
}

export interface WebhookTokenDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Bounds one look-up, all attempts together. */
const timeoutMs = 30_000

export function webhookTokenAuthenticator(
  deps: WebhookTokenDeps,
  { transport, version }: WebhookTokenSettings,
  apiAudiences: readonly string[],
): TokenAuthenticator {
  const client = createHttpTransport({ ...transport, clock: deps.clock })
  const apiVersion = `authentication.k8s.io/${version}`
  // The connection adds the URL's own path, which must not gain a slash.
  const path = new URL(transport.server).pathname === '/' ? '/' : ''
  const ask = async (token: string, audiences: readonly string[]) => {
    const body = { kind: 'TokenReview', apiVersion, metadata: {}, spec: { token, audiences: [...audiences] } }
    using limit = deadlineScope({ clock: deps.clock, ms: timeoutMs })
    const { signal } = limit
    const answer = await insistently(deps, () => client.request({ method: 'POST', path, body }, signal), signal)
    const review = answer.body as Partial<TokenReview>
    if (review?.kind !== 'TokenReview') throw new Error(`the webhook answered with ${review?.kind ?? 'no object'} instead of a TokenReview`)
    return review.status ?? {}
  }
  return {
    name: 'webhook',
    async authenticateToken(token, audiences): Promise<TokenResult> {
      try {
        return resultOf(await ask(token, audiences), audiences, apiAudiences)
      } catch (error) {
        deps.log.error(error, 'Asking the webhook about a token failed')
        return { decision: 'rejected', reason: (error as Error).message }
      }
    },
  }
}

/** A webhook that returns no audiences accepts the token for the API server's own. */
function resultOf(status: Partial<NonNullable<TokenReview['status']>>, wanted: readonly string[], apiAudiences: readonly string[]): TokenResult {
  const given = status.audiences?.length ? status.audiences : apiAudiences
  const audiences = wanted.filter((one) => given.includes(one))
  if (audiences.length === 0) return undefined
  if (!status.authenticated) return status.error ? { decision: 'rejected', reason: status.error } : undefined
  const { username = '', uid, groups = [], extra } = status.user ?? {}
  return {
    decision: 'authenticated',
    audiences,
    user: withAuthenticatedGroup({ name: username, ...(uid ? { uid } : {}), groups, ...(extra ? { extra } : {}) }),
  }
}
