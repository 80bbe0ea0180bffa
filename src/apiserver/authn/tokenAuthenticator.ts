/** Authenticators of bearer tokens (L3): asked for requests and for TokenReviews. Upstream: apiserver/pkg/authentication/authenticator. */
import type { Cancellation } from '../core/cancellation.ts'
import type { UserInfo } from '../core/request.ts'

/** What an authenticator adds to its decision: warnings for the client, and annotations of the audit event by key. */
export interface TokenRemarks {
  readonly warnings?: readonly string[] | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

export type TokenResult =
  | ({ readonly decision: 'authenticated'; readonly user: UserInfo; readonly audiences: readonly string[] } & TokenRemarks)
  /** It is a token of this kind, and bad. */
  | ({ readonly decision: 'rejected'; readonly reason: string } & TokenRemarks)
  /** Not a token of this kind. */
  | undefined

export interface TokenAuthenticator {
  readonly name: string
  /**
   * @param audiences accepted audiences: the token must be meant for at least one; the result lists those that it is meant for
   * @param cancellation ends the waits that the token causes
   */
  authenticateToken(token: string, audiences: readonly string[], cancellation?: Pick<Cancellation, 'signal'>): Promise<TokenResult> | TokenResult
}

/** Wraps an authenticator whose tokens have no audiences: they are meant for the API server's own. Upstream: authenticator/audagnostic.go. */
export function audienceAgnostic(
  name: string,
  apiAudiences: readonly string[],
  identify: (token: string) => Promise<UserInfo | Refusal | undefined> | UserInfo | Refusal | undefined,
): TokenAuthenticator {
  const resultOf = (found: UserInfo | Refusal | undefined, audiences: readonly string[]): TokenResult => {
    if (found instanceof Refusal) return { decision: 'rejected', reason: found.reason }
    return found && { decision: 'authenticated', user: found, audiences }
  }
  return {
    name,
    authenticateToken(token, wanted) {
      const audiences = wanted === apiAudiences ? apiAudiences : apiAudiences.filter((one) => wanted.includes(one))
      if (audiences.length === 0) return undefined
      const found = identify(token)
      return found instanceof Promise ? found.then((late) => resultOf(late, audiences)) : resultOf(found, audiences)
    },
  }
}

/** The reason why a token of the authenticator's kind is refused. */
export class Refusal {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}
