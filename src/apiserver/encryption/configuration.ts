/**
 * The type EncryptionConfiguration of a file (L3, pure), with its defaults.
 * Upstream: apiserver/pkg/apis/apiserver/v1 (types_encryption.go, defaults.go, register.go; v1.36).
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { integer, kind, list, struct, text } from '#api/configuration/schemas'
import { parseDuration } from '#api/machinery/duration'

export interface Key {
  readonly name: string
  /** Base64. */
  readonly secret: string
}

interface Keys {
  readonly keys: readonly Key[]
}

export interface KmsConfiguration {
  readonly apiVersion: string
  readonly name: string
  readonly endpoint: string
  readonly timeoutMs: number
  readonly cachesize?: number | undefined
}

/** After validation, exactly one member is set. */
export interface ProviderConfiguration {
  readonly aesgcm?: Keys | undefined
  readonly aescbc?: Keys | undefined
  readonly secretbox?: Keys | undefined
  readonly identity?: object | undefined
  readonly kms?: KmsConfiguration | undefined
}

export interface ResourceConfiguration {
  readonly resources: readonly string[]
  readonly providers: readonly ProviderConfiguration[]
}

export interface EncryptionConfiguration {
  readonly resources: readonly ResourceConfiguration[]
}

const keys = (name: string) => struct(name, { keys: list(struct('Key', { name: text, secret: text })) })
const schema = kind('EncryptionConfiguration', {
  resources: list(
    struct('ResourceConfiguration', {
      resources: list(text),
      providers: list(
        struct('ProviderConfiguration', {
          aesgcm: keys('AESConfiguration'),
          aescbc: keys('AESConfiguration'),
          secretbox: keys('SecretboxConfiguration'),
          identity: struct('IdentityConfiguration', {}),
          kms: struct('KMSConfiguration', { apiVersion: text, name: text, cachesize: integer, endpoint: text, timeout: text }),
        }),
      ),
    }),
  ),
})
const kinds = [
  { kind: 'EncryptionConfiguration', apiVersions: ['apiserver.config.k8s.io/v1'], schema },
  // The kind's name in older documentation of upstream.
  { kind: 'EncryptionConfig', apiVersions: ['v1'], schema },
]

type Written<T> = { readonly [field in keyof T]?: T[field] | null | undefined }
type WrittenKms = Written<Omit<KmsConfiguration, 'timeoutMs'>> & { readonly timeout?: string | null }
type WrittenKeys = { readonly keys?: readonly Written<Key>[] | null }
interface WrittenProvider {
  readonly aesgcm?: WrittenKeys | null
  readonly aescbc?: WrittenKeys | null
  readonly secretbox?: WrittenKeys | null
  readonly identity?: object | null
  readonly kms?: WrittenKms | null
}
interface WrittenConfiguration {
  readonly resources?: readonly { readonly resources?: readonly string[] | null; readonly providers?: readonly WrittenProvider[] | null }[] | null
}

const defaultTimeoutMs = 3_000
const defaultCacheSize = 1_000

/** @throws Error with the reason why the text cannot be read */
export function decodeEncryptionConfiguration(content: string): EncryptionConfiguration {
  const { resources } = decodeConfiguration(content, kinds).value as WrittenConfiguration
  return {
    resources: (resources ?? []).map((one) => ({
      resources: one.resources ?? [],
      providers: (one.providers ?? []).map(({ aesgcm, aescbc, secretbox, identity, kms }) => ({
        ...(aesgcm && { aesgcm: keysOf(aesgcm) }),
        ...(aescbc && { aescbc: keysOf(aescbc) }),
        ...(secretbox && { secretbox: keysOf(secretbox) }),
        ...(identity && { identity }),
        ...(kms && { kms: kmsOf(kms) }),
      })),
    })),
  }
}

function keysOf({ keys: written }: WrittenKeys): Keys {
  return { keys: (written ?? []).map(({ name, secret }) => ({ name: name ?? '', secret: secret ?? '' })) }
}

function kmsOf({ apiVersion, name, endpoint, cachesize, timeout }: WrittenKms): KmsConfiguration {
  const version = apiVersion || 'v1'
  const size = cachesize ?? (version === 'v1' ? defaultCacheSize : undefined)
  return { apiVersion: version, name: name ?? '', endpoint: endpoint ?? '', timeoutMs: timeoutOf(timeout), ...(size !== undefined && { cachesize: size }) }
}

function timeoutOf(written: string | null | undefined): number {
  if (written === undefined || written === null) return defaultTimeoutMs
  const milliseconds = parseDuration(written)
  if (milliseconds === undefined) throw new Error(`time: invalid duration ${JSON.stringify(written)}`)
  return milliseconds
}
