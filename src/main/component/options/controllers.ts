/**
 * The flags of the controllers (L5): which run, with how many workers each, and what they go by.
 * Upstream: cmd/kube-controller-manager/app/options, controller-manager/options/generic.go, cloud-provider/options/kubecloudshared.go (v1.36).
 */
import { absentControllers } from '#controllers/absent'
import { isKnownController } from '#controllers/framework/manager'
import type { ControllerOptions } from '#controllers/index'
import { controllers } from '#controllers/index'
import { decimal, duration, type Flag, type FlagValues, flag, list, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { authoritiesOf, readNamed, usable } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

/** Flag, controller, workers by default. */
const concurrency = [
  ['concurrent-cron-job-syncs', 'cronjob-controller', 5],
  ['concurrent-daemonset-syncs', 'daemonset-controller', 2],
  ['concurrent-deployment-syncs', 'deployment-controller', 5],
  ['concurrent-device-taint-eviction-syncs', 'device-taint-eviction-controller', 10],
  ['concurrent-endpoint-syncs', 'endpoints-controller', 5],
  ['concurrent-ephemeralvolume-syncs', 'ephemeral-volume-controller', 5],
  ['concurrent-gc-syncs', 'garbage-collector-controller', 20],
  ['concurrent-horizontal-pod-autoscaler-syncs', 'horizontal-pod-autoscaler-controller', 5],
  ['concurrent-job-syncs', 'job-controller', 5],
  ['concurrent-namespace-syncs', 'namespace-controller', 10],
  ['concurrent-rc-syncs', 'replicationcontroller-controller', 5],
  ['concurrent-replicaset-syncs', 'replicaset-controller', 5],
  ['concurrent-resource-quota-syncs', 'resourcequota-controller', 5],
  ['concurrent-resourceclaim-syncs', 'resourceclaim-controller', 50],
  ['concurrent-service-endpoint-syncs', 'endpointslice-controller', 5],
  ['concurrent-service-syncs', 'service-lb-controller', 1],
  ['concurrent-serviceaccount-token-syncs', 'serviceaccount-token-controller', 5],
  ['concurrent-statefulset-syncs', 'statefulset-controller', 5],
  ['concurrent-ttl-after-finished-syncs', 'ttl-after-finished-controller', 5],
  ['concurrent-validating-admission-policy-status-syncs', 'validatingadmissionpolicy-status-controller', 5],
  ['mirroring-concurrent-service-endpoint-syncs', 'endpointslice-mirroring-controller', 5],
] as const

type ConcurrencyFlag = (typeof concurrency)[number][0]

const workerFlags = Object.fromEntries(
  concurrency.map(([name, controller, workers]) => [name, whole(`How many objects the ${controller} works on at once`, workers)]),
) as Readonly<Record<ConcurrencyFlag, Flag<number>>>

const flags = {
  controllers: list(
    `Which run: * means all that are on by default, a name that one, -name not that one. On by default: ${names(false)}. Only when named: ${names(true)}`,
    ['*'],
  ),
  ...workerFlags,
  'allocate-node-cidrs': flag('Give nodes ranges of addresses for their pods'),
  'cluster-cidr': text('The range, or one of each family, that nodes get theirs from'),
  'cluster-name': text('Accepted, without effect: cloud providers go by it', 'kubernetes'),
  'enable-garbage-collector': flag('Delete objects whose owners are gone; must match the flag of the API server', true),
  'endpoint-updates-batch-period': duration('How long changes of pods are gathered before Endpoints are written', 0),
  'endpointslice-updates-batch-period': duration('How long changes of pods are gathered before EndpointSlices are written', 0),
  'horizontal-pod-autoscaler-cpu-initialization-period': duration(
    'After the start of a pod its CPU usage counts only if the pod was ready during the whole measurement, for this long',
    300_000,
  ),
  'horizontal-pod-autoscaler-downscale-stabilization': duration(
    'An autoscaler does not scale below any recommendation of the last period of this length',
    300_000,
  ),
  'horizontal-pod-autoscaler-initial-readiness-delay': duration(
    'A pod that became unready within this time after its start counts as one that has not been ready yet',
    30_000,
  ),
  'horizontal-pod-autoscaler-sync-period': duration('How often each autoscaler is looked at', 15_000),
  'horizontal-pod-autoscaler-tolerance': decimal('How far usage may be off its target, as a part of it, before an autoscaler scales', 0.1),
  'large-cluster-size-threshold': whole('From how many nodes on a zone counts as big', 50),
  'legacy-service-account-token-clean-up-period': duration('Secret-based tokens that are unused for this long are deleted', 8760 * 3_600_000),
  'max-endpoints-per-slice': whole('How many endpoints an EndpointSlice has at most', 100),
  'mirroring-endpointslice-updates-batch-period': duration('How long changes of Endpoints are gathered before they are mirrored', 0),
  'mirroring-max-endpoints-per-subset': whole('How many endpoints of a subset of Endpoints are mirrored at most', 1000),
  'namespace-sync-period': duration('How often namespaces that are being deleted are looked at without cause', 300_000),
  'node-cidr-mask-size': whole("Bits of a node's range; 0: 24 for IPv4, 64 for IPv6", 0),
  'node-cidr-mask-size-ipv4': whole("Bits of a node's range of IPv4 where there are both families; 0: 24", 0),
  'node-cidr-mask-size-ipv6': whole("Bits of a node's range of IPv6 where there are both families; 0: 64", 0),
  'node-eviction-rate': decimal('How many nodes a second pods are evicted from in a zone that is well', 0.1),
  'node-monitor-grace-period': duration('How long a node may say nothing before it counts as unknown', 50_000),
  'node-monitor-period': duration('How often nodes are looked at', 5000),
  'node-startup-grace-period': duration('How long a node may say nothing while it starts', 60_000),
  'pod-eviction-timeout': text('Accepted with a warning, without effect: v1.27 removed it'),
  'resource-quota-sync-period': duration('Interval of the full recalculation of quotas', 300_000),
  'root-ca-file': text("Who signs the API server's certificate, for the ConfigMap kube-root-ca.crt; empty: as the kubeconfig says"),
  'secondary-node-eviction-rate': decimal('How many nodes a second pods are evicted from in a big zone that is partly out', 0.01),
  'service-account-private-key-file': text('Signs the tokens of secrets for service accounts; empty: such secrets stay empty'),
  'service-cluster-ip-range': text('The range of Services, which no node may have'),
  'terminated-pod-gc-threshold': whole('How many pods that have ended are kept; 0 or less: all', 12_500),
  'unhealthy-zone-threshold': decimal('The part of a zone whose nodes must be out for it to count as partly out', 0.55),
  'use-service-account-credentials': flag('Each controller acts as a service account of its own'),
} as const

type Values = FlagValues<typeof flags>

export interface ControllerSettings {
  /** As createControllerManager takes them. */
  readonly controllers: readonly string[]
  /** Without what other groups say: signing. `rootCa`: as the flag says. */
  readonly options: ControllerOptions
  /** About flags without effect. */
  readonly warnings: readonly string[]
  /** PEM. */
  readonly serviceAccountKey: string | undefined
  readonly useServiceAccountCredentials: boolean
}

export const controllerOptions = optionGroup({
  name: 'Controllers',
  flags,
  async settings(values, context): Promise<ControllerSettings> {
    const faults = checks.flatMap((check) => check(values))
    if (faults.length > 0) throw new UsageError(faults)
    const rootCa = await readNamed(values['root-ca-file'], context)
    if (rootCa !== undefined) usable(() => authoritiesOf([rootCa]))
    return {
      warnings: values['pod-eviction-timeout'] === '' ? [] : [podEvictionTimeout],
      controllers: [...switchedOff(values), ...values.controllers.filter((entry) => !absent(entry))],
      options: { ...optionsOf(values), rootCa },
      serviceAccountKey: await readNamed(values['service-account-private-key-file'], context),
      useServiceAccountCredentials: values['use-service-account-credentials'],
    }
  },
})

const podEvictionTimeout =
  '--pod-eviction-timeout has no effect: pods leave lost nodes after the tolerationSeconds of their tolerations, which --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds of the API server set'

function names(disabledByDefault: boolean): string {
  return controllers
    .filter((one) => (one.disabledByDefault ?? false) === disabledByDefault)
    .map(({ name }) => name)
    .sort()
    .join(', ')
}

/** The controller of upstream's that an entry of --controllers is about, where it is not here. */
function absent(entry: string) {
  const called = entry.replace(/^-/, '')
  return absentControllers.find(({ name, aliases }) => name === called || aliases.includes(called))
}

/** What other flags turn off, whatever --controllers says. */
function switchedOff(values: Values): string[] {
  return [...(values['allocate-node-cidrs'] ? [] : ['-node-ipam-controller']), ...(values['enable-garbage-collector'] ? [] : ['-garbage-collector-controller'])]
}

function optionsOf(values: Values): ControllerOptions {
  const size = (name: 'node-cidr-mask-size' | 'node-cidr-mask-size-ipv4' | 'node-cidr-mask-size-ipv6') => values[name] || undefined
  return {
    concurrentSyncs: Object.fromEntries(concurrency.map(([name, controller]) => [controller, values[name]])),
    clusterCidr: values['cluster-cidr'] || undefined,
    serviceCidr: values['service-cluster-ip-range'] || undefined,
    nodeCidrMaskSize: size('node-cidr-mask-size'),
    nodeCidrMaskSizeIpv4: size('node-cidr-mask-size-ipv4'),
    nodeCidrMaskSizeIpv6: size('node-cidr-mask-size-ipv6'),
    nodeMonitorPeriodMs: values['node-monitor-period'],
    nodeMonitorGracePeriodMs: values['node-monitor-grace-period'],
    nodeStartupGracePeriodMs: values['node-startup-grace-period'],
    nodeEviction: {
      evictionRate: values['node-eviction-rate'],
      secondaryEvictionRate: values['secondary-node-eviction-rate'],
      largeClusterSizeThreshold: values['large-cluster-size-threshold'],
      unhealthyZoneThreshold: values['unhealthy-zone-threshold'],
    },
    endpoints: {
      maxPerSlice: values['max-endpoints-per-slice'],
      maxPerSubset: values['mirroring-max-endpoints-per-subset'],
      batchMs: values['endpoint-updates-batch-period'],
      sliceBatchMs: values['endpointslice-updates-batch-period'],
      mirrorBatchMs: values['mirroring-endpointslice-updates-batch-period'],
    },
    autoscaler: {
      syncPeriodMs: values['horizontal-pod-autoscaler-sync-period'],
      downscaleStabilizationMs: values['horizontal-pod-autoscaler-downscale-stabilization'],
      tolerance: values['horizontal-pod-autoscaler-tolerance'],
      cpuInitializationMs: values['horizontal-pod-autoscaler-cpu-initialization-period'],
      initialReadinessDelayMs: values['horizontal-pod-autoscaler-initial-readiness-delay'],
    },
    namespaceSyncPeriodMs: values['namespace-sync-period'],
    terminatedPodGcThreshold: values['terminated-pod-gc-threshold'],
    resourceQuotaSyncPeriodMs: values['resource-quota-sync-period'],
    legacyTokenCleanUpPeriodMs: values['legacy-service-account-token-clean-up-period'],
  }
}

/** As many as an EndpointSlice may have. */
const maxEndpoints = 1000

const checks: readonly ((values: Values) => readonly string[])[] = [
  (values) =>
    values.controllers.flatMap((entry) => {
      const name = entry.replace(/^-/, '')
      if (name === '*' || isKnownController(controllers, name)) return []
      const found = absent(entry)
      if (!found) return [`"${name}" is not in the list of known controllers`]
      return found.reason === undefined || entry.startsWith('-') ? [] : [`"${name}" cannot run: ${found.reason}`]
    }),
  (values) => concurrency.filter(([name]) => values[name] <= 0).map(([name]) => `${name} must be greater than 0, but got ${values[name]}`),
  (values) =>
    (['max-endpoints-per-slice', 'mirroring-max-endpoints-per-subset'] as const)
      .filter((name) => values[name] < 1 || values[name] > maxEndpoints)
      .map((name) => `${name} must be between 1 and ${maxEndpoints}, but got ${values[name]}`),
  (values) =>
    (['namespace-sync-period', 'horizontal-pod-autoscaler-sync-period'] as const)
      .filter((name) => values[name] <= 0)
      .map((name) => `--${name} must be greater than zero`),
  (values) => (values['allocate-node-cidrs'] && values['cluster-cidr'] === '' ? ['--cluster-cidr is required with --allocate-node-cidrs'] : []),
  (values) => {
    const { 'node-monitor-grace-period': graceMs, 'node-monitor-period': periodMs } = values
    return graceMs > 0 && periodMs > 0 ? [] : ['--node-monitor-grace-period and --node-monitor-period must be greater than zero']
  },
]
