/**
 * Asks several authenticators (L3): the first that authenticates wins; when none does, one bad credential is enough to refuse.
 * So a good token together with a foreign certificate passes, and a bad credential alone never becomes anonymous.
 * Upstream: apiserver/pkg/authentication/request/union, pkg/authentication/token/union.
 */
import { aggregateReasons } from '../core/reasons.ts'
import type { Authenticator } from './authenticator.ts'

export function unionAuthenticator(authenticators: readonly Authenticator[]): Authenticator {
  return {
    name: 'union',
    authenticate: (request) => firstThatAuthenticates(authenticators, (authenticator) => authenticator.authenticate(request)),
  }
}

type Decision = { readonly decision: 'authenticated' } | { readonly decision: 'rejected'; readonly reason: string } | undefined

/** Asks one after the other. Awaits only promises, so that local credentials cost no turn of the event loop. */
export function firstThatAuthenticates<A, R extends Decision>(
  authenticators: readonly A[],
  ask: (authenticator: A) => Promise<R> | R,
  from = 0,
  refusedBefore?: R,
): Promise<R> | R {
  let refused = refusedBefore
  for (let at = from; at < authenticators.length; at++) {
    const result = ask(authenticators[at] as A)
    if (result instanceof Promise) {
      return result.then((late) =>
        late?.decision === 'authenticated' ? late : firstThatAuthenticates(authenticators, ask, at + 1, bothReasons(refused, late)),
      )
    }
    if (result?.decision === 'authenticated') return result
    refused = bothReasons(refused, result)
  }
  return refused as R
}

function bothReasons<R extends Decision>(before: R | undefined, refused: R): R {
  if (before?.decision !== 'rejected' || refused?.decision !== 'rejected') return before ?? refused
  return { ...refused, reason: aggregateReasons([before.reason, refused.reason]) }
}
