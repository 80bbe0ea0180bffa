/**
 * Assembles the server's security (L3): authentication, authorization, admission, and the tokens and reviews that belong to them.
 * The result fits into ApiServerDeps.
 */
import type { Clock } from '#base/clock'
import type { FeatureGateSettings } from '#base/featureGates'
import { type Logger, noLog } from '#base/log'
import { type Metrics, noMetrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { Transport } from '#client/transport'
import type { AdmissionPlugin } from './admission/admission.ts'
import { createAdmissionMetrics } from './admission/admissionMetrics.ts'
import { createAdmissionPlugins } from './admission/plugins/index.ts'
import { createPolicyMetrics } from './admission/policy/policyMetrics.ts'
import { policyEnforcement } from './admission/policyEnforcement.ts'
import type { AdmissionSettings } from './admission/settings.ts'
import { resolveService } from './aggregation/serviceResolver.ts'
import { createAuthentication } from './authn/authentication.ts'
import type { Authenticator } from './authn/authenticator.ts'
import { type AuthenticationSettings, defaultAuthentication, standardRequestHeaders } from './authn/settings.ts'
import { createAuthorization } from './authz/authorization.ts'
import type { Authorizer } from './authz/authorizer.ts'
import { reconcileBootstrapPolicy } from './authz/bootstrapPolicy/reconcile.ts'
import { type AuthorizationSettings, defaultAuthorization } from './authz/settings.ts'
import type { Reach } from './backends/reach.ts'
import type { ComputedResource, TokenIssuer } from './core/computedResource.ts'
import type { ObjectReader } from './core/objectReader.ts'
import type { Page } from './core/page.ts'
import { accessReviews } from './reviews/accessReviews.ts'
import { identityReviews } from './reviews/identityReviews.ts'
import type { ExternalSigner } from './tokens/externalSigner.ts'

export interface SecurityDeps {
  /** registry.reader. */
  readonly reader: ObjectReader
  /** registry.cacher.waitUntilCurrent; absent: the reader always has the newest write, also those of other servers. */
  readonly waitUntilCurrent?: (() => Promise<void> | undefined) | undefined
  readonly clock: Clock
  /** The clock for waits of requests within admission; absent: `clock`. */
  readonly requestClock?: Clock | undefined
  readonly random: Random
  readonly log?: Logger | undefined
  readonly metrics?: Metrics | undefined
  /** Makes spans of calls to webhooks. Absent: none. */
  readonly tracer?: Tracer | undefined
  /** PEM, private: signs service account tokens, unless the settings name a key. */
  readonly serviceAccountKey: string
  /** Host and port at which clients outside reach this server; absent: unknown. */
  readonly externalAddress?: string | undefined
  /** How connections to webhooks at addresses of the cluster are made; absent: by this process. */
  readonly reach?: Reach | undefined
  /** Signs tokens and supplies the verification keys, in place of key files. */
  readonly externalSigner?: ExternalSigner | undefined
  /** Settings of the authenticators; absent: those of a server without flags. */
  readonly authentication?: AuthenticationSettings | undefined
  /** Settings of the authorizers; absent: the node authorizer and RBAC. */
  readonly authorization?: AuthorizationSettings | undefined
  /** Settings of the admission plugins; absent: as in kubeadm. */
  readonly admission?: AdmissionSettings | undefined
  /** Values of --feature-gates; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
  /** Common names of trusted front proxies, unless the settings have them; empty: any name signed by their authority. Absent: none is trusted. */
  readonly frontProxyNames?: readonly string[] | undefined
}

export interface Security {
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  readonly admission: readonly AdmissionPlugin[]
  readonly tokens: TokenIssuer
  readonly computedResources: readonly ComputedResource[]
  /** Receives the server's in-process transport; called before the first request. */
  connect(transport: Transport): void
  /** RBAC's bootstrap policy. */
  readonly postStartHooks: readonly ((transport: Transport, signal: AbortSignal) => Promise<void>)[]
  /** The token issuer's discovery document and keys. */
  readonly pages: readonly Page[]
}

/** Spread the result into createApiServer's deps. */
export function createSecurity(deps: SecurityDeps): Security {
  const {
    reader,
    clock,
    requestClock = clock,
    random,
    log = noLog,
    metrics = noMetrics,
    serviceAccountKey,
    externalSigner,
    externalAddress,
    waitUntilCurrent,
    tracer,
    featureGates,
  } = deps
  const authentication = createAuthentication(
    { reader, clock, random, log, metrics, serviceAccountKey, externalSigner, externalAddress, waitUntilCurrent },
    authenticationSettings(deps),
  )
  const authorization = createAuthorization({ reader, clock, random, log, metrics, featureGates }, deps.authorization ?? defaultAuthorization)
  const { authorizers, rbac } = authorization
  const admissionMetrics = createAdmissionMetrics(metrics)
  const loopback = createLoopback()
  return {
    authenticators: authentication.authenticators,
    authorizers,
    admission: [
      ...createAdmissionPlugins(
        {
          reader,
          random,
          clock: requestClock,
          metrics,
          rbac,
          authorizers,
          transport: loopback.transport,
          policies: { reader, authorizers, clock, metrics: admissionMetrics, policyMetrics: createPolicyMetrics(metrics) },
          webhooks: {
            deps: { reader, authorizers, random, clock: requestClock, metrics: admissionMetrics, tracer },
            resolve: (namespace, name, port) => resolveService(reader, random, { namespace, name, port }),
            reach: deps.reach,
          },
        },
        deps.admission,
      ),
      policyEnforcement(reader),
    ],
    tokens: authentication.tokens,
    computedResources: [...accessReviews(authorizers), ...identityReviews(authentication.tokenAuthenticators, authentication.apiAudiences)],
    connect(transport) {
      loopback.connect(transport)
      authentication.connect(transport)
    },
    postStartHooks: [
      (transport, signal) => reconcileBootstrapPolicy(transport, signal, featureGates),
      authentication.start,
      async (_transport, signal) => authorization.start(signal),
    ],
    pages: authentication.pages,
  }
}

/** The server's way to itself, which it has once it is assembled. */
function createLoopback() {
  let own: Transport | undefined
  return {
    transport: () => own,
    connect: (transport: Transport) => {
      own = transport
    },
  }
}

function authenticationSettings({ authentication = defaultAuthentication, frontProxyNames }: SecurityDeps): AuthenticationSettings {
  if (authentication.requestHeader || !frontProxyNames) return authentication
  return { ...authentication, requestHeader: { ...standardRequestHeaders, allowedNames: frontProxyNames } }
}
