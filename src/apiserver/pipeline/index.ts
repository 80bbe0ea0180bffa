/**
 * The request pipeline (L3): every request, of either protocol or from this process, runs through these stages in this order, which is
 * upstream's (DefaultBuildHandlerChain).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { AuditSink } from '../audit/sink.ts'
import type { Authenticator } from '../authn/authenticator.ts'
import type { Authorizer } from '../authz/authorizer.ts'
import type { RequestInfo } from '../core/request.ts'
import { requestInfoStage } from '../core/requestInfo.ts'
import { codeOf, compose, decided, finished, type Handler, type Stage } from '../core/stage.ts'
import type { FlowControl } from '../flowcontrol/flowControl.ts'
import { auditStage } from './audit.ts'
import { auditInitStage } from './auditInit.ts'
import { authenticationStage } from './authentication.ts'
import { authorizationStage } from './authorization.ts'
import { cacheControlStage } from './cacheControl.ts'
import { corsStage } from './cors.ts'
import { goawayStage } from './goaway.ts'
import { hstsStage } from './hsts.ts'
import { httpLogStage } from './httpLog.ts'
import { impersonationStage } from './impersonation.ts'
import { latencyStage } from './latency.ts'
import { type InFlightLimits, maxInFlightStage } from './maxInFlight.ts'
import { muxAndDiscoveryStage } from './muxAndDiscovery.ts'
import { panicRecoveryStage } from './panicRecovery.ts'
import { priorityAndFairnessStage } from './priorityAndFairness.ts'
import { receivedTimestampStage } from './receivedTimestamp.ts'
import { requestDeadlineStage } from './requestDeadline.ts'
import type { RequestGroup } from './requestGroup.ts'
import { retryAfterStage } from './retryAfter.ts'
import { timeoutStage } from './timeout.ts'
import { refusalKeeper, type TraceReader, tracedUserStage, traceStage } from './trace.ts'
import { tracingStage } from './tracing.ts'
import { waitGroupStage } from './waitGroup.ts'
import { warningRecorderStage } from './warningRecorder.ts'
import { watchTerminationStage } from './watchTermination.ts'

export interface PipelineDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly random: Random
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  /** Absent: nothing is audited. */
  readonly audit?: AuditSink | undefined
  /** Priority and fairness. Absent: only the number of requests in flight is bounded. */
  readonly flowControl?: FlowControl | undefined
  /** Records requests that have a reader, and all refusals. Absent: nothing is recorded. */
  readonly trace?: TraceReader | undefined
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  /** Aborts when the server begins to shut down. */
  readonly shutdown: AbortSignal
  /** Whether the server has this resource. Absent: it has every one. */
  readonly isServed?: ((info: RequestInfo) => boolean) | undefined
  /** Whether all paths are registered; absent: they always are. */
  readonly pathsComplete?: (() => boolean) | undefined
  /** The requests that a shutdown waits for: short ones, and watches if they get a grace period. */
  readonly requests: RequestGroup
  readonly watches: RequestGroup
}

/** Members with the meaning of kube-apiserver's flags, which the comments name. */
export interface PipelineConfig {
  /** --request-timeout. */
  readonly requestTimeoutMs: number
  /** --max-requests-inflight, --max-mutating-requests-inflight. */
  readonly maxInFlight: InFlightLimits
  /** --shutdown-send-retry-after. */
  readonly shutdownSendRetryAfter?: boolean | undefined
  /** --shutdown-watch-termination-grace-period; more than 0: watches get that long to end. */
  readonly shutdownWatchTerminationGraceMs?: number | undefined
  /** --strict-transport-security-directives. */
  readonly hstsDirectives?: readonly string[] | undefined
  /** --goaway-chance: 0 to 0.02. */
  readonly goawayChance?: number | undefined
  /** --cors-allowed-origins: regular expressions. */
  readonly corsAllowedOrigins?: readonly string[] | undefined
}

/**
 * The stages, outermost first. A stage that an option turns off is left out.
 * @throws when a pattern of corsAllowedOrigins does not parse
 */
export function pipelineStages(deps: PipelineDeps, config: PipelineConfig): readonly Stage[] {
  const { clock, log, random, audit, shutdown, flowControl, trace } = deps
  const { goawayChance = 0, hstsDirectives = [], corsAllowedOrigins = [], shutdownWatchTerminationGraceMs = 0 } = config
  return [
    auditInitStage(random),
    panicRecoveryStage(log),
    muxAndDiscoveryStage(deps.pathsComplete ?? (() => true)),
    receivedTimestampStage(clock),
    requestInfoStage,
    ...(trace ? [traceStage(trace)] : []),
    latencyStage({ ...deps, onRefusal: trace && refusalKeeper(trace) }),
    httpLogStage(log, clock),
    ...when(config.shutdownSendRetryAfter ?? false, () => retryAfterStage(shutdown)),
    ...when(hstsDirectives.length > 0, () => hstsStage(hstsDirectives)),
    cacheControlStage,
    ...when(goawayChance > 0, () => goawayStage(goawayChance, random)),
    ...when(shutdownWatchTerminationGraceMs > 0, () => watchTerminationStage(deps.watches)),
    waitGroupStage(deps.requests, shutdown),
    requestDeadlineStage(audit, clock, config.requestTimeoutMs),
    timeoutStage(clock),
    warningRecorderStage,
    ...when(corsAllowedOrigins.length > 0, () => corsStage(corsAllowedOrigins)),
    authenticationStage(deps),
    tracingStage(deps.tracer),
    auditStage(audit, clock),
    impersonationStage(deps),
    ...(trace ? [tracedUserStage(trace)] : []),
    flowControl ? priorityAndFairnessStage(flowControl, clock, config.requestTimeoutMs) : maxInFlightStage(config.maxInFlight),
    authorizationStage(deps),
  ]
}

function when(wanted: boolean, stage: () => Stage): Stage[] {
  return wanted ? [stage()] : []
}

export function createPipeline(deps: PipelineDeps, config: PipelineConfig, handler: Handler): Handler {
  return compose(pipelineStages(deps, config), timed(deps.clock, handler))
}

/** The handler is the last entry of a trace. */
function timed(clock: Clock, handler: Handler): Handler {
  return (request) => {
    if (!request.trace) return handler(request)
    const startedMs = clock.monotonicMs()
    return finished(handler, request, (answer, error) => decided(request, 'handler', String(codeOf(answer, error)), clock.monotonicMs() - startedMs))
  }
}
