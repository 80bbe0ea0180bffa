/** Lets a request without any credential in as system:anonymous (L3). Upstream: apiserver/pkg/authentication/request/anonymous. */
import type { Authenticator } from './authenticator.ts'

export const anonymousAuthenticator: Authenticator = {
  name: 'anonymous',
  authenticate: () => ({ decision: 'authenticated', user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } }),
}
