/** The flags of the audit log (L5). Upstream: apiserver/pkg/server/options/audit.go (v1.36). */
import { logFormats } from '#apiserver/audit/logBackend'
import { type AuditPolicy, parseAuditPolicy } from '#apiserver/audit/policy'
import type { AuditWebhook } from '#apiserver/audit/webhookBackend'
import { type Kubeconfig, type KubeconfigDeps, resolveKubeconfig } from '#client/kubeconfig'
import { createRealClock } from '../../realClock.ts'
import { decimal, duration, type FlagValues, flag, text, UsageError, whole } from './flags.ts'
import { readKubeconfig } from './kubeconfigFile.ts'
import { readNamed } from './namedFiles.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'

const modes = ['batch', 'blocking', 'blocking-strict']
const mode = (byDefault: string) => text(`How events are written: ${modes.join(', ')}; in batch mode no request waits for it`, byDefault)
const version = () => text('The version that events are written in', 'audit.k8s.io/v1')
const bufferSize = () => whole('How many events are kept before they are written; in batch mode', 10_000)
const burst = (byDefault: number) => whole('How many batches may go at once after a rest; in batch mode', byDefault)
const qps = (byDefault: number) => decimal('How many batches go a second on average; in batch mode', byDefault)
const throttled = (byDefault: boolean) => flag('Whether batches are limited in number; in batch mode', byDefault)
const truncates = () => flag('Whether events and batches that are too large lose their bodies, or are left out')
const maxEventSize = () => whole('Bytes of an event beyond which it loses its bodies; what is larger still is left out', 100 * 1024)
const maxTruncatedBatch = () => whole('Bytes of a batch beyond which it is sent as several', 10 * 1024 * 1024)

const flags = {
  'audit-log-batch-buffer-size': bufferSize(),
  'audit-log-batch-max-size': whole('How many events are written together; in batch mode', 1),
  'audit-log-batch-max-wait': duration('How long events wait for more; in batch mode', 0),
  'audit-log-batch-throttle-burst': burst(0),
  'audit-log-batch-throttle-enable': throttled(false),
  'audit-log-batch-throttle-qps': qps(0),
  'audit-log-compress': flag('Files that were moved aside are compressed with gzip'),
  'audit-log-format': text(`What lines look like: ${logFormats.join(', ')}`, 'json'),
  'audit-log-maxage': whole('Days that files which were moved aside are kept; 0: their age does not matter', 366),
  'audit-log-maxbackup': whole('How many files that were moved aside are kept; 0: all', 100),
  'audit-log-maxsize': whole('Megabytes of the file beyond which it is moved aside; 0: never', 100),
  'audit-log-mode': mode('blocking'),
  'audit-log-path': text('The file that events are written to; -: standard output'),
  'audit-log-truncate-enabled': truncates(),
  'audit-log-truncate-max-batch-size': maxTruncatedBatch(),
  'audit-log-truncate-max-event-size': maxEventSize(),
  'audit-log-version': version(),
  'audit-policy-file': text('A file of kind Policy: which requests are audited, and at what level; none: nothing is'),
  'audit-webhook-batch-buffer-size': bufferSize(),
  'audit-webhook-batch-max-size': whole('How many events are sent together; in batch mode', 400),
  'audit-webhook-batch-max-wait': duration('How long events wait for more; in batch mode', 30_000),
  'audit-webhook-batch-throttle-burst': burst(15),
  'audit-webhook-batch-throttle-enable': throttled(true),
  'audit-webhook-batch-throttle-qps': qps(10),
  'audit-webhook-config-file': text('A kubeconfig of the webhook that events are sent to'),
  'audit-webhook-initial-backoff': duration('How long to wait before sending is tried again the first time', 10_000),
  'audit-webhook-mode': mode('batch'),
  'audit-webhook-truncate-enabled': truncates(),
  'audit-webhook-truncate-max-batch-size': maxTruncatedBatch(),
  'audit-webhook-truncate-max-event-size': maxEventSize(),
  'audit-webhook-version': version(),
} as const

