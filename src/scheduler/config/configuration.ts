/**
 * KubeSchedulerConfiguration v1 (L3): decoded strictly, defaulted, checked, and turned into what the scheduler takes.
 * Upstream: kube-scheduler/config/v1, pkg/scheduler/apis/config/v1/defaults.go, validation/validation.go (v1.36).
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isQualifiedName } from '#api/machinery/names'
import { emptyMap } from '#base/bareMap'
import { createHttpExtender, type ExtenderConfig, type ExtenderTlsConfig } from '../extenders/httpExtender.ts'
import type { PluginDefinition } from '../framework/plugin.ts'
import { defaultPluginArgs, type PluginArgs } from '../framework/pluginArgs.ts'
import { type EnabledPlugin, type ExtensionPoint, extensionPoints, type PluginSet, type ProfileConfig } from '../framework/profile.ts'
import type { SchedulerConfig } from '../scheduler.ts'
import { durationMs, pluginArgs } from './pluginArgs.ts'
import { schedulerConfigurationKinds } from './schemas.ts'

export interface KubeSchedulerConfiguration {
  /** Cycles do not run in parallel here: accepted, without effect. */
  readonly parallelism: number
  readonly leaderElection: {
    readonly leaderElect: boolean
    readonly leaseDurationMs: number
    readonly renewDeadlineMs: number
    readonly retryPeriodMs: number
    readonly resourceLock: string
    readonly resourceName: string
    readonly resourceNamespace: string
  }
  readonly clientConnection: { readonly kubeconfig: string; readonly qps: number; readonly burst: number }
  readonly enableProfiling: boolean
  readonly percentageOfNodesToScore: number
  readonly podInitialBackoffSeconds: number
  readonly podMaxBackoffSeconds: number
  readonly profiles: readonly ProfileConfig[]
  readonly extenders: readonly ExtenderConfig[]
  /** Files with plugins, from the pluginConfig entry of that name. */
  readonly pluginFiles: readonly string[]
}

/** The pluginConfig entry that names files with plugins: `args: { files: [./gpu.js] }`. */
export const pluginFilesEntry = 'skiff.dev/PluginFiles'

type Raw = Readonly<Record<string, never>>

/** @throws Error that names every field with a fault */
export function decodeSchedulerConfiguration(content: string): KubeSchedulerConfiguration {
  const { value } = decodeConfiguration(content, schedulerConfigurationKinds)
  const errors: FieldError[] = []
  const configuration = withDefaults(value as Raw, errors)
  validate(configuration, value as Raw, errors)
  if (errors.length > 0) throw new Error(errors.map(({ field, body }) => `${field}: ${body}`).join('; '))
  return configuration
}

export const defaultSchedulerConfiguration: KubeSchedulerConfiguration = withDefaults({}, [])

/** @param otherPlugins plugins loaded from the configuration's plugin files */
export function schedulerConfigOf(configuration: KubeSchedulerConfiguration, otherPlugins: readonly PluginDefinition[] = []): SchedulerConfig {
  const ignored = configuration.extenders.flatMap(({ managedResources }) => managedResources.filter((one) => one.ignoredByScheduler).map(({ name }) => name))
  return {
    profiles: ignored.length === 0 ? configuration.profiles : configuration.profiles.map((profile) => ignoring(profile, ignored)),
    podInitialBackoffMs: configuration.podInitialBackoffSeconds * 1000,
    podMaxBackoffMs: configuration.podMaxBackoffSeconds * 1000,
    percentageOfNodesToScore: configuration.percentageOfNodesToScore,
    otherPlugins,
    extenders: configuration.extenders.map(createHttpExtender),
  }
}

/** NodeResourcesFit ignores resources that an extender manages. */
function ignoring(profile: ProfileConfig, names: readonly string[]): ProfileConfig {
  const args = (profile.args.NodeResourcesFit ?? defaultPluginArgs.NodeResourcesFit) as PluginArgs['NodeResourcesFit']
  return { ...profile, args: { ...profile.args, NodeResourcesFit: { ...args, ignoredResources: [...args.ignoredResources, ...names] } } }
}

