/** Metrics of ID tokens (L3), by a hash of the issuer. Upstream: plugin/pkg/authenticator/token/oidc/metrics.go, authenticationconfig/metrics. */
import { createHash } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { FetchObserver } from './keySet.ts'

export interface OidcMetrics {
  record(issuer: string, result: 'success' | 'failure', durationMs: number): void
  /** Observes the key fetches of one issuer. */
  fetchesOf(issuer: string): FetchObserver
  reloaded(status: 'success' | 'failure'): void
  /** Records the configuration that is now active. */
  applied(content: string): void
}

const latencyBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const hashOf = (text: string): string => (text === '' ? '' : `sha256:${createHash('sha256').update(text).digest('hex')}`)

/** A gauge of 1 with the current state as its label; the series of the previous state is removed. */
function information(gauge: ReturnType<Metrics['gauge']>): (labels: Readonly<Record<string, string>>) => void {
  let last: Readonly<Record<string, string>> | undefined
  return (labels) => {
    if (last) gauge.remove(last)
    last = labels
    gauge.set(1, labels)
  }
}

/** @param serverId of this API server among several */
export function oidcMetrics(metrics: Metrics, clock: Clock, serverId: string): OidcMetrics {
  const server = { apiserver_id_hash: hashOf(serverId) }
  const prefix = 'apiserver_authentication_jwt_authenticator'
  const reloads = 'apiserver_authentication_config_controller'
  const latency = metrics.histogram({
    name: `${prefix}_latency_seconds`,
    help: 'How long a token took that was not remembered, in seconds.',
    labels: ['result', 'jwt_issuer_hash'],
    buckets: latencyBuckets,
  })
  const fetches = metrics.gauge({
    name: `${prefix}_jwks_fetch_last_timestamp_seconds`,
    help: 'When the keys of an issuer were last fetched, by how it went, in seconds since 1970.',
    labels: ['result', 'jwt_issuer_hash', 'apiserver_id_hash'],
  })
  const keySets = metrics.gauge({
    name: `${prefix}_jwks_fetch_last_key_set_info`,
    help: 'The keys of an issuer in use, by their hash.',
    labels: ['jwt_issuer_hash', 'apiserver_id_hash', 'hash'],
  })
  const reloadCount = metrics.counter({
    name: `${reloads}_automatic_reloads_total`,
    help: 'How often a changed authentication file was read, by how it went.',
    labels: ['status', 'apiserver_id_hash'],
  })
  const reloadTime = metrics.gauge({
    name: `${reloads}_automatic_reload_last_timestamp_seconds`,
    help: 'When a changed authentication file was last read, in seconds since 1970.',
    labels: ['status', 'apiserver_id_hash'],
  })
  const configuration = information(
    metrics.gauge({
      name: `${reloads}_last_config_info`,
      help: 'The authentication file in use, by its hash.',
      labels: ['apiserver_id_hash', 'hash'],
    }),
  )
  return {
    record: (issuer, result, durationMs) => latency.observe(durationMs / 1000, { result, jwt_issuer_hash: hashOf(issuer) }),
    fetchesOf(issuer) {
      const labels = { jwt_issuer_hash: hashOf(issuer), ...server }
      const keySet = information(keySets)
      return (served) => {
        fetches.set(clock.now() / 1000, { result: served === undefined ? 'failure' : 'success', ...labels })
        if (served !== undefined) keySet({ ...labels, hash: hashOf(served) })
      }
    },
    reloaded(status) {
      reloadCount.inc({ status, ...server })
      reloadTime.set(clock.now() / 1000, { status, ...server })
    },
    applied: (content) => configuration({ ...server, hash: hashOf(content) }),
  }
}
