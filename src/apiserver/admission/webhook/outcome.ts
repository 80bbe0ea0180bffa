/**
 * How calls of webhooks end badly (L3): the webhook refused, or it could not be asked. The first is always final, the second is a matter of
 * the failure policy.
 * Upstream: apiserver/pkg/util/webhook/error.go, pkg/admission/plugin/webhook/errors (v1.36).
 */
import { type Status, StatusError, type StatusReason } from '#api/machinery/status'

/** The webhook could not be asked, or gave no answer that counts. */
export class CallError extends Error {
  /** For metrics. */
  readonly code: number
  /** The client closed its connection, so the failure is not the webhook's. */
  readonly isCancelled: boolean

  constructor(webhook: string, reason: string, code: number, isCancelled = false) {
    super(`failed calling webhook ${JSON.stringify(webhook)}: ${reason}`)
    this.code = code
    this.isCancelled = isCancelled
  }
}

/** The webhook refused: the request ends with its status. */
export class Rejection extends Error {
  readonly status: StatusError

  constructor(status: StatusError) {
    super(status.message)
    this.status = status
  }
}

/** The status in a webhook's refusal. */
export type WebhookResult = { readonly [K in 'code' | 'message' | 'reason' | 'details']?: Status[K] | null }

/** Never a success, never below 400. */
export function rejectionOf(webhook: string, result: WebhookResult | null | undefined): Rejection {
  const deniedBy = `admission webhook ${JSON.stringify(webhook)} denied the request`
  const { code, message, reason, details } = result ?? {}
  const text = message ? `${deniedBy}: ${message}` : reason ? `${deniedBy}: ${reason}` : `${deniedBy} without explanation`
  const known = typeof code === 'number' && code >= 400 ? code : 400
  return new Rejection(new StatusError((reason ?? '') as StatusReason, text, { code: known, ...(details ? { details } : {}) }))
}

/** What ends a request whose time is over while webhooks are asked. */
export function requestTimeout(): StatusError {
  return new StatusError('Timeout', 'Timeout: request did not complete within requested timeout', { details: {} })
}