function withDefaults(given: Raw, errors: FieldError[]): KubeSchedulerConfiguration {
  const election = (given.leaderElection ?? {}) as Raw
  const connection = (given.clientConnection ?? {}) as Raw
  const electionPath = FieldPath.of('leaderElection')
  const profiles = (given.profiles as readonly Raw[] | undefined) ?? [{}]
  const pluginFiles: string[] = []
  return {
    parallelism: given.parallelism ?? 16,
    leaderElection: {
      leaderElect: election.leaderElect ?? true,
      leaseDurationMs: durationMs(election.leaseDuration, 15_000, electionPath.child('leaseDuration'), errors),
      renewDeadlineMs: durationMs(election.renewDeadline, 10_000, electionPath.child('renewDeadline'), errors),
      retryPeriodMs: durationMs(election.retryPeriod, 2000, electionPath.child('retryPeriod'), errors),
      resourceLock: election.resourceLock ?? 'leases',
      resourceName: election.resourceName ?? 'kube-scheduler',
      resourceNamespace: election.resourceNamespace ?? 'kube-system',
    },
    clientConnection: { kubeconfig: connection.kubeconfig ?? '', qps: connection.qps || 50, burst: connection.burst || 100 },
    enableProfiling: given.enableProfiling ?? true,
    percentageOfNodesToScore: given.percentageOfNodesToScore ?? 0,
    podInitialBackoffSeconds: given.podInitialBackoffSeconds ?? 1,
    podMaxBackoffSeconds: given.podMaxBackoffSeconds ?? 10,
    profiles: profiles.map((profile, i) => profileOf(profile, FieldPath.of('profiles').index(i), profiles.length === 1, pluginFiles, errors)),
    extenders: ((given.extenders as readonly Raw[] | undefined) ?? []).map((extender, i) => extenderOf(extender, FieldPath.of('extenders').index(i), errors)),
    pluginFiles,
  }
}

function profileOf(given: Raw, path: FieldPath, only: boolean, pluginFiles: string[], errors: FieldError[]): ProfileConfig {
  const sets = (given.plugins ?? {}) as Readonly<Record<string, Raw>>
  const plugins: Partial<Record<ExtensionPoint | 'multiPoint', PluginSet>> = {}
  for (const point of [...extensionPoints, 'multiPoint'] as const) {
    const { enabled = [], disabled = [] } = (sets[point] ?? {}) as { enabled?: readonly EnabledPlugin[]; disabled?: readonly EnabledPlugin[] }
    if (enabled.length > 0 || disabled.length > 0) plugins[point] = { enabled, disabled: disabled.map(({ name }) => name) }
  }
  const args: Record<string, unknown> = emptyMap()
  const seen = new Set<string>()
  for (const [i, entry] of ((given.pluginConfig ?? []) as readonly { readonly name?: string; readonly args?: unknown }[]).entries()) {
    const { name = '' } = entry
    const at = path.child('pluginConfig').index(i)
    if (seen.has(name)) errors.push(fieldError.duplicate(at, name))
    seen.add(name)
    if (name === pluginFilesEntry) pluginFiles.push(...filesOf(entry.args, at.child('args', 'files'), errors))
    else args[name] = pluginArgs(name, entry.args, at.child('args'), errors)
  }
  return {
    schedulerName: given.schedulerName ?? (only ? 'default-scheduler' : ''),
    percentageOfNodesToScore: given.percentageOfNodesToScore,
    plugins,
    args: { ...args },
  }
}

function filesOf(args: unknown, path: FieldPath, errors: FieldError[]): readonly string[] {
  const { files } = (args ?? {}) as { readonly files?: unknown }
  if (Array.isArray(files) && files.every((file) => typeof file === 'string' && file !== '')) return files as string[]
  errors.push(fieldError.invalid(path, files, 'must be a list of file names'))
  return []
}

function extenderOf(given: Raw, path: FieldPath, errors: FieldError[]): ExtenderConfig {
  const tls = given.tlsConfig as Partial<ExtenderTlsConfig> | undefined
  const managed = (given.managedResources ?? []) as readonly { readonly name?: string; readonly ignoredByScheduler?: boolean }[]
  return {
    urlPrefix: given.urlPrefix ?? '',
    filterVerb: given.filterVerb ?? '',
    preemptVerb: given.preemptVerb ?? '',
    prioritizeVerb: given.prioritizeVerb ?? '',
    bindVerb: given.bindVerb ?? '',
    weight: given.weight ?? 0,
    enableHttps: given.enableHTTPS ?? false,
    tlsConfig: tls && { ...tls, insecure: tls.insecure ?? false },
    httpTimeoutMs: durationMs(given.httpTimeout, 0, path.child('httpTimeout'), errors) || 5000,
    nodeCacheCapable: given.nodeCacheCapable ?? false,
    managedResources: managed.map(({ name = '', ignoredByScheduler = false }) => ({ name, ignoredByScheduler })),
    ignorable: given.ignorable ?? false,
  }
}

