/**
 * A call of a webhook with what follows from its failure policy (L3), counted: refused, failed closed, failed open, or allowed.
 * Upstream: the second half of Dispatch in apiserver/pkg/admission/plugin/webhook/{validating,mutating}/dispatcher.go (v1.36).
 */
import { internalError } from '#api/machinery/status'
import { type SpanOptions, traced } from '#base/traceContext'
import type { WebhookStep } from '../admissionMetrics.ts'
import { callHook, type HookCall } from './callHook.ts'
import type { WebhookDeps } from './consider.ts'
import { CallError, Rejection, requestTimeout } from './outcome.ts'
import type { Verdict } from './review.ts'

/**
 * @param use what is done with the verdict; its failures count as the call's
 * @returns undefined when the webhook could not be asked and its policy ignores that
 * @throws StatusError
 */
export async function measuredCall<T>(
  deps: WebhookDeps,
  call: HookCall,
  step: WebhookStep,
  use: (verdict: Verdict) => T,
): Promise<{ readonly value: T } | undefined> {
  const { clock, metrics } = deps
  const { hook, attributes } = call
  const { name } = hook.webhook
  const startedMs = clock.monotonicMs()
  const measured = (rejected: boolean, code: number) => {
    const made = { name, step, operation: attributes.operation, seconds: (clock.monotonicMs() - startedMs) / 1000, rejected, code }
    metrics.called(made)
    attributes.spent?.(step === 'admit' ? 'mutating-webhook' : 'validating-webhook', made.seconds * 1000)
    return made
  }
  try {
    const value = use(await traced(deps.tracer, spanOf(call, step), () => callHook(call, deps)))
    measured(false, 200)
    return { value }
  } catch (error) {
    if (error instanceof Rejection) {
      metrics.rejected(measured(true, error.status.code), 'no_error')
      throw error.status
    }
    if (!(error instanceof CallError)) {
      metrics.rejected(measured(true, 0), 'apiserver_internal_error')
      throw error
    }
    const made = measured(!hook.failsOpen, error.code)
    if (!hook.failsOpen) {
      if (!error.isCancelled) metrics.rejected(made, 'calling_webhook_error')
      throw internalError(error)
    }
    if (!error.isCancelled) metrics.failedOpen(name, step)
    if (attributes.cancellation?.aborted) throw requestTimeout()
    return undefined
  }
}

function spanOf({ hook, attributes }: HookCall, step: WebhookStep): SpanOptions {
  const { resource, subresource, operation } = attributes
  const attributesOfCall = { webhook: hook.webhook.name, resource: resource.resource, subresource, operation }
  return { name: `Call ${step === 'admit' ? 'mutating' : 'validating'} webhook`, kind: 'client', attributes: attributesOfCall }
}
