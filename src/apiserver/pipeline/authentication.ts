/**
 * Finds out who asks (L3). Authenticators are asked in order; the first that knows the credential decides, and a bad credential is
 * refused even where anonymous requests are allowed.
 * Upstream: apiserver/pkg/endpoints/filters/authentication.go.
 */
import { unauthorized } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AuthenticationResult, Authenticator } from '../authn/authenticator.ts'
import type { ServerRequest, UserInfo } from '../request.ts'
import type { AuditSink } from './audit.ts'
import { auditFailedAuthentication } from './authenticationAudit.ts'
import { decided, type Stage } from './stage.ts'

export function authenticationStage(authenticators: readonly Authenticator[], clock: Clock, audit?: AuditSink): Stage {
  return {
    name: 'authentication',
    handle(request, next) {
      const startedMs = request.trace ? clock.monotonicMs() : 0
      const pass = (user: UserInfo | undefined) => {
        if (request.trace) decided(request, 'authentication', user?.name ?? 'unauthorized', clock.monotonicMs() - startedMs)
        if (!user) {
          keepNoConnection(request)
          auditFailedAuthentication(audit, request, clock.now())
          throw unauthorized()
        }
        if (isAnonymous(user)) keepNoConnection(request)
        request.user = user
        request.originalUser = user
        return next(request)
      }
      const user = request.inProcessUser ?? authenticate(authenticators, request)
      return user instanceof Promise ? user.then(pass) : pass(user)
    },
  }
}

/** HTTP/2 lends itself to floods: those whom nobody knows get one request per connection. Upstream: UnauthenticatedHTTP2DOSMitigation. */
function keepNoConnection(request: ServerRequest): void {
  if (request.isHttp2 && request.responseHeaders) request.responseHeaders.connection = 'close'
}

function isAnonymous({ name, groups }: UserInfo): boolean {
  return name === 'system:anonymous' || groups.includes('system:unauthenticated')
}

function authenticate(authenticators: readonly Authenticator[], request: ServerRequest, from = 0): Promise<UserInfo | undefined> | UserInfo | undefined {
  for (let at = from; at < authenticators.length; at++) {
    const result = (authenticators[at] as Authenticator).authenticate(request)
    if (result instanceof Promise) return result.then((late) => (late ? userOf(late) : authenticate(authenticators, request, at + 1)))
    if (result) return userOf(result)
  }
  return undefined
}

function userOf(result: NonNullable<AuthenticationResult>): UserInfo | undefined {
  return result.decision === 'authenticated' ? result.user : undefined
}
