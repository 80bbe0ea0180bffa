/** The audit log that the flags ask for (L5): backends, what stands before them, and where lines go. Upstream: server/options/audit.go ApplyTo. */
import { createAuditSink } from '#apiserver/audit/auditSink'
import { type AuditBackend, ignoringErrors, lossReporter, type ReportLoss, union } from '#apiserver/audit/backend'
import { createBatchBackend } from '#apiserver/audit/batch'
import { createLogBackend, type LineWriter, type LogFormat } from '#apiserver/audit/logBackend'
import type { AuditSink } from '#apiserver/audit/sink'
import { createTruncateBackend } from '#apiserver/audit/truncate'
import { createTurnEnd } from '#apiserver/audit/turnEnd'
import { createWebhookBackend } from '#apiserver/audit/webhookBackend'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { AuditOptions, AuditValues } from './options/audit.ts'
import { openRotatingFile, standardOutput } from './rotatingFile.ts'

export interface AuditTools {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
}

const megabyte = 1024 * 1024

/** Undefined: nothing is audited. @throws Error when the log file cannot be opened */
export function auditFromOptions({ values, policy, webhook }: AuditOptions, tools: AuditTools): AuditSink | undefined {
  if (!policy) return undefined
  const reportLoss = lossReporter(tools.metrics, tools.log)
  const backends: AuditBackend[] = []
  if (values['audit-log-path'] !== '') {
    const log = createLogBackend(writerOf(values, tools.clock), values['audit-log-format'] as LogFormat, reportLoss)
    backends.push(wrapped('log', log, values, { ...tools, reportLoss }))
  }
  if (webhook) {
    const sending = createWebhookBackend({ ...tools, reportLoss }, webhook, values['audit-webhook-initial-backoff'])
    backends.push(wrapped('webhook', sending, values, { ...tools, reportLoss }))
  }
  return backends.length === 0 ? undefined : createAuditSink(policy, union(backends), tools.metrics)
}

function writerOf(values: AuditValues, clock: Clock): LineWriter {
  const file = values['audit-log-path']
  if (file === '-') return standardOutput()
  return openRotatingFile(
    file,
    {
      maxBytes: values['audit-log-maxsize'] * megabyte,
      maxAgeDays: values['audit-log-maxage'],
      maxBackups: values['audit-log-maxbackup'],
      compress: values['audit-log-compress'],
      blocking: values['audit-log-mode'] !== 'batch',
    },
    clock,
  )
}

function wrapped(
  name: 'log' | 'webhook',
  backend: AuditBackend,
  values: AuditValues,
  { clock, reportLoss }: { clock: Clock; reportLoss: ReportLoss },
): AuditBackend {
  const mode = values[`audit-${name}-mode`]
  const inMode = mode === 'blocking-strict' ? backend : mode === 'batch' ? batched() : name === 'log' ? createTurnEnd(backend) : ignoringErrors(backend)
  if (!values[`audit-${name}-truncate-enabled`]) return inMode
  const sizes = { maxEventBytes: values[`audit-${name}-truncate-max-event-size`], maxBatchBytes: values[`audit-${name}-truncate-max-batch-size`] }
  return createTruncateBackend(inMode, sizes, reportLoss)

  function batched(): AuditBackend {
    const throttle = { qps: values[`audit-${name}-batch-throttle-qps`], burst: values[`audit-${name}-batch-throttle-burst`] }
    const config = {
      bufferSize: values[`audit-${name}-batch-buffer-size`],
      maxBatchSize: values[`audit-${name}-batch-max-size`],
      maxBatchWaitMs: values[`audit-${name}-batch-max-wait`],
      throttle: values[`audit-${name}-batch-throttle-enable`] ? throttle : undefined,
      // Lines go to one file; batches to a webhook may overtake each other.
      asyncDelegate: name === 'webhook',
    }
    return createBatchBackend(backend, config, clock, reportLoss)
  }
}
