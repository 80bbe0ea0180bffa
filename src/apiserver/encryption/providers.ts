/**
 * Creates the transformers of an EncryptionConfiguration for each resource (L3), and connects its key management services.
 * Upstream: apiserver/pkg/server/options/encryptionconfig/config.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { cbcTransformer, gcmTransformer } from './aes.ts'
import type { EncryptionConfiguration, Key, KmsConfiguration, ProviderConfiguration } from './configuration.ts'
import { anyGroupAnyResource, formatGroupResource, type GroupResource, parseGroupResource } from './groupResource.ts'
import { KmsProbe } from './kmsProbe.ts'
import type { ConnectKms, KmsService } from './kmsService.ts'
import { kmsTransformer } from './kmsTransformer.ts'
import type { EncryptionMetrics } from './metrics.ts'
import { secretboxTransformer } from './secretbox.ts'
import { identityTransformer, type PrefixTransformer, prefixTransformers, type ValueTransformer } from './transformer.ts'

export interface ProviderDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: EncryptionMetrics
  connectKms: ConnectKms
  newUid(): string
}

/** The transformers, services and health checks of one configuration. */
export interface Providers {
  /** Encrypts and decrypts the values of a resource. */
  transformerFor(resource: GroupResource): ValueTransformer
  readonly services: readonly { readonly service: KmsService; readonly probe: KmsProbe; readonly timeoutMs: number }[]
}

/** @throws Error when providers cannot be made, or a resource would never be reached */
export function createProviders(configuration: EncryptionConfiguration, deps: ProviderDeps): Providers {
  const services: Providers['services'][number][] = []
  const byResource = new Map<string, PrefixTransformer[]>()
  try {
    for (const { resources, providers } of configuration.resources) {
      const transformers = providers.map((provider) => providerTransformer(provider, deps, services))
      for (const name of resources) {
        const resource = parseGroupResource(name)
        refuseMasked(resource, byResource)
        const key = formatGroupResource(resource)
        byResource.set(key, [...(byResource.get(key) ?? []), ...transformers])
      }
    }
  } catch (error) {
    for (const { service } of services) service.close()
    throw error
  }
  const transformers = new Map([...byResource].map(([name, list]) => [name, prefixTransformers('no matching prefix found', list, deps.metrics.observe)]))
  return {
    services,
    transformerFor: ({ group, resource }) =>
      transformers.get(formatGroupResource({ group, resource })) ??
      transformers.get(formatGroupResource({ group, resource: '*' })) ??
      transformers.get(formatGroupResource(anyGroupAnyResource)) ??
      identityTransformer,
  }
}

function refuseMasked(resource: GroupResource, earlier: ReadonlyMap<string, unknown>): void {
  for (const wide of [{ group: resource.group, resource: '*' }, anyGroupAnyResource]) {
    if (!earlier.has(formatGroupResource(wide))) continue
    throw new Error(`resource ${JSON.stringify(yamlName(resource))} is masked by earlier rule ${JSON.stringify(yamlName(wide))}`)
  }
}

/** The resource as in the file, where `*.` is the whole core group. */
function yamlName(resource: GroupResource): string {
  return resource.group === '' && resource.resource === '*' ? '*.' : formatGroupResource(resource)
}

function providerTransformer(provider: ProviderConfiguration, deps: ProviderDeps, services: Providers['services'][number][]): PrefixTransformer {
  const { aesgcm, aescbc, secretbox, kms } = provider
  if (aesgcm) return keyed('k8s:enc:aesgcm:v1:', aesgcm.keys, gcmTransformer, 'AES', deps)
  if (aescbc) return keyed('k8s:enc:aescbc:v1:', aescbc.keys, cbcTransformer, 'AES', deps)
  if (secretbox) return keyed('k8s:enc:secretbox:v1:', secretbox.keys, secretboxTransformer, 'Secretbox', deps)
  return kms ? kmsProvider(kms, deps, services) : { prefix: '', transformer: identityTransformer }
}

/** A provider with several keys: a value's prefix names the key after the provider. */
function keyed(
  prefix: string,
  keys: readonly Key[],
  create: (key: Uint8Array) => ValueTransformer,
  name: 'AES' | 'Secretbox',
  { metrics }: ProviderDeps,
): PrefixTransformer {
  const transformers = keys.map((key) => ({ prefix: `${key.name}:`, transformer: create(Buffer.from(key.secret, 'base64')) }))
  return { prefix, transformer: prefixTransformers(`no matching key was found for the provided ${name} transformer`, transformers, metrics.observe) }
}

const oldKms =
  'KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.'

function kmsProvider(
  { apiVersion, name, endpoint, timeoutMs }: KmsConfiguration,
  deps: ProviderDeps,
  services: Providers['services'][number][],
): PrefixTransformer {
  if (apiVersion === 'v1') throw new Error(oldKms)
  const service = measured(deps.connectKms(endpoint, timeoutMs), name, deps)
  const probe = new KmsProbe(name, { ...deps, service })
  services.push({ service, probe, timeoutMs })
  return { prefix: `k8s:enc:kms:v2:${name}:`, transformer: kmsTransformer(name, { ...deps, service, currentKey: () => probe.currentKey() }) }
}

function measured(service: KmsService, name: string, { clock, metrics }: ProviderDeps): KmsService {
  const timed = async <T>(method: string, call: () => Promise<T>): Promise<T> => {
    const start = clock.monotonicMs()
    const seconds = () => (clock.monotonicMs() - start) / 1000
    try {
      const result = await call()
      metrics.kmsOperation(name, method, seconds())
      return result
    } catch (error) {
      metrics.kmsOperation(name, method, seconds(), error as Error)
      throw error
    }
  }
  return {
    status: () => timed('Status', () => service.status()),
    encrypt: (uid, plaintext) => timed('Encrypt', () => service.encrypt(uid, plaintext)),
    decrypt: (uid, request) => timed('Decrypt', () => service.decrypt(uid, request)),
    close: () => service.close(),
  }
}
