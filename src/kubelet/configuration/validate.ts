/**
 * Validates a KubeletConfiguration (L3, pure) with upstream's messages. Settings of the node's resources are validated where they are used.
 * Upstream: kubelet/apis/config/validation/validation.go (v1.36).
 */
import { parseDuration } from '#api/machinery/duration'
import { type FeatureGateSettings, featureGateFaults } from '#base/featureGates'
import { hiddenMetricsFault } from '#base/metrics'
import { gateEnabled } from '../core/resourceConfig.ts'
import type { AuthorizationSettings, ConfigurationDocument } from './document.ts'
import { nodeFaults } from './validateNode.ts'

const invalid = (text: string) => `invalid configuration: ${text}`

interface Range {
  readonly name: string
  /** The flag that upstream names next to the field. */
  readonly flag?: string
  readonly least: number
  readonly most?: number
  /** The requirement, in upstream's words. */
  readonly must: string
}

const notNegative = (name: string, flag: string): Range => ({ name, flag, least: 0, must: 'must not be a negative number' })
const between = (name: string, flag: string, least: number, most: number): Range => ({
  name,
  flag,
  least,
  most,
  must: `must be between ${least} and ${most}, inclusive`,
})

const ranges: readonly Range[] = [
  notNegative('eventBurst', 'event-burst'),
  notNegative('eventRecordQPS', 'event-qps'),
  between('imageGCHighThresholdPercent', 'image-gc-high-threshold', 0, 100),
  between('imageGCLowThresholdPercent', 'image-gc-low-threshold', 0, 100),
  between('iptablesDropBit', 'iptables-drop-bit', 0, 31),
  between('iptablesMasqueradeBit', 'iptables-masquerade-bit', 0, 31),
  notNegative('kubeAPIBurst', 'kube-api-burst'),
  notNegative('kubeAPIQPS', 'kube-api-qps'),
  { name: 'nodeStatusMaxImages', flag: 'node-status-max-images', least: -1, must: 'must be -1 or greater' },
  notNegative('maxOpenFiles', 'max-open-files'),
  notNegative('maxPods', 'max-pods'),
  between('oomScoreAdj', 'oom-score-adj', -1000, 1000),
  notNegative('podsPerCore', 'pods-per-core'),
  between('port', 'port', 1, 65_535),
  notNegative('registryBurst', 'registry-burst'),
  notNegative('registryPullQPS', 'registry-qps'),
  { name: 'maxParallelImagePulls', least: 1, must: 'must be a positive number' },
]

interface Choice {
  readonly name: string
  readonly allowed: readonly string[]
  text(value: string, allowed: readonly string[]): string
}

const quoted = (values: readonly string[]) => values.map((value) => `"${value}"`)
const oneOf = (values: readonly string[]) => `[${quoted(values).join(' ')}]`
const options = (name: string) => (value: string, allowed: readonly string[]) =>
  `option "${value}" specified for ${name}. Valid options are ${quoted(allowed).slice(0, -1).join(', ')} or ${quoted(allowed).at(-1)}`

const choices: readonly Choice[] = [
  {
    name: 'topologyManagerPolicy',
    allowed: ['none', 'best-effort', 'restricted', 'single-numa-node'],
    text: (value, allowed) => `topologyManagerPolicy (--topology-manager-policy) "${value}" must be one of: ${oneOf(allowed)}`,
  },
  {
    name: 'topologyManagerScope',
    allowed: ['container', 'pod'],
    text: (value, allowed) => `topologyManagerScope (--topology-manager-scope) "${value}" must be one of: ${quoted(allowed).join(', or ')}`,
  },
  { name: 'hairpinMode', allowed: ['none', 'hairpin-veth', 'promiscuous-bridge'], text: options('hairpinMode (--hairpin-mode)') },
  {
    name: 'imagePullCredentialsVerificationPolicy',
    allowed: ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'],
    text: options('imagePullCredentialsVerificationPolicy'),
  },
  { name: 'memoryReservationPolicy', allowed: ['None', 'TieredReservation'], text: options('memoryReservationPolicy') },
]

