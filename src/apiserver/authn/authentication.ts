/**
 * Assembles authentication (L3): all authenticators in upstream's order, the issuer of service account tokens, and the documents to verify these.
 * `start` begins the work that needs the running server: recording the use of tokens.
 * Upstream: pkg/kubeapiserver/authenticator/config.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { TokenIssuer } from '../core/computedResource.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { Page } from '../core/page.ts'
import { keySetPath, tokenDocuments } from '../tokens/discovery.ts'
import type { ExternalSigner } from '../tokens/externalSigner.ts'
import { createTokenIssuer, keySigner, type TokenSigner } from '../tokens/issuer.ts'
import { type KeySet, staticKeys } from '../tokens/keySet.ts'
import { signingKey, verificationKeys } from '../tokens/keys.ts'
import { anonymousAuthenticator } from './anonymous.ts'
import type { Authenticator } from './authenticator.ts'
import { bearerTokenAuthenticator } from './bearerToken.ts'
import { bootstrapTokenAuthenticator } from './bootstrapToken.ts'
import { boundClaims } from './boundClaims.ts'
import { legacyClaims, legacyIssuer } from './legacyClaims.ts'
import { keepTrackingSince, secretUseRecorder } from './legacyTokenTracking.ts'
import { oidcMetrics } from './oidc/metrics.ts'
import { type JwtSettings, type ReloadingAuthenticators, reloadingAuthenticators } from './oidc/reloadingAuthenticators.ts'
import { requestHeaderAuthenticator } from './requestHeader.ts'
import { serviceAccountAuthenticator } from './serviceAccount.ts'
import type { AuthenticationSettings, ServiceAccountSettings } from './settings.ts'
import { type SharedWait, sharedWait } from './sharedWait.ts'
import type { TokenAuthenticator } from './tokenAuthenticator.ts'
import { cachedTokens } from './tokenCache.ts'
import { tokenFileAuthenticator } from './tokenFile.ts'
import { unionAuthenticator } from './union.ts'
import { type WebhookTokenSettings, webhookTokenAuthenticator } from './webhookToken.ts'
import { x509Authenticator } from './x509.ts'

/** Upstream: TokenSuccessCacheTTL. */
const tokenSuccessTtlMs = 10_000

export interface AuthenticationDeps {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Private key as PEM; signs service account tokens unless the settings have another. */
  readonly serviceAccountKey: string
  /** Host and port at which clients outside reach this server; absent: unknown. */
  readonly externalAddress?: string | undefined
  /** Signs in place of a local key. */
  readonly externalSigner?: ExternalSigner | undefined
  /** Resolves when the reader has all that was written before the call, also by other servers. Absent: it always has. */
  readonly waitUntilCurrent?: (() => Promise<void> | undefined) | undefined
}

export interface Authentication {
  readonly authenticators: readonly Authenticator[]
  readonly tokenAuthenticators: readonly TokenAuthenticator[]
  readonly apiAudiences: readonly string[]
  readonly tokens: TokenIssuer
  /** The token issuer's discovery document and keys. */
  readonly pages: readonly Page[]
  /** Receives the server's in-process transport; called before the first request. */
  connect(transport: Transport): void
  /** Begins what needs the running server; what it begins ends with the signal. */
  start(transport: Transport, signal: AbortSignal): Promise<void>
}

