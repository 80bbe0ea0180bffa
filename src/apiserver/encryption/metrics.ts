/**
 * Metrics of encryption at rest (L3).
 * Upstream: apiserver/pkg/storage/value/metrics.go, encrypt/envelope/metrics, server/options/encryptionconfig/metrics (v1.36).
 */
import { createHash } from 'node:crypto'
import type { Clock } from '#base/clock'
import { type Counter, exponentialBuckets, type Gauge, type Metrics } from '#base/metrics'

export type TransformationType = 'from_storage' | 'to_storage'

/** Called when a transformation begins; the returned function is called when it has ended. */
export type ObserveTransformation = (resource: string, type: TransformationType, prefix: string) => (error?: Error) => void

export interface EncryptionMetrics {
  readonly observe: ObserveTransformation
  cacheMiss(): void
  dataKeyGenerated(seconds: number): void
  keyIdUsed(type: TransformationType, provider: string, keyId: string): void
  keyIdFromStatus(provider: string, keyId: string): void
  invalidKeyIdFromStatus(provider: string, error: 'empty' | 'too_long'): void
  kmsOperation(provider: string, method: string, seconds: number, error?: Error): void
  cachedKeys(provider: string, count: number): void
  reloaded(ok: boolean): void
  /** Records the hash of the active configuration. */
  configuration(hash: string): void
}

/** `sha256:…`; empty for an empty text. */
export function hashOf(text: string): string {
  return text === '' ? '' : `sha256:${createHash('sha256').update(text).digest('hex')}`
}

/** @param apiServerId identifies this server in the cluster; shown as a hash */
export function encryptionMetrics(metrics: Metrics, clock: Clock, apiServerId: string): EncryptionMetrics {
  const identity = { apiserver_id_hash: hashOf(apiServerId) }
  return { ...transformations(metrics, clock), ...envelopes(metrics, clock, identity), ...reloads(metrics, clock, identity) }
}

function transformations(metrics: Metrics, clock: Clock): Pick<EncryptionMetrics, 'observe' | 'cacheMiss' | 'dataKeyGenerated'> {
  const durations = metrics.histogram({
    name: 'apiserver_storage_transformation_duration_seconds',
    help: 'How long values took to be encrypted and decrypted, in seconds.',
    labels: ['transformation_type', 'transformer_prefix'],
    buckets: exponentialBuckets(5e-6, 2, 25),
  })
  const operations = metrics.counter({
    name: 'apiserver_storage_transformation_operations_total',
    help: 'Values encrypted and decrypted, by resource and by how it went.',
    labels: ['resource', 'transformation_type', 'transformer_prefix', 'status'],
  })
  const misses = metrics.counter({
    name: 'apiserver_storage_envelope_transformation_cache_misses_total',
    help: 'Data encryption keys that the key management service had to decrypt.',
  })
  const generations = metrics.histogram({
    name: 'apiserver_storage_data_key_generation_duration_seconds',
    help: 'How long data encryption keys took to make, in seconds.',
    buckets: exponentialBuckets(5e-6, 2, 14),
  })
  return {
    observe(resource, type, prefix) {
      const start = clock.monotonicMs()
      return (error) => {
        operations.inc({ resource, transformation_type: type, transformer_prefix: prefix, status: statusOf(error) })
        if (!error) durations.observe((clock.monotonicMs() - start) / 1000, { transformation_type: type, transformer_prefix: prefix })
      }
    },
    cacheMiss: () => misses.inc(),
    dataKeyGenerated: (seconds) => generations.observe(seconds),
  }
}

type Identity = { readonly apiserver_id_hash: string }