export type AuditValues = FlagValues<typeof flags>

export interface AuditOptions {
  readonly values: AuditValues
  /** Absent: nothing is audited. */
  readonly policy?: AuditPolicy | undefined
  readonly webhook?: AuditWebhook | undefined
}

export const audit = optionGroup({
  name: 'Auditing',
  flags,
  async settings(values, context): Promise<AuditOptions> {
    const faults = [...backendFaults('log', values), ...backendFaults('webhook', values), ...logFaults(values)]
    if (faults.length > 0) throw new UsageError(faults)
    return { values, policy: await policyOf(values, context), webhook: await webhookOf(values, context) }
  },
})

async function policyOf({ 'audit-policy-file': file }: AuditValues, context: OptionContext): Promise<AuditPolicy | undefined> {
  const content = await readNamed(file, context)
  if (content === undefined) return undefined
  try {
    return parseAuditPolicy(content)
  } catch (error) {
    throw new UsageError([`loading audit policy file: ${(error as Error).message}: from file ${file}`])
  }
}

function webhookOf({ 'audit-webhook-config-file': file }: AuditValues, context: OptionContext): Promise<AuditWebhook | undefined> {
  const use = async (config: Kubeconfig, deps: KubeconfigDeps) => (await resolveKubeconfig(config, deps)).transport
  return readKubeconfig(file, context, createRealClock(), use, 'initializing audit webhook')
}

type Backend = 'log' | 'webhook'

/** What a backend does not use is not looked at. */
function backendFaults(backend: Backend, values: AuditValues): string[] {
  if (values[backend === 'log' ? 'audit-log-path' : 'audit-webhook-config-file'] === '') return []
  const batch = batchFault(backend, values)
  const maxEvent = values[`audit-${backend}-truncate-max-event-size`]
  const maxBatch = values[`audit-${backend}-truncate-max-batch-size`]
  const faults = batch === undefined ? [] : [batch]
  if (maxEvent <= 0) faults.push(`invalid audit truncate ${backend} max event size ${maxEvent}, must be a positive number`)
  else if (maxBatch < maxEvent) faults.push(`invalid audit truncate ${backend} max batch size ${maxBatch}, must be greater than max event size (${maxEvent})`)
  if (values[`audit-${backend}-version`] !== 'audit.k8s.io/v1') faults.push('invalid group version, allowed versions are ["audit.k8s.io/v1"]')
  return faults
}

function batchFault(backend: Backend, values: AuditValues): string | undefined {
  const given = values[`audit-${backend}-mode`]
  if (!modes.includes(given)) return `invalid audit ${backend} mode ${given}, allowed modes are ${JSON.stringify(modes.join(','))}`
  if (given !== 'batch') return undefined
  const wrong = (what: string, value: number) => `invalid audit batch ${backend} ${what} ${value}, must be a positive number`
  const buffer = values[`audit-${backend}-batch-buffer-size`]
  const size = values[`audit-${backend}-batch-max-size`]
  if (buffer <= 0) return wrong('buffer size', buffer)
  if (size <= 0) return wrong('max batch size', size)
  if (!values[`audit-${backend}-batch-throttle-enable`]) return undefined
  const rate = values[`audit-${backend}-batch-throttle-qps`]
  const most = values[`audit-${backend}-batch-throttle-burst`]
  return rate <= 0 ? wrong('throttle QPS', rate) : most <= 0 ? wrong('throttle burst', most) : undefined
}

function logFaults(values: AuditValues): string[] {
  if (values['audit-log-path'] === '') return []
  const format = values['audit-log-format']
  const negative = (['audit-log-maxage', 'audit-log-maxbackup', 'audit-log-maxsize'] as const).filter((name) => values[name] < 0)
  const isKnown = (logFormats as readonly string[]).includes(format)
  return [
    ...(isKnown ? [] : [`invalid audit log format ${format}, allowed formats are ${JSON.stringify(logFormats.join(','))}`]),
    ...negative.map((name) => `--${name} ${values[name]} can't be a negative number`),
  ]
}
