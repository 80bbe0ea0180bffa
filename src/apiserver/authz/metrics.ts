/**
 * Metrics of authorizers (L3): decisions by type, name and decision, and results of webhooks and their match conditions.
 * Upstream: apiserver/pkg/authorization/metrics, pkg/authorization/cel/metrics.go, plugin/pkg/authorizer/webhook/metrics,
 * pkg/server/options/authorizationconfig/metrics (v1.36).
 */
import { createHash } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { AuthorizationDecision, Authorizer } from './authorizer.ts'

const prefix = 'apiserver_authorization'

/** Counts the authorizer's allows and denials; no opinion is not counted. */
export function countedAuthorizer(type: string, name: string, authorizer: Authorizer, metrics: Metrics): Authorizer {
  const decisions = metrics.counter({
    name: `${prefix}_decisions_total`,
    help: 'How many requests each authorizer has decided, by decision.',
    labels: ['type', 'name', 'decision'],
  })
  const allowed = decisions.series({ type, name, decision: 'allowed' })
  const denied = decisions.series({ type, name, decision: 'denied' })
  const counted = (result: AuthorizationDecision) => {
    if (result.decision === 'allow') allowed.inc()
    else if (result.decision === 'deny') denied.inc()
    return result
  }
  return {
    name: authorizer.name,
    authorize(attributes) {
      const result = authorizer.authorize(attributes)
      return result instanceof Promise ? result.then(counted) : counted(result)
    },
    ...(authorizer.rulesFor ? { rulesFor: authorizer.rulesFor } : {}),
    ...(authorizer.nearest ? { nearest: authorizer.nearest } : {}),
  }
}

export type WebhookResult = 'success' | 'error' | 'timeout'

export interface WebhookAuthorizerMetrics {
  /** One round trip. */
  evaluated(result: WebhookResult, durationMs: number): void
  /** The request continues with the next authorizer although the webhook could not be asked. */
  failedOpen(result: WebhookResult): void
  /** The match conditions were evaluated. */
  matched(durationMs: number, outcome: 'matches' | 'excluded' | 'error'): void
}

const matchBuckets = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]

export function webhookAuthorizerMetrics(metrics: Metrics, name: string): WebhookAuthorizerMetrics {
  const labels = ['name', 'result']
  const evaluations = metrics.counter({ name: `${prefix}_webhook_evaluations_total`, help: 'How often authorization webhooks were called.', labels })
  const seconds = metrics.histogram({ name: `${prefix}_webhook_duration_seconds`, help: 'How long a call took, in seconds.', labels })
  const failOpen = metrics.counter({
    name: `${prefix}_webhook_evaluations_fail_open_total`,
    help: 'How many calls that failed, or took too long, counted as no opinion.',
    labels,
  })
  const ofConditions = { type: 'Webhook', name }
  const condition = (what: string, help: string) =>
    metrics.counter({ name: `${prefix}_match_condition_${what}_total`, help, labels: ['type', 'name'] }).series(ofConditions)
  const errors = condition('evaluation_errors', 'How often a match condition of an authorization webhook could not be evaluated.')
  const exclusions = condition('exclusions', 'How often match conditions kept a request away from an authorization webhook.')
  const matchSeconds = metrics
    .histogram({
      name: `${prefix}_match_condition_evaluation_seconds`,
      help: 'How long match conditions took, in seconds.',
      labels: ['type', 'name'],
      buckets: matchBuckets,
    })
    .series(ofConditions)
  return {
    evaluated(result, durationMs) {
      evaluations.inc({ name, result })
      seconds.observe(durationMs / 1000, { name, result })
    },
    failedOpen: (result) => failOpen.inc({ name, result }),
    matched(durationMs, outcome) {
      matchSeconds.observe(durationMs / 1000)
      if (outcome === 'error') errors.inc()
      if (outcome === 'excluded') exclusions.inc()
    },
  }
}

export interface ReloadMetrics {
  reloaded(status: 'success' | 'failure'): void
  /** Records the configuration that is now active. */
  applied(content: string): void
}

const hashOf = (text: string): string => (text === '' ? '' : `sha256:${createHash('sha256').update(text).digest('hex')}`)

/** @param serverId of this API server among several */
export function reloadMetrics(metrics: Metrics, clock: Clock, serverId: string): ReloadMetrics {
  const server = { apiserver_id_hash: hashOf(serverId) }
  const controller = `${prefix}_config_controller`
  const labels = ['status', 'apiserver_id_hash']
  const reloads = metrics.counter({
    name: `${controller}_automatic_reloads_total`,
    help: 'How often a changed authorization file was read, by how it went.',
    labels,
  })
  const last = metrics.gauge({
    name: `${controller}_automatic_reload_last_timestamp_seconds`,
    help: 'When a changed authorization file was last read, in seconds since 1970.',
    labels,
  })
  const information = metrics.gauge({
    name: `${controller}_last_config_info`,
    help: 'The authorization file in use, by its hash.',
    labels: ['apiserver_id_hash', 'hash'],
  })
  let shown: Readonly<Record<string, string>> | undefined
  return {
    reloaded(status) {
      reloads.inc({ status, ...server })
      last.set(clock.now() / 1000, { status, ...server })
    },
    applied(content) {
      if (shown) information.remove(shown)
      shown = { ...server, hash: hashOf(content) }
      information.set(1, shown)
    },
  }
}
