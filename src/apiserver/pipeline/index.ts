/**
 * The request pipeline (L3): every request, of either protocol or from this process, runs through these stages in this order, which is
 * upstream's (DefaultBuildHandlerChain). Headers that are constant are written with the answer.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import { statusOf } from '../answer.ts'
import type { Authenticator } from '../authn/authenticator.ts'
import type { Authorizer } from '../authz/authorizer.ts'
import { type AuditSink, auditStage } from './audit.ts'
import { auditInitStage } from './auditInit.ts'
import { authenticationStage } from './authentication.ts'
import { authorizationStage } from './authorization.ts'
import { deadlineStage } from './deadline.ts'
import { impersonationStage } from './impersonation.ts'
import { latencyStage } from './latency.ts'
import { type InFlightLimits, maxInFlightStage } from './maxInFlight.ts'
import { panicRecoveryStage } from './panicRecovery.ts'
import { requestInfoStage } from './requestInfo.ts'
import { compose, decided, type Handler, type Stage } from './stage.ts'
import { drainStage } from './waitGroup.ts'

export interface PipelineDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly random: Random
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  /** Absent: nothing is audited. */
  readonly audit?: AuditSink | undefined
  /** Aborts when the server begins to shut down. */
  readonly shutdown: AbortSignal
}

export interface PipelineConfig {
  readonly requestTimeoutMs: number
  readonly maxInFlight: InFlightLimits
}

/** The stages, outermost first. */
export function pipelineStages(deps: PipelineDeps, config: PipelineConfig): readonly Stage[] {
  return [
    auditInitStage(deps.random),
    panicRecoveryStage(deps.log),
    requestInfoStage,
    latencyStage(deps),
    drainStage(deps.shutdown),
    deadlineStage(deps.clock, config.requestTimeoutMs),
    authenticationStage(deps.authenticators, deps.clock),
    auditStage(deps.audit, deps.clock),
    impersonationStage(deps.authorizers),
    maxInFlightStage(config.maxInFlight),
    authorizationStage(deps.authorizers, deps.clock),
  ]
}

export function createPipeline(deps: PipelineDeps, config: PipelineConfig, handler: Handler): Handler {
  return compose(pipelineStages(deps, config), timed(deps.clock, handler))
}

/** The handler is the last entry of a trace. */
function timed(clock: Clock, handler: Handler): Handler {
  return async (request) => {
    if (!request.trace) return handler(request)
    const startedMs = clock.monotonicMs()
    const answer = await handler(request)
    decided(request, 'handler', String(statusOf(answer)), clock.monotonicMs() - startedMs)
    return answer
  }
}
