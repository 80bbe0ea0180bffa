/**
 * The server's security put together (L3): who asks, what they may, what is admitted, and the tokens and reviews that go with it.
 * The result fits into ApiServerDeps.
 */
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { AdmissionPlugin, ObjectReader } from './admission/admission.ts'
import { createAdmissionPlugins } from './admission/plugins/index.ts'
import type { Answer } from './answer.ts'
import { anonymousAuthenticator } from './authn/anonymous.ts'
import type { Authenticator } from './authn/authenticator.ts'
import { bearerTokenAuthenticator } from './authn/bearerToken.ts'
import { bootstrapTokenAuthenticator } from './authn/bootstrapToken.ts'
import { requestHeaderAuthenticator } from './authn/requestHeader.ts'
import { serviceAccountAuthenticator } from './authn/serviceAccount.ts'
import { unionAuthenticator } from './authn/union.ts'
import { x509Authenticator } from './authn/x509.ts'
import type { Authorizer } from './authz/authorizer.ts'
import { reconcileBootstrapPolicy } from './authz/bootstrapPolicy/reconcile.ts'
import { nodeAuthorizer } from './authz/node.ts'
import { privilegedGroupAuthorizer } from './authz/privilegedGroup.ts'
import { rbacAuthorizer } from './authz/rbac.ts'
import type { TokenIssuer, VirtualResource } from './endpoints/virtualResource.ts'
import type { ServerRequest } from './request.ts'
import { accessReviews } from './reviews/accessReviews.ts'
import { identityReviews } from './reviews/identityReviews.ts'
import { discoveryDocument, discoveryPath, keySet, keySetPath } from './tokens/discovery.ts'
import { createTokenIssuer } from './tokens/issuer.ts'
import { signingKey, verificationKey } from './tokens/keys.ts'

export interface SecurityDeps {
  /** registry.reader. */
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly random: Random
  /** PEM, private: signs service account tokens (--service-account-signing-key-file). */
  readonly serviceAccountKey: string
  /** More keys, PEM, whose tokens are accepted, for rotation (--service-account-key-file). */
  readonly moreVerificationKeys?: readonly string[] | undefined
  /** Default https://kubernetes.default.svc.cluster.local (--service-account-issuer). */
  readonly issuer?: string | undefined
  /** Default: the issuer (--api-audiences). */
  readonly audiences?: readonly string[] | undefined
  /** Where the key set is served, as clients outside reach it; default: below the issuer. */
  readonly keySetUrl?: string | undefined
  /** Common names of front proxies (--requestheader-allowed-names); empty: any that their authority signed. Absent: none is believed. */
  readonly frontProxyNames?: readonly string[] | undefined
  /** Default true (--anonymous-auth). */
  readonly anonymous?: boolean | undefined
}

export interface Security {
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  readonly admission: readonly AdmissionPlugin[]
  readonly tokens: TokenIssuer
  readonly virtualResources: readonly VirtualResource[]
  /** RBAC's bootstrap policy. */
  readonly postStartHooks: readonly ((transport: Transport, signal: AbortSignal) => Promise<void>)[]
  /** The token issuer's discovery document and keys. */
  readonly documents: (request: ServerRequest) => Answer | undefined
}

const defaultIssuer = 'https://kubernetes.default.svc.cluster.local'

/** Spread the result into createApiServer's deps. */
export function createSecurity(deps: SecurityDeps): Security {
  const { reader, clock, random, issuer = defaultIssuer, audiences = [issuer] } = deps
  const key = signingKey(deps.serviceAccountKey)
  const keys = [key, ...(deps.moreVerificationKeys ?? []).map(verificationKey)]
  const tokenAuthenticators = [serviceAccountAuthenticator({ reader, clock, keys, issuers: [issuer] }), bootstrapTokenAuthenticator(reader, clock)]
  const rbac = rbacAuthorizer(reader)
  const authorizers = [privilegedGroupAuthorizer, nodeAuthorizer(reader), rbac]
  const documents: Readonly<Record<string, object>> = {
    [discoveryPath]: discoveryDocument(issuer, deps.keySetUrl ?? `${issuer}${keySetPath}`, keys),
    [keySetPath]: keySet(keys),
  }
  return {
    authenticators: [
      unionAuthenticator([
        ...(deps.frontProxyNames ? [requestHeaderAuthenticator(clock, deps.frontProxyNames)] : []),
        x509Authenticator(clock),
        bearerTokenAuthenticator(tokenAuthenticators, audiences),
      ]),
      ...(deps.anonymous === false ? [] : [anonymousAuthenticator]),
    ],
    authorizers,
    admission: createAdmissionPlugins({ reader, random, clock, rbac: { authorizer: rbac, authorizers } }),
    tokens: createTokenIssuer({ reader, clock, key, issuer, audiences }),
    virtualResources: [...accessReviews(authorizers), ...identityReviews(tokenAuthenticators, audiences)],
    postStartHooks: [reconcileBootstrapPolicy],
    documents({ path }) {
      const value = documents[path]
      if (!value) return undefined
      const contentType = path === keySetPath ? 'application/jwk-set+json' : 'application/json'
      return { type: 'bytes', status: 200, contentType, bytes: Buffer.from(JSON.stringify(value)), headers: { 'cache-control': 'public, max-age=3600' } }
    },
  }
}
