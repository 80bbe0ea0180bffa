/**
 * Asks several authenticators (L3): the first that authenticates wins; when none does, one bad credential is enough to refuse.
 * So a good token beside a foreign certificate passes, and a bad credential alone never becomes anonymous.
 * Upstream: apiserver/pkg/authentication/request/union.
 */
import type { AuthenticationResult, Authenticator } from './authenticator.ts'

export function unionAuthenticator(authenticators: readonly Authenticator[]): Authenticator {
  return {
    name: 'union',
    async authenticate(request) {
      let refused: AuthenticationResult
      for (const authenticator of authenticators) {
        const pending = authenticator.authenticate(request)
        const result = pending instanceof Promise ? await pending : pending
        if (result?.decision === 'authenticated') return result
        refused ??= result
      }
      return refused
    },
  }
}