/** @param document complete. All faults, each a sentence. */
export function validateDocument(document: ConfigurationDocument): string[] {
  return [
    ...ranges.flatMap((range) => outOfRange(document, range)),
    ...choices.flatMap(({ name, allowed, text }) => {
      const value = document[name] as string
      return value === undefined || allowed.includes(value) ? [] : [text(value, allowed)]
    }),
    ...ports(document),
    ...imagePulls(document),
    ...durations(document),
    ...shutdown(document),
    ...logs(document),
    ...access(document),
    ...nodeFaults(document),
    ...hiddenMetrics(document),
    ...featureGateFaults(gatesOf(document).featureGates),
  ].map(invalid)
}

function outOfRange(document: ConfigurationDocument, { name, flag, least, most = Number.POSITIVE_INFINITY, must }: Range): string[] {
  const value = document[name] as number | undefined
  if (value === undefined || (value >= least && value <= most)) return []
  return [`${name}${flag ? ` (--${flag})` : ''} ${value} ${must}`]
}

function hiddenMetrics({ showHiddenMetricsForVersion: version }: ConfigurationDocument): string[] {
  const fault = hiddenMetricsFault('showHiddenMetricsForVersion', (version as string | undefined) ?? '')
  return fault === undefined ? [] : [`invalid showHiddenMetricsForVersion: ${fault}`]
}

const isPort = (value: number) => value >= 1 && value <= 65_535

function ports({ healthzPort, readOnlyPort }: ConfigurationDocument): string[] {
  const [health = 0, readOnly = 0] = [healthzPort, readOnlyPort] as (number | undefined)[]
  return [
    ...(health === 0 || isPort(health) ? [] : [`healthzPort (--healthz-port) ${health} must be between 1 and 65535, inclusive`]),
    ...(readOnly === 0 || isPort(readOnly) ? [] : [`readOnlyPort (--read-only-port) ${readOnly} must be between 0 and 65535, inclusive`]),
  ]
}

function imagePulls(document: ConfigurationDocument): string[] {
  const [low, high, parallel = 1] = ['imageGCLowThresholdPercent', 'imageGCHighThresholdPercent', 'maxParallelImagePulls'].map(
    (name) => document[name] as number | undefined,
  )
  return [
    ...((low ?? 0) < (high ?? 0)
      ? []
      : [`imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`]),
    ...(document.serializeImagePulls === true && parallel > 1
      ? ['maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false']
      : []),
  ]
}

const gatesOf = (document: ConfigurationDocument) => ({ featureGates: (document.featureGates ?? {}) as FeatureGateSettings })

const msOf = (value: unknown) => parseDuration((value as string | undefined) ?? '0') ?? 0

function durations(document: ConfigurationDocument): string[] {
  const { cpuCFSQuotaPeriod, imageMinimumGCAge, imageMaximumGCAge, nodeLeaseDurationSeconds } = document
  const [period, least, most] = [cpuCFSQuotaPeriod, imageMinimumGCAge, imageMaximumGCAge].map(msOf) as [number, number, number]
  const { maxContainerRestartPeriod } = (document.crashLoopBackOff ?? {}) as { maxContainerRestartPeriod?: string }
  const restart = maxContainerRestartPeriod === undefined ? undefined : msOf(maxContainerRestartPeriod)
  return [
    ...((nodeLeaseDurationSeconds as number) > 0 ? [] : ['nodeLeaseDurationSeconds must be greater than 0']),
    ...(period >= 1 && period <= 1000 ? [] : [`cpuCFSQuotaPeriod (--cpu-cfs-quota-period) ${cpuCFSQuotaPeriod} must be between 1ms and 1sec, inclusive`]),
    ...(least >= 0 ? [] : [`imageMinimumGCAge ${imageMinimumGCAge} must not be negative`]),
    ...(most >= 0 ? [] : [`imageMaximumGCAge ${imageMaximumGCAge} must not be negative`]),
    ...(most <= 0 || most > least ? [] : [`imageMaximumGCAge ${imageMaximumGCAge} must be greater than imageMinimumGCAge ${imageMinimumGCAge}`]),
    ...(restart === undefined || (restart >= 1000 && restart <= 300_000)
      ? []
      : [`CrashLoopBackOff.MaxContainerRestartPeriod (got: ${restart / 1000} seconds) must be set between 1s and 300s`]),
  ]
}