export function createAuthentication(deps: AuthenticationDeps, settings: AuthenticationSettings): Authentication {
  const { reader, clock, metrics, log, waitUntilCurrent } = deps
  const accounts = settings.serviceAccounts
  const apiAudiences = settings.apiAudiences?.length ? settings.apiAudiences : accounts.issuers
  const { externalSigner } = deps
  const { signer, keySet } = externalSigner ?? ownKeys(deps, accounts)
  let writer: Transport | undefined
  let isStarted = false
  const recordUse = secretUseRecorder(() => writer, log)
  const jwt = settings.jwt && jwtAuthenticators(deps, settings.jwt, apiAudiences, accounts.issuers)
  const tokenAuthenticators: readonly TokenAuthenticator[] = [
    ...(settings.tokenFile ? [tokenFileAuthenticator(settings.tokenFile, apiAudiences)] : []),
    ...serviceAccountAuthenticators(deps, { accounts, keySet, apiAudiences, recordUse, catchUp: waitUntilCurrent && sharedWait(waitUntilCurrent) }),
    ...(settings.bootstrapTokens ? [bootstrapTokenAuthenticator(reader, clock, apiAudiences)] : []),
    // After those of service accounts: these are local, while an issuer may have to be called.
    ...(jwt ? [cachedTokens(jwt, { clock, metrics, successTtlMs: tokenSuccessTtlMs, failureTtlMs: 0, cachesErrors: true })] : []),
    ...(settings.webhook ? [webhookTokens(deps, settings.webhook, apiAudiences)] : []),
  ]
  const { requestHeader, anonymous } = settings
  return {
    authenticators: [
      unionAuthenticator([
        ...(requestHeader ? [requestHeaderAuthenticator(clock, requestHeader)] : []),
        x509Authenticator(clock, metrics),
        bearerTokenAuthenticator(tokenAuthenticators, apiAudiences),
      ]),
      ...(anonymous ? [anonymousAuthenticator(anonymous.paths)] : []),
    ],
    tokenAuthenticators,
    apiAudiences,
    tokens: createTokenIssuer({
      ...accounts,
      reader,
      clock,
      signer,
      issuer: accounts.issuers[0] ?? '',
      audiences: apiAudiences,
      signerMaxExpirationSeconds: externalSigner?.maxExpirationSeconds,
    }),
    pages: tokenDocuments(accounts.issuers[0] ?? '', accounts.jwksUri ?? keySetUrlAt(deps.externalAddress), keySet),
    connect(transport) {
      writer = transport
    },
    async start(transport, signal) {
      if (!isStarted) {
        jwt?.start(signal)
        void externalSigner?.run(signal)
      }
      isStarted = true
      await keepTrackingSince(transport, clock, signal)
    },
  }
}

const keySetUrlAt = (address: string | undefined) => address && `https://${address}${keySetPath}`

/** Signs and verifies with local keys; used where no external signer is configured. */
function ownKeys({ serviceAccountKey }: AuthenticationDeps, accounts: ServiceAccountSettings): { readonly signer: TokenSigner; readonly keySet: KeySet } {
  const key = signingKey(accounts.signingKey ?? serviceAccountKey)
  return { signer: keySigner(key), keySet: staticKeys(accounts.keys?.flatMap(verificationKeys) ?? [key]) }
}

function jwtAuthenticators(
  { clock, log, metrics }: AuthenticationDeps,
  jwt: JwtSettings,
  apiAudiences: readonly string[],
  disallowedIssuers: readonly string[],
): ReloadingAuthenticators {
  const deps = { clock, log, metrics: oidcMetrics(metrics, clock, serverId), apiAudiences, algorithms: jwt.algorithms }
  return reloadingAuthenticators(deps, jwt, disallowedIssuers)
}

/** Caches acceptances and refusals for the configured time. */
function webhookTokens(deps: AuthenticationDeps, webhook: WebhookTokenSettings, apiAudiences: readonly string[]): TokenAuthenticator {
  const ttl = { successTtlMs: webhook.cacheTtlMs, failureTtlMs: webhook.cacheTtlMs, cachesErrors: false }
  return cachedTokens(webhookTokenAuthenticator(deps, webhook, apiAudiences), { clock: deps.clock, metrics: deps.metrics, ...ttl })
}

/** There is one API server. */
const serverId = 'kube-apiserver'

interface AccountParts {
  readonly catchUp: SharedWait | undefined
  readonly accounts: ServiceAccountSettings
  readonly keySet: KeySet
  readonly apiAudiences: readonly string[]
  readonly recordUse: Parameters<typeof legacyClaims>[0]['recordUse']
}

/** One for legacy tokens of secrets, one for tokens of the TokenRequest API. */
function serviceAccountAuthenticators(
  { reader, clock, metrics }: AuthenticationDeps,
  { accounts, keySet, apiAudiences, recordUse, catchUp }: AccountParts,
): readonly TokenAuthenticator[] {
  const legacyTokens = metrics.counter({ name: 'serviceaccount_legacy_tokens_total', help: 'How many tokens out of secrets were used.' }).series({})
  const shared = { keySet, apiAudiences, catchUp, onLegacyToken: () => legacyTokens.inc() }
  const { issuers, lookup } = accounts
  return [
    serviceAccountAuthenticator({ ...shared, issuers, claims: boundClaims({ reader, clock, metrics }) }),
    serviceAccountAuthenticator({ ...shared, issuers: [legacyIssuer], claims: legacyClaims({ reader, clock, metrics, lookup, recordUse }) }),
  ]
}
