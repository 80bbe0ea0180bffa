/**
 * Audits a request that could not be authenticated (L3): the kinds of credentials it carried, never their contents.
 * Upstream: apiserver/pkg/endpoints/filters/authn_audit.go.
 */
import type { AuditSink } from '../audit/sink.ts'
import type { ServerRequest } from '../core/request.ts'
import { auditRefusal } from './audit.ts'

export function auditFailedAuthentication(sink: AuditSink | undefined, request: ServerRequest, nowMs: number): void {
  auditRefusal(sink, request, nowMs, { message: describeAttempt(request), code: 401 })
}

function describeAttempt({ headers, query, peerCertificate }: ServerRequest): string {
  const authorization = typeof headers.authorization === 'string' ? headers.authorization.trim() : ''
  const scheme = authorization.includes(' ') ? authorization.slice(0, authorization.indexOf(' ')).toLowerCase() : ''
  const attempted = [
    scheme === 'basic' ? 'basic' : '',
    scheme === 'bearer' ? 'bearer' : '',
    query.get('access_token')?.trim() ? 'access_token' : '',
    peerCertificate ? 'x509' : '',
  ].filter((method) => method !== '')
  return attempted.length > 0 ? `Authentication failed, attempted: ${attempted.join(', ')}` : 'Authentication failed, no credentials provided'
}