function shutdown(document: ConfigurationDocument): string[] {
  const { shutdownGracePeriod: all, shutdownGracePeriodCriticalPods: critical, shutdownGracePeriodByPodPriority: byPriority = [] } = document
  const [allMs, criticalMs] = [msOf(all), msOf(critical)]
  const tooShort = (ms: number) => ms < 0 || (ms > 0 && ms < 1000)
  return [
    ...(criticalMs > allMs ? [`shutdownGracePeriodCriticalPods {${critical}} must be <= shutdownGracePeriod {${all}}`] : []),
    ...(tooShort(allMs) ? [`shutdownGracePeriod {${all}} must be either zero or otherwise >= 1 sec`] : []),
    ...(tooShort(criticalMs) ? [`shutdownGracePeriodCriticalPods {${critical}} must be either zero or otherwise >= 1 sec`] : []),
    ...((byPriority as unknown[]).length > 0 && (allMs > 0 || criticalMs > 0)
      ? ['Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time']
      : []),
  ]
}

function logs(document: ConfigurationDocument): string[] {
  const directory = document.podLogsDir as string
  return [
    ...((document.containerLogMaxWorkers as number) >= 1 ? [] : ['containerLogMaxWorkers must be greater than or equal to 1']),
    ...(msOf(document.containerLogMonitorInterval) >= 3000 ? [] : ['containerLogMonitorInterval must be a positive time duration greater than or equal to 3s']),
    ...((document.containerLogMaxFiles as number) > 1 ? [] : ['containerLogMaxFiles must be greater than 1']),
    ...(directory.startsWith('/') ? [] : [`pod logs path "${directory}" must be absolute path`]),
    // A path of the metrics too.
    ...(/^[\0-\x7f]*$/.test(directory) ? [] : [`pod logs path "${directory}" mut contains ASCII characters only`]),
    ...(/\/$|\/\/|\/\.\.?(\/|$)/.test(directory) ? [`pod logs path "${directory}" must be normalized`] : []),
    ...(document.enableSystemLogQuery === true && !gateEnabled(gatesOf(document), 'NodeLogQuery')
      ? ['NodeLogQuery feature gate is required for enableSystemLogQuery']
      : []),
    ...(document.enableSystemLogQuery === true && document.enableSystemLogHandler !== true
      ? ['enableSystemLogHandler is required for enableSystemLogQuery']
      : []),
  ]
}

function access(document: ConfigurationDocument): string[] {
  const { mode } = document.authorization as AuthorizationSettings
  const { swapBehavior = '' } = (document.memorySwap ?? {}) as { swapBehavior?: string }
  const factor = document.memoryThrottlingFactor as number
  return [
    ...(['Webhook', 'AlwaysAllow'].includes(mode) ? [] : [`authorization.mode "${mode}" is not valid: use "Webhook" or "AlwaysAllow"`]),
    ...(['', 'LimitedSwap', 'NoSwap'].includes(swapBehavior)
      ? []
      : [`memorySwap.swapBehavior "${swapBehavior}" must be one of: "", "LimitedSwap" or "NoSwap"`]),
    ...(factor > 0 && factor <= 1 ? [] : [`memoryThrottlingFactor ${factor} must be greater than 0 and less than or equal to 1.0`]),
    ...(document.runOnce === true ? ['runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set'] : []),
    ...(document.systemCgroups && !document.cgroupRoot
      ? ['systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified']
      : []),
    ...(document.reservedSystemCPUs && (document.systemReservedCgroup || document.kubeReservedCgroup)
      ? ["can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"]
      : []),
    ...((document.tlsCertFile === undefined) === (document.tlsPrivateKeyFile === undefined)
      ? []
      : ['tlsCertFile (--tls-cert-file) and tlsPrivateKeyFile (--tls-private-key-file) must be specified together']),
  ]
}
