/**
 * Finds out who asks (L3). Authenticators are asked in order; the first that knows the credential decides, and a bad credential is
 * refused even where anonymous requests are allowed.
 * Upstream: apiserver/pkg/endpoints/filters/authentication.go.
 */
import { unauthorized } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Authenticator } from '../authn/authenticator.ts'
import type { ServerRequest, UserInfo } from '../request.ts'
import type { AuditSink } from './audit.ts'
import { auditFailedAuthentication } from './authenticationAudit.ts'
import { decided, type Stage } from './stage.ts'

export function authenticationStage(authenticators: readonly Authenticator[], clock: Clock, audit?: AuditSink): Stage {
  return {
    name: 'authentication',
    async handle(request, next) {
      const startedMs = clock.monotonicMs()
      const user = request.inProcessUser ?? (await authenticate(authenticators, request))
      decided(request, 'authentication', user?.name ?? 'unauthorized', clock.monotonicMs() - startedMs)
      if (!user) {
        keepNoConnection(request)
        auditFailedAuthentication(audit, request, clock.now())
        throw unauthorized()
      }
      if (isAnonymous(user)) keepNoConnection(request)
      request.user = user
      request.originalUser = user
      return next(request)
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

async function authenticate(authenticators: readonly Authenticator[], request: ServerRequest): Promise<UserInfo | undefined> {
  for (const authenticator of authenticators) {
    const pending = authenticator.authenticate(request)
    const result = pending instanceof Promise ? await pending : pending
    if (result?.decision === 'authenticated') return result.user
    if (result?.decision === 'rejected') return undefined
  }
  return undefined
}
