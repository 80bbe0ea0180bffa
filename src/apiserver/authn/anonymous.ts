/** Authenticates a request without credentials as system:anonymous (L3). Upstream: apiserver/pkg/authentication/request/anonymous. */
import type { Authenticator } from './authenticator.ts'

/** @param paths the only paths for anonymous requests; absent or none: all */
export function anonymousAuthenticator(paths: readonly string[] = []): Authenticator {
  const allowed = new Set(paths)
  const anonymous = { decision: 'authenticated', user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } } as const
  return { name: 'anonymous', authenticate: (request) => (allowed.size === 0 || allowed.has(request.path) ? anonymous : undefined) }
}
