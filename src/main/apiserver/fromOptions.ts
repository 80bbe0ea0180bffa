/**
 * Makes the arguments of createApiServer from kube-apiserver's flags (L5): one place for the local cluster, the component
 * alone, and tests.
 */
import { gatesOfOptional, optionalResources, resourceKey } from '#api/discovery/resources'
import { formatDuration } from '#api/machinery/duration'
import type { Trust } from '#apiserver/aggregation/trustConfigMap'
import type { ApiServerConfig, ApiServerDeps } from '#apiserver/apiServer'
import { type AuthenticationSettings, standardRequestHeaders } from '#apiserver/authn/settings'
import type { BuiltInRegistryDeps } from '#apiserver/builtInRegistry'
import { createEncryption, type Encryption, type EncryptionDeps } from '#apiserver/encryption/encryption'
import { createSecurity, type SecurityDeps } from '#apiserver/security'
import type { ClientAuthorities } from '#apiserver/server/peerCertificate'
import type { ServingTls } from '#apiserver/server/servingTls'
import { createExternalSigner, type ExternalSigner, type ExternalSignerDeps } from '#apiserver/tokens/externalSigner'
import { ownValue } from '#base/bareMap'
import { announceFeatures, featureEnabled } from '#base/featureGates'
import { type Logger, noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { profiling } from '../component/profiling.ts'
import { auditFromOptions } from './auditFromOptions.ts'
import type { ServerOptions } from './options/index.ts'
import type { Followed } from './options/namedFiles.ts'
import { namedCertificates } from './options/secureServing.ts'

const identityGate = 'APIServerIdentity'
/** Read by the validation of HorizontalPodAutoscalers. */
const scaleToZeroGate = 'HPAScaleToZero'
const unsafeDeletionGate = 'AllowUnsafeMalformedObjectDeletion'
/** Read by the registry, the bootstrap policy, the Node authorizer and the rules of pods. */
const resourceGates = ['ClusterTrustBundle', 'ClusterTrustBundleProjection', 'PodCertificateRequest', 'StorageVersionMigrator']

export type OptionDeps = Pick<
  ApiServerDeps,
  'authenticators' | 'authorizers' | 'admission' | 'tokens' | 'computedResources' | 'connect' | 'postStartHooks' | 'pages' | 'audit'
>

/** Another server may write to the store. */
type GivenDeps = SecurityDeps & { readonly waitUntilCurrent: NonNullable<SecurityDeps['waitUntilCurrent']> }

/** @param given what the composition root decides itself: keys, clock, the registry's reader */
export function depsFromOptions(options: ServerOptions, given: GivenDeps): OptionDeps {
  const { clock, random, log = noLog, metrics = noMetrics } = given
  for (const warning of options.storage.warnings) log.warn(warning)
  announceFeatures({ log, metrics }, options.features.featureGates, [unsafeDeletionGate, identityGate, scaleToZeroGate, ...resourceGates])
  for (const { key, gate, isOn } of chosenResources(options))
    if (!isOn) log.warn('A resource is not served, because its feature gate is off', { resource: key, gate })
  const audit = auditFromOptions(options.audit, { clock, random, log: log.with('audit'), metrics })
  const { authorization, admission } = options
  const { featureGates } = options.features
  const externalAddress = externalAddressOf(options.generic.externalHost, given.externalAddress)
  const security = createSecurity({ ...given, externalAddress, authentication: authenticationOf(options, log), authorization, admission, featureGates })
  const profiles = options.generic.profiling ? [profiling(clock)] : []
  return { ...security, pages: [...security.pages, ...profiles], audit }
}

/**
 * Under the mode AlwaysAllow a request without a credential could do everything, so --anonymous-auth has no effect there. Configuration files are
 * taken as they are. Upstream: ApplyAuthorization of pkg/kubeapiserver/options/authentication.go.
 */
function authenticationOf({ authentication, authorization }: ServerOptions, log: Logger): AuthenticationSettings {
  const { settings, isAnonymousByFile } = authentication
  const allowsAlways = !authorization.file && authorization.authorizers.some(({ type }) => type === 'AlwaysAllow')
  if (!settings.anonymous || isAnonymousByFile || !allowsAlways) return settings
  log.warn('Anonymous authentication is off, because the authorization mode AlwaysAllow would let such requests do everything')
  return { ...settings, anonymous: undefined }
}

/** The flag may name a port; else it is the server's own. */
function externalAddressOf(host: string | undefined, own: string | undefined): string | undefined {
  if (host === undefined || /^([^:]+|\[.*\]):\d+$/.test(host)) return host ?? own
  const port = own?.slice(own.lastIndexOf(':')) ?? ''
  return `${host.includes(':') ? `[${host}]` : host}${port}`
}

/** What the registry encrypts with; undefined: nothing is encrypted. It must run before the registry does. @throws Error when the providers cannot be made */
export async function encryptionFromOptions({ encryption }: ServerOptions, deps: Omit<EncryptionDeps, 'connectKms'>): Promise<Encryption | undefined> {
  if (!encryption) return undefined
  // A gRPC library takes its time to load: most servers encrypt nothing.
  const { connectKms } = await import('#grpc/kmsClient')
  return createEncryption({ ...deps, connectKms }, encryption)
}

/** The external signer of service account tokens; undefined when a key signs. @throws Error when it does not answer, or cannot do what the flags want */
export async function signerFromOptions({ authentication }: ServerOptions, deps: Omit<ExternalSignerDeps, 'service'>): Promise<ExternalSigner | undefined> {
  const { signingEndpoint, settings } = authentication
  if (signingEndpoint === undefined) return undefined
  const { connectExternalJwt } = await import('#grpc/externalJwtClient')
  const signer = await createExternalSigner({ ...deps, service: connectExternalJwt(signingEndpoint) })
  const { maxExpirationSeconds = 0 } = settings.serviceAccounts
  if (maxExpirationSeconds <= signer.maxExpirationSeconds) return signer
  const [wanted, possible] = [maxExpirationSeconds, signer.maxExpirationSeconds].map((seconds) => formatDuration(seconds * 1000))
  throw new Error(
    `service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: ${wanted} > ${possible}`,
  )
}

/** The resources that --runtime-config turns on, and whether their feature gates are on. */
function chosenResources({ apiEnablement, features }: ServerOptions) {
  return optionalResources().flatMap(({ group, version, resource }) => {
    const key = resourceKey(group, version, resource)
    const gate = ownValue(gatesOfOptional, resource) ?? ''
    return apiEnablement.optionalResources.has(key) ? [{ key, gate, isOn: featureEnabled(features.featureGates, gate) }] : []
  })
}

/** What the flags decide about the registry. */
export function registryConfigOf(
  options: ServerOptions,
  serviceCidr: string,
): Pick<BuiltInRegistryDeps, 'eventTtlSeconds' | 'leaseReuseSeconds' | 'serviceNetwork' | 'mediaType' | 'optional'> {
  const { storage, reach } = options
  return {
    eventTtlSeconds: storage.eventTtlSeconds,
    leaseReuseSeconds: storage.leaseReuseSeconds,
    mediaType: storage.etcd?.mediaType,
    serviceNetwork: { cidr: serviceCidr, nodePorts: reach.nodePorts },
    optional: new Set(chosenResources(options).flatMap(({ key, isOn }) => (isOn ? [key] : []))),
  }
}

export function configFromOptions(options: ServerOptions): ApiServerConfig {
  const { priorityAndFairness, featureGates, traceRequestsEvery } = options.features
  const unsafeDeletion = featureEnabled(featureGates, unsafeDeletionGate)
  const identityLease = featureEnabled(featureGates, identityGate)
  const { rejectForwardingRedirects, endpointReconciler, serverCount } = options.reach
  const { compactionIntervalMs, countsObjects, history, storeCheckTimes } = options.storage
  return {
    ...options.generic,
    compactionIntervalMs,
    countsObjects,
    history,
    storeCheckTimes,
    priorityAndFairness,
    traceRequestsEvery,
    featureGates,
    unsafeDeletion,
    identityLease,
    rejectForwardingRedirects,
    endpointReconciler,
    serverCount,
    disabledResources: options.apiEnablement.disabledResources,
    flags: options.flags,
  }
}

/** The authorities whose client certificates the port accepts: those of the named files and the composition root's own. PEM. */
export function authoritiesFromOptions({ authentication }: ServerOptions, own: ClientAuthorities = {}): ClientAuthorities {
  const both = (one: ClientAuthorities['clientCa'], other: string | undefined) => (other === undefined ? one : [one ?? '', other].join('\n'))
  return { clientCa: both(own.clientCa, authentication.clientCa.value), requestHeaderCa: both(own.requestHeaderCa, authentication.requestHeaderCa.value) }
}

/** How the port speaks TLS, with the composition root's own certificate. */
export function tlsFromOptions(options: ServerOptions, own: Pick<ServingTls, 'cert' | 'key'>, authorities: ClientAuthorities): ServingTls {
  const { secureServing } = options
  return { ...own, ...authoritiesFromOptions(options, authorities), ...secureServing.rules, named: namedCertificates(secureServing) }
}

/** Every certificate file that flags name, for clients and of them. */
export function certificateFiles({ authentication, secureServing }: ServerOptions): readonly Followed<unknown>[] {
  return [authentication.clientCa, authentication.requestHeaderCa, ...secureServing.named.map(({ pair }) => pair)]
}

/** Calls back when a file of certificates that a flag names has new ones; what cannot be taken is logged, and the ones of before stay. */
export function followCertificates(files: readonly Followed<unknown>[], changed: () => void, log: Logger, signal: AbortSignal): void {
  for (const file of files) file.follow(changed, (error) => log.error(error, 'A certificate file cannot be taken; what it said before still holds'), signal)
}

/** The trust settings that extension servers read. `frontProxyNames`: names of the composition root's own proxies, unless flags name others. */
export function trustFromOptions(options: ServerOptions, own: ClientAuthorities, frontProxyNames: readonly string[]): Trust {
  const { clientCa, requestHeaderCa } = authoritiesFromOptions(options, own)
  const { requestHeader = { ...standardRequestHeaders, allowedNames: frontProxyNames } } = options.authentication.settings
  return { clientCa: String(clientCa ?? ''), requestHeaderCa: String(requestHeaderCa ?? ''), requestHeader }
}