function envelopes(
  metrics: Metrics,
  clock: Clock,
  identity: Identity,
): Pick<EncryptionMetrics, 'keyIdUsed' | 'keyIdFromStatus' | 'invalidKeyIdFromStatus' | 'kmsOperation' | 'cachedKeys'> {
  const name = (rest: string) => `apiserver_envelope_encryption_${rest}`
  const keyLabels = ['transformation_type', 'provider_name', 'key_id_hash', 'apiserver_id_hash']
  const used = metrics.counter({ name: name('key_id_hash_total'), help: 'How often a key was used.', labels: keyLabels })
  const lastUsed = metrics.gauge({ name: name('key_id_hash_last_timestamp_seconds'), help: 'When a key was used last.', labels: keyLabels })
  const lastStatus = metrics.gauge({
    name: name('key_id_hash_status_last_timestamp_seconds'),
    help: 'When a key management service last said that it uses a key.',
    labels: ['provider_name', 'key_id_hash', 'apiserver_id_hash'],
  })
  const invalid = metrics.counter({
    name: name('invalid_key_id_from_status_total'),
    help: 'How often a key management service named a key that cannot be.',
    labels: ['provider_name', 'error'],
  })
  const latency = metrics.histogram({
    name: name('kms_operations_latency_seconds'),
    help: 'How long calls of key management services took, in seconds, by how they ended.',
    labels: ['provider_name', 'method_name', 'grpc_status_code'],
    buckets: exponentialBuckets(0.0001, 2, 20),
  })
  const sources = metrics.gauge({ name: name('dek_source_cache_size'), help: 'How many decrypted data encryption keys are kept.', labels: ['provider_name'] })
  const hashes = new Map<string, string>()
  const hashed = (keyId: string) => {
    let hash = hashes.get(keyId)
    if (hash === undefined) {
      if (hashes.size > 100) hashes.clear()
      hash = hashOf(keyId)
      hashes.set(keyId, hash)
    }
    return hash
  }
  return {
    keyIdUsed(type, provider, keyId) {
      const labels = { transformation_type: type, provider_name: provider, key_id_hash: hashed(keyId), ...identity }
      used.inc(labels)
      lastUsed.set(clock.now() / 1000, labels)
    },
    keyIdFromStatus: (provider, keyId) => lastStatus.set(clock.now() / 1000, { provider_name: provider, key_id_hash: hashed(keyId), ...identity }),
    invalidKeyIdFromStatus: (provider, error) => invalid.inc({ provider_name: provider, error }),
    kmsOperation: (provider, method, seconds, error) =>
      latency.observe(seconds, { provider_name: provider, method_name: `/v2.KeyManagementService/${method}`, grpc_status_code: statusOf(error) }),
    cachedKeys: (provider, count) => sources.set(count, { provider_name: provider }),
  }
}

function reloads(metrics: Metrics, clock: Clock, identity: Identity): Pick<EncryptionMetrics, 'reloaded' | 'configuration'> {
  const name = (rest: string) => `apiserver_encryption_config_controller_${rest}`
  const labels = ['status', 'apiserver_id_hash']
  const total: Counter = metrics.counter({ name: name('automatic_reloads_total'), help: 'Reloads of the encryption configuration.', labels })
  const last: Gauge = metrics.gauge({
    name: name('automatic_reload_last_timestamp_seconds'),
    help: 'Time of the last reload of the encryption configuration.',
    labels,
  })
  const info = metrics.gauge({ name: name('last_config_info'), help: 'The configuration in use, by its hash.', labels: ['apiserver_id_hash', 'hash'] })
  let shown: string | undefined
  return {
    reloaded(ok) {
      const status = { status: ok ? 'success' : 'failure', ...identity }
      total.inc(status)
      last.set(clock.now() / 1000, status)
    },
    configuration(hash) {
      if (shown !== undefined) info.remove({ ...identity, hash: shown })
      shown = hash
      info.set(1, { ...identity, hash })
    },
  }
}

/** The gRPC status behind an error, in Go's spelling. */
function statusOf(error: Error | undefined): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { grpcStatus } = at as { grpcStatus?: unknown }
    if (typeof grpcStatus === 'string') return grpcStatus
  }
  return error ? 'unknown-non-grpc' : 'OK'
}
