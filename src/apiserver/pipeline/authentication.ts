/**
 * Authenticates the request (L3). Authenticators are asked in order; the first that recognizes the credential decides, and a bad credential is
 * refused even where anonymous requests are allowed.
 * Upstream: apiserver/pkg/endpoints/filters/authentication.go.
 */
import { unauthorized } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { AuditSink } from '../audit/sink.ts'
import type { AuthenticationResult, Authenticator } from '../authn/authenticator.ts'
import type { ServerRequest, UserInfo } from '../core/request.ts'
import { decided, type Handler, type Stage } from '../core/stage.ts'
import { auditFailedAuthentication } from './authenticationAudit.ts'
import { authenticationMetrics } from './authenticationMetrics.ts'

export interface AuthenticationStageDeps {
  readonly authenticators: readonly Authenticator[]
  readonly clock: Clock
  readonly metrics: Metrics
  /** Absent: nothing is audited. */
  readonly audit?: AuditSink | undefined
}

export function authenticationStage({ authenticators, clock, metrics, audit }: AuthenticationStageDeps): Stage {
  const recorded = authenticationMetrics(metrics)
  return {
    name: 'authentication',
    handle(request, next) {
      const startedMs = clock.monotonicMs()
      const pass = (result: AuthenticationResult) => {
        const durationMs = clock.monotonicMs() - startedMs
        const user = result?.decision === 'authenticated' ? result.user : undefined
        if (request.trace) decided(request, 'authentication', user?.name ?? 'unauthorized', durationMs)
        recorded.record(user ? 'success' : result ? 'error' : 'failure', durationMs, user?.name)
        if (audit) request.authenticationMs = durationMs
        if (user) return admitted(request, user, next)
        keepNoConnection(request)
        auditFailedAuthentication(audit, request, clock.now())
        throw unauthorized()
      }
      if (request.inProcessUser) {
        if (request.trace) decided(request, 'authentication', request.inProcessUser.name, 0)
        return admitted(request, request.inProcessUser, next)
      }
      const result = authenticate(authenticators, request)
      return result instanceof Promise ? result.then(pass) : pass(result)
    },
  }
}

function admitted(request: ServerRequest, user: UserInfo, next: Handler): ReturnType<Handler> {
  if (isAnonymous(user)) keepNoConnection(request)
  request.user = user
  request.originalUser = user
  return next(request)
}

/** HTTP/2 makes floods cheap: unauthenticated clients get one request per connection. Upstream: UnauthenticatedHTTP2DOSMitigation. */
function keepNoConnection(request: ServerRequest): void {
  if (request.isHttp2 && request.responseHeaders) request.responseHeaders.connection = 'close'
}

function isAnonymous({ name, groups }: UserInfo): boolean {
  return name === 'system:anonymous' || groups.includes('system:unauthenticated')
}

function authenticate(authenticators: readonly Authenticator[], request: ServerRequest, from = 0): Promise<AuthenticationResult> | AuthenticationResult {
  for (let at = from; at < authenticators.length; at++) {
    const result = (authenticators[at] as Authenticator).authenticate(request)
    if (result instanceof Promise) return result.then((late) => late ?? authenticate(authenticators, request, at + 1))
    if (result) return result
  }
  return undefined
}
