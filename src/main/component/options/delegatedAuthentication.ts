/**
 * Authentication at a component's own port (L5): the API server reviews tokens, and publishes the accepted authorities.
 * Upstream: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions (v1.36).
 */
import { duration, flag, list, text } from '../../apiserver/options/flags.ts'
import { authoritiesOf, type Followed, readFollowed } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

export interface DelegatedAuthenticationSettings {
  /** Empty: tokens are not reviewed. */
  readonly kubeconfig: string
  readonly skipLookup: boolean
  readonly tolerateLookupFailure: boolean
  readonly tokenTtlMs: number
  /** PEM; absent: as the cluster says. */
  readonly clientCa: Followed<string | undefined>
  readonly requestHeaderCa: Followed<string | undefined>
  readonly requestHeader: {
    readonly allowedNames: readonly string[]
    readonly usernameHeaders: readonly string[]
    readonly uidHeaders: readonly string[]
    readonly groupHeaders: readonly string[]
    readonly extraHeaderPrefixes: readonly string[]
  }
}

export const delegatedAuthentication = optionGroup({
  name: 'Authentication',
  flags: {
    'authentication-kubeconfig': text(
      'A kubeconfig with the right to create tokenreviews; empty: requests with tokens are refused, and no authority is looked up',
    ),
    'authentication-skip-lookup': flag('Do not look up in the cluster what these flags leave open'),
    'authentication-token-webhook-cache-ttl': duration('How long the answer about a token holds', 10_000),
    'authentication-tolerate-lookup-failure': flag('Serve even if that lookup fails; clients with certificates may then be anonymous', true),
    'client-ca-file': text('Who signs certificates of users; empty: as the cluster says'),
    'requestheader-allowed-names': list('Common names that a front proxy may have; none: any that its authority signed'),
    'requestheader-client-ca-file': text('Who signs certificates of front proxies; empty: as the cluster says'),
    'requestheader-extra-headers-prefix': list('How headers begin in which a front proxy tells more of a user', ['x-remote-extra-']),
    'requestheader-group-headers': list('Headers with groups', ['x-remote-group']),
    'requestheader-uid-headers': list('Headers with uids'),
    'requestheader-username-headers': list('Headers with names of users', ['x-remote-user']),
  },
  async settings(values, context): Promise<DelegatedAuthenticationSettings> {
    return {
      kubeconfig: values['authentication-kubeconfig'],
      skipLookup: values['authentication-skip-lookup'],
      tolerateLookupFailure: values['authentication-tolerate-lookup-failure'],
      tokenTtlMs: values['authentication-token-webhook-cache-ttl'],
      clientCa: await readFollowed([values['client-ca-file']], context, authoritiesOf),
      requestHeaderCa: await readFollowed([values['requestheader-client-ca-file']], context, authoritiesOf),
      requestHeader: {
        allowedNames: values['requestheader-allowed-names'],
        usernameHeaders: values['requestheader-username-headers'],
        uidHeaders: values['requestheader-uid-headers'],
        groupHeaders: values['requestheader-group-headers'],
        extraHeaderPrefixes: values['requestheader-extra-headers-prefix'],
      },
    }
  },
})
