/**
 * Lets a user act as another, if allowed (L3). ../authn/impersonation reads the headers and decides.
 * Upstream: apiserver/pkg/endpoints/filters/impersonation (WithConstrainedImpersonation, v1.36).
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import { createImpersonator } from '../authn/impersonation/impersonator.ts'
import { impersonationMetrics } from '../authn/impersonation/metrics.ts'
import { type WantedUser, wantedUser } from '../authn/impersonation/wantedUser.ts'
import type { Authorizer } from '../authz/authorizer.ts'
import type { ServerRequest } from '../core/request.ts'
import { decided, type Handler, type Stage } from '../core/stage.ts'
import { attributesOf } from './authorization.ts'

export interface ImpersonationStageDeps {
  readonly authorizers: readonly Authorizer[]
  readonly clock: Clock
  readonly metrics: Metrics
}

export function impersonationStage({ authorizers, clock, metrics }: ImpersonationStageDeps): Stage {
  const recorded = impersonationMetrics(metrics)
  const impersonate = createImpersonator({ authorizers, clock, metrics: recorded })
  return {
    name: 'impersonation',
    handle(request, next) {
      const wanted = wantedUser(request)
      return wanted ? impersonated(wanted, request, next) : next(request)
    },
  }

  async function impersonated(wanted: WantedUser, request: ServerRequest, next: Handler) {
    const startedMs = clock.monotonicMs()
    const elapsedMs = () => clock.monotonicMs() - startedMs
    const found = await impersonate(wanted, attributesOf(request)).catch((error) => {
      request.audit?.spent('impersonation', elapsedMs())
      recorded.attempt(undefined, 'denied', elapsedMs())
      throw error
    })
    request.audit?.spent('impersonation', elapsedMs())
    recorded.attempt(found.constraint, 'allowed', elapsedMs())
    decided(request, 'impersonation', found.user.name, elapsedMs())
    request.user = found.user
    if (found.constraint !== '') request.impersonationConstraint = found.constraint
    return next(request)
  }
}