function validate(configuration: KubeSchedulerConfiguration, given: Raw, errors: FieldError[]): void {
  const { parallelism, podInitialBackoffSeconds: initial, podMaxBackoffSeconds: longest } = configuration
  validateLeaderElection(configuration, errors)
  if (parallelism <= 0) errors.push(fieldError.invalid(FieldPath.of('parallelism'), parallelism, 'should be an integer value greater than zero'))
  if (initial <= 0) errors.push(fieldError.invalid(FieldPath.of('podInitialBackoffSeconds'), initial, 'must be greater than 0'))
  if (longest < initial)
    errors.push(fieldError.invalid(FieldPath.of('podMaxBackoffSeconds'), longest, 'must be greater than or equal to PodInitialBackoffSeconds'))
  validatePercentage(configuration.percentageOfNodesToScore, FieldPath.of('percentageOfNodesToScore'), errors)
  if (given.profiles !== undefined && configuration.profiles.length === 0) errors.push(fieldError.required(FieldPath.of('profiles')))
  validateProfiles(configuration.profiles, FieldPath.of('profiles'), errors)
  validateExtenders(configuration.extenders, FieldPath.of('extenders'), errors)
}

function validateLeaderElection({ leaderElection }: KubeSchedulerConfiguration, errors: FieldError[]): void {
  const { leaderElect, leaseDurationMs, renewDeadlineMs, retryPeriodMs, resourceLock } = leaderElection
  if (!leaderElect) return
  const path = FieldPath.of('leaderElection')
  if (leaseDurationMs <= 0) errors.push(fieldError.invalid(path.child('leaseDuration'), leaseDurationMs / 1000, 'must be greater than zero'))
  if (renewDeadlineMs <= 0) errors.push(fieldError.invalid(path.child('renewDeadline'), renewDeadlineMs / 1000, 'must be greater than zero'))
  if (retryPeriodMs <= 0) errors.push(fieldError.invalid(path.child('retryPeriod'), retryPeriodMs / 1000, 'must be greater than zero'))
  if (leaseDurationMs <= renewDeadlineMs)
    errors.push(fieldError.invalid(path.child('leaseDuration'), renewDeadlineMs / 1000, 'LeaseDuration must be greater than RenewDeadline'))
  if (resourceLock !== 'leases') errors.push(fieldError.invalid(path.child('resourceLock'), resourceLock, 'resourceLock value must be "leases"'))
}

function validatePercentage(percentage: number | undefined, path: FieldPath, errors: FieldError[]): void {
  if (percentage !== undefined && (percentage < 0 || percentage > 100)) errors.push(fieldError.invalid(path, percentage, 'not in valid range [0-100]'))
}

function validateProfiles(profiles: readonly ProfileConfig[], path: FieldPath, errors: FieldError[]): void {
  const seen = new Map<string, number>()
  const sort = JSON.stringify(profiles[0]?.plugins.queueSort)
  profiles.forEach(({ schedulerName, percentageOfNodesToScore, plugins }, i) => {
    const at = path.index(i)
    if (schedulerName === '') errors.push(fieldError.required(at.child('schedulerName')))
    const first = seen.get(schedulerName)
    if (first !== undefined) errors.push(fieldError.duplicate(at.child('schedulerName'), path.index(first).child('schedulerName').toString()))
    seen.set(schedulerName, i)
    validatePercentage(percentageOfNodesToScore, at.child('percentageOfNodesToScore'), errors)
    if (JSON.stringify(plugins.queueSort) !== sort)
      errors.push(fieldError.invalid(at.child('plugins', 'queueSort'), plugins.queueSort, 'must be the same for all profiles'))
  })
}

function validateExtenders(extenders: readonly ExtenderConfig[], path: FieldPath, errors: FieldError[]): void {
  const seen = new Set<string>()
  extenders.forEach(({ prioritizeVerb, weight, managedResources }, i) => {
    if (prioritizeVerb !== '' && weight <= 0)
      errors.push(fieldError.invalid(path.index(i).child('weight'), weight, 'must have a positive weight applied to it'))
    managedResources.forEach(({ name }, j) => {
      const at = path.index(i).child('managedResources').index(j).child('name')
      if (!isExtended(name)) errors.push(fieldError.invalid(at, name, 'is an invalid extended resource name'))
      if (seen.has(name)) errors.push(fieldError.invalid(at, name, 'duplicate extender managed resource name'))
      seen.add(name)
    })
  })
  const binders = extenders.filter(({ bindVerb }) => bindVerb !== '').length
  if (binders > 1) errors.push(fieldError.invalid(path, `found ${binders} extenders implementing bind`, 'only one extender can implement bind'))
}

/** Whether the resource has a domain outside kubernetes.io. Upstream: v1helper.IsExtendedResourceName. */
function isExtended(name: string): boolean {
  return name.includes('/') && !/(^|\.)kubernetes\.io\//.test(name) && !name.startsWith('requests.') && isQualifiedName(name).length === 0
}
