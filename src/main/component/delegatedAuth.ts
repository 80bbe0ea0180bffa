/**
 * Who asks at a component's port, and whether they may (L5): certificates are judged here, tokens and rights by the API server. Whoever shows
 * nothing is anonymous. Upstream: apiserver/pkg/authentication/authenticatorfactory/delegating.go, authorizerfactory/delegating.go (v1.36).
 */

import type { TokenReview } from '#api/gen/types/authentication.v1'
import { anonymousAuthenticator } from '#apiserver/authn/anonymous'
import { withAuthenticatedGroup } from '#apiserver/authn/authenticatedGroup'
import type { Authenticator } from '#apiserver/authn/authenticator'
import { bearerTokenAuthenticator } from '#apiserver/authn/bearerToken'
import { requestHeaderAuthenticator } from '#apiserver/authn/requestHeader'
import type { TokenAuthenticator } from '#apiserver/authn/tokenAuthenticator'
import { cachedTokens } from '#apiserver/authn/tokenCache'
import { unionAuthenticator } from '#apiserver/authn/union'
import { x509Authenticator } from '#apiserver/authn/x509'
import type { Authorizer } from '#apiserver/authz/authorizer'
import { webhookAuthorizerMetrics } from '#apiserver/authz/metrics'
import { privilegedGroupAuthorizer } from '#apiserver/authz/privilegedGroup'
import { webhookAuthorizer } from '#apiserver/authz/webhook'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { tokenReviews } from '#client/builtIn'
import type { Client } from '#client/client'
import type { ProcessTools } from '../layouts/processTools.ts'
import type { ApiAccess } from './access.ts'
import type { ClusterTrust } from './clusterTrust.ts'
import type { DelegatedAuthorizationSettings } from './options/delegatedAuthorization.ts'

const tokenTimeoutMs = 10_000

/** @param client asked about tokens; undefined: all are refused */
export function delegatedAuthenticators(
  client: Client | undefined,
  trust: ClusterTrust,
  tokenTtlMs: number,
  { clock, metrics }: ProcessTools,
): readonly Authenticator[] {
  const ttl = { successTtlMs: tokenTtlMs, failureTtlMs: tokenTtlMs, cachesErrors: false }
  const tokens = client ? [cachedTokens(reviewedTokens(client, clock), { clock, metrics, ...ttl })] : []
  // Made for each request: which headers count may change with the cluster.
  const frontProxy: Authenticator = {
    name: 'requestheader',
    authenticate: (request) => requestHeaderAuthenticator(clock, trust.requestHeader()).authenticate(request),
  }
  return [unionAuthenticator([frontProxy, x509Authenticator(clock), bearerTokenAuthenticator(tokens, [])]), anonymousAuthenticator()]
}

function reviewedTokens(client: Client, clock: Clock): TokenAuthenticator {
  return {
    name: 'tokenreview',
    async authenticateToken(token) {
      using limit = deadlineScope({ clock, ms: tokenTimeoutMs })
      try {
        const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } }
        const { status } = await client.of<TokenReview>(tokenReviews).create(review, { signal: limit.signal })
        if (!status?.authenticated) return status?.error ? { decision: 'rejected', reason: status.error } : undefined
        const { username = '', uid, groups = [], extra } = status.user ?? {}
        const user = { name: username, ...(uid ? { uid } : {}), groups: [...groups], ...(extra ? { extra } : {}) }
        return { decision: 'authenticated', audiences: [], user: withAuthenticatedGroup(user) }
      } catch (error) {
        return { decision: 'rejected', reason: (error as Error).message }
      }
    },
  }
}

/** Time-out of one attempt. */
const accessTimeoutMs = 10_000
const accessReviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

/** @param access undefined: no reviews, only the open paths are allowed */
export function delegatedAuthorizers(access: ApiAccess | undefined, settings: DelegatedAuthorizationSettings, tools: ProcessTools): readonly Authorizer[] {
  const own = [privilegedGroupAuthorizer, openPaths(settings.alwaysAllowPaths)]
  if (!access) return own
  const { server } = access.transport
  const asked = webhookAuthorizer(
    { ...tools, metrics: webhookAuthorizerMetrics(tools.metrics, 'delegated') },
    {
      ...settings,
      transport: { ...access.transport, server: `${server.replace(/\/+$/, '')}${accessReviews}` },
      version: 'v1',
      timeoutMs: accessTimeoutMs,
      decisionOnError: 'noOpinion',
      conditions: [],
    },
  )
  return [...own, asked]
}

function openPaths(paths: readonly string[]): Authorizer {
  const rules = paths.map((path) => path.replace(/^\/?/, '/'))
  const isOpen = (path: string) => rules.some((rule) => (rule.endsWith('*') ? path.startsWith(rule.slice(0, -1)) : path === rule))
  return {
    name: 'path',
    authorize: ({ isResourceRequest, path }) =>
      !isResourceRequest && isOpen(path) ? { decision: 'allow', reason: '' } : { decision: 'noOpinion', reason: '' },
  }
}
