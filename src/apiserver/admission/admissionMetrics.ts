/** The metrics of admission by webhooks and match conditions (L3). Upstream: apiserver/pkg/admission/metrics/metrics.go (v1.36). */
import type { Metrics } from '#base/metrics'
import type { DeprecatedCertificate } from '../webhooks/webhookClient.ts'

/** How a webhook is used; upstream's labels. */
export type WebhookStep = 'admit' | 'validating'
export type RejectionType = 'calling_webhook_error' | 'apiserver_internal_error' | 'no_error'

export interface WebhookCall {
  readonly name: string
  readonly step: WebhookStep
  readonly operation: string
  readonly seconds: number
  readonly rejected: boolean
  /** 0: an error of the server itself. */
  readonly code: number
}

export interface MatchConditionOwner {
  readonly name: string
  readonly kind: 'webhook' | 'policy'
  readonly type: 'validate' | 'admit' | 'validating'
  readonly operation: string
}

export interface AdmissionMetrics {
  called(call: WebhookCall): void
  rejected(call: WebhookCall, errorType: RejectionType): void
  failedOpen(name: string, step: WebhookStep): void
  conditionsEvaluated(owner: MatchConditionOwner, seconds: number, failures: number): void
  conditionsExcluded(owner: MatchConditionOwner): void
  /** A webhook was not called because of its certificate. */
  deprecatedCertificate(what: DeprecatedCertificate): void
}

/** Bounds the number of series. */
const highestCode = 600

export function createAdmissionMetrics(metrics: Metrics): AdmissionMetrics {
  const duration = metrics.histogram({
    name: 'apiserver_admission_webhook_admission_duration_seconds',
    help: 'How long a webhook took, in seconds.',
    labels: ['name', 'type', 'operation', 'rejected'],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
  })
  const requests = metrics.counter({
    name: 'apiserver_admission_webhook_request_total',
    help: 'How often a webhook was called.',
    labels: ['name', 'type', 'operation', 'code', 'rejected'],
  })
  const rejections = metrics.counter({
    name: 'apiserver_admission_webhook_rejection_count',
    help: 'How often a webhook, or its failure, has refused a request.',
    labels: ['name', 'type', 'operation', 'error_type', 'rejection_code'],
  })
  const failOpen = metrics.counter({
    name: 'apiserver_admission_webhook_fail_open_count',
    help: 'How often a webhook failed and the request went on.',
    labels: ['name', 'type'],
  })
  const owner = ['name', 'kind', 'type', 'operation']
  const conditionErrors = metrics.counter({
    name: 'apiserver_admission_match_condition_evaluation_errors_total',
    help: 'How often match conditions could not be evaluated.',
    labels: owner,
  })
  const conditionExclusions = metrics.counter({
    name: 'apiserver_admission_match_condition_exclusions_total',
    help: 'How often match conditions kept a request away.',
    labels: owner,
  })
  const conditionSeconds = metrics.histogram({
    name: 'apiserver_admission_match_condition_evaluation_seconds',
    help: 'How long match conditions took, in seconds.',
    labels: owner,
    buckets: [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25],
  })
  const deprecatedCertificates = {
    'missing-san': metrics.counter({
      name: 'apiserver_webhooks_x509_missing_san_total',
      help: 'Calls of webhooks that failed because the server has a certificate without subject alternative names.',
      labels: [],
    }),
    'insecure-sha1': metrics.counter({
      name: 'apiserver_webhooks_x509_insecure_sha1_total',
      help: 'Calls of webhooks that failed because the server has a certificate that is signed over SHA-1.',
      labels: [],
    }),
  }
  return {
    called({ name, step, operation, seconds, rejected, code }) {
      requests.inc({ name, type: step, operation, code: Math.min(code, highestCode), rejected: String(rejected) })
      duration.observe(seconds, { name, type: step, operation, rejected: String(rejected) })
    },
    rejected({ name, step, operation, code }, errorType) {
      rejections.inc({ name, type: step, operation, error_type: errorType, rejection_code: Math.min(code, highestCode) })
    },
    failedOpen: (name, step) => failOpen.inc({ name, type: step }),
    conditionsEvaluated(of, seconds, failures) {
      conditionSeconds.observe(seconds, { ...of })
      if (failures > 0) conditionErrors.inc({ ...of }, failures)
    },
    conditionsExcluded: (of) => conditionExclusions.inc({ ...of }),
    deprecatedCertificate: (what) => deprecatedCertificates[what].inc(),
  }
}
