/** SelfSubjectReview and TokenReview (L3). Upstream: pkg/registry/authentication/{selfsubjectreview,tokenreview} (v1.36). */
import type { SelfSubjectReview, TokenReview, UserInfo as WireUser } from '#api/gen/types/authentication.v1'
import { badRequest } from '#api/machinery/status'
import { authenticateToken } from '../authn/bearerToken.ts'
import type { TokenAuthenticator } from '../authn/tokenAuthenticator.ts'
import type { ComputedResource } from '../core/computedResource.ts'
import { aggregateReasons } from '../core/reasons.ts'
import type { UserInfo } from '../core/request.ts'

const group = 'authentication.k8s.io'
const version = 'v1'
const unknownToken = 'invalid bearer token'

export function identityReviews(tokens: readonly TokenAuthenticator[], apiAudiences: readonly string[]) {
  const selfSubjectReview: ComputedResource<SelfSubjectReview> = {
    group,
    version,
    resource: 'selfsubjectreviews',
    create: ({ object, user }) => ({ ...object, status: { userInfo: wireUser(user) } }),
  }
  const tokenReview: ComputedResource<TokenReview> = {
    group,
    version,
    resource: 'tokenreviews',
    async create({ object, signal }) {
      if (!object.spec.token) throw badRequest('token is required for TokenReview in authentication')
      const wanted = object.spec.audiences
      const result = await authenticateToken(tokens, object.spec.token, wanted?.length ? wanted : apiAudiences, { signal })
      if (result?.decision !== 'authenticated') {
        // The loopback client's authenticator, which upstream asks first, does not know the token either.
        const error = aggregateReasons([unknownToken, result?.reason ?? unknownToken])
        return { ...object, status: { user: {}, error } }
      }
      // The audiences that the token is meant for are returned only to a caller that named audiences.
      const audiences = wanted?.length ? [...result.audiences] : [...apiAudiences]
      return { ...object, status: { authenticated: true, user: wireUser(result.user), audiences } }
    },
  }
  return [selfSubjectReview, tokenReview] as unknown as ComputedResource[]
}

function wireUser({ name, uid, groups, extra }: UserInfo): WireUser {
  return {
    username: name,
    ...(uid ? { uid } : {}),
    groups: [...groups],
    ...(extra ? { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) } : {}),
  }
}
