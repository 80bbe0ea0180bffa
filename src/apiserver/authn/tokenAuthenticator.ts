/** Authenticators of bearer tokens (L3): asked for requests and for TokenReviews. Upstream: apiserver/pkg/authentication/authenticator. */
import type { UserInfo } from '../request.ts'

export type TokenResult =
  | { readonly decision: 'authenticated'; readonly user: UserInfo; readonly audiences: readonly string[] }
  /** It is a token of this kind, and bad. */
  | { readonly decision: 'rejected'; readonly reason: string }
  /** Not a token of this kind. */
  | undefined

export interface TokenAuthenticator {
  readonly name: string
  /** `audiences`: at least one of them must be meant; the result says which. */
  authenticateToken(token: string, audiences: readonly string[]): Promise<TokenResult> | TokenResult
}
