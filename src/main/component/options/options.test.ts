/** The flags of the components that run alone, against upstream's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controllers } from '#controllers/index'
import { type Flags, UsageError } from '../../apiserver/options/flags.ts'
import { readOptions } from '../../apiserver/options/readOptions.ts'
import { controllerManagerGroups } from '../../layouts/controllerManager.ts'
import { schedulerGroups } from '../../layouts/scheduler.ts'
import { defaultLease, leaseOf } from './leaderElection.ts'

const noFiles = {
  file: (path: string) => ({ path, read: () => Promise.reject(new Error(`${path} cannot be read`)), follow: () => {} }),
}
const filesOf = (texts: Readonly<Record<string, string>>) => ({
  file: (path: string) => ({ path, read: () => Promise.resolve(texts[path] ?? ''), follow: () => {} }),
})
const shown = (groups: object) => {
  const flags: Flags = Object.assign({}, ...Object.values(groups).map((group) => group.flags))
  return (name: string) => flags[name]?.format(flags[name]?.default)
}
const faultsOf = (reading: Promise<unknown>) =>
  reading.then(
    () => [],
    (error: unknown) => (error instanceof UsageError ? error.faults : assert.fail(String(error))),
  )

/** Upstream's defaults (v1.36), of flags that both have. */
const shared = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '15s',
  'leader-elect-renew-deadline': '10s',
  'leader-elect-retry-period': '2s',
  'leader-elect-resource-lock': 'leases',
  'leader-elect-resource-namespace': 'kube-system',
  'bind-address': '0.0.0.0',
  'authentication-tolerate-lookup-failure': 'true',
  'authentication-skip-lookup': 'false',
  'authentication-token-webhook-cache-ttl': '10s',
  'authorization-webhook-cache-authorized-ttl': '10s',
  'authorization-always-allow-paths': '[/healthz,/readyz,/livez]',
  profiling: 'true',
}

test('HA-04 kube-scheduler’s flags have upstream’s names and defaults', () => {
  const want = { ...shared, 'secure-port': '10259', 'leader-elect-resource-name': 'kube-scheduler', 'kube-api-qps': '50', 'kube-api-burst': '100' }
  for (const [name, value] of Object.entries(want)) assert.equal(shown(schedulerGroups)(name), value, name)
})

test('CTL-22 kube-controller-manager’s flags have upstream’s names and defaults', () => {
  const want = {
    ...shared,
    'secure-port': '10257',
    'leader-elect-resource-name': 'kube-controller-manager',
    'kube-api-qps': '20',
    'kube-api-burst': '30',
    controllers: '[*]',
    'allocate-node-cidrs': 'false',
    'cluster-signing-duration': '8760h0m0s',
    'concurrent-cron-job-syncs': '5',
    'concurrent-daemonset-syncs': '2',
    'concurrent-deployment-syncs': '5',
    'concurrent-endpoint-syncs': '5',
    'concurrent-ephemeralvolume-syncs': '5',
    'concurrent-gc-syncs': '20',
    'concurrent-job-syncs': '5',
    'concurrent-namespace-syncs': '10',
    'concurrent-rc-syncs': '5',
    'concurrent-replicaset-syncs': '5',
    'concurrent-resource-quota-syncs': '5',
    'concurrent-service-endpoint-syncs': '5',
    'concurrent-service-syncs': '1',
    'concurrent-serviceaccount-token-syncs': '5',
    'concurrent-statefulset-syncs': '5',
    'concurrent-ttl-after-finished-syncs': '5',
    'mirroring-concurrent-service-endpoint-syncs': '5',
    'enable-garbage-collector': 'true',
    'attach-detach-reconcile-sync-period': '1m0s',
    'disable-attach-detach-reconcile-sync': 'false',
    'disable-force-detach-on-timeout': 'false',
    'enable-dynamic-provisioning': 'true',
    'endpoint-updates-batch-period': '0s',
    'endpointslice-updates-batch-period': '0s',
    'max-endpoints-per-slice': '100',
    'mirroring-endpointslice-updates-batch-period': '0s',
    'mirroring-max-endpoints-per-subset': '1000',
    'namespace-sync-period': '5m0s',
    'enable-hostpath-provisioner': 'false',
    'pv-recycler-increment-timeout-nfs': '30',
    'pv-recycler-minimum-timeout-hostpath': '60',
    'pv-recycler-minimum-timeout-nfs': '300',
    'pv-recycler-timeout-increment-hostpath': '30',
    'pvclaimbinder-sync-period': '15s',
    'large-cluster-size-threshold': '50',
    'legacy-service-account-token-clean-up-period': '8760h0m0s',
    'node-eviction-rate': '0.1',
    'node-monitor-grace-period': '50s',
    'node-monitor-period': '5s',
    'node-startup-grace-period': '1m0s',
    'resource-quota-sync-period': '5m0s',
    'secondary-node-eviction-rate': '0.01',
    'terminated-pod-gc-threshold': '12500',
    'unhealthy-zone-threshold': '0.55',
    'use-service-account-credentials': 'false',
  }
  for (const [name, value] of Object.entries(want)) assert.equal(shown(controllerManagerGroups)(name), value, name)
})

test('CTL-22 what the controllers’ flags say reaches the controllers', async () => {
  const args = [
    '--controllers=*,-ttl,bootstrapsigner',
    '--concurrent_rc_syncs=7',
    '--concurrent-gc-syncs=3',
    '--cluster-cidr=10.0.0.0/8',
    '--allocate-node-cidrs',
  ]
  const { controllers: read } = await readOptions(controllerManagerGroups, [...args, '--node-cidr-mask-size=26', '--node-eviction-rate=0.5'], noFiles)
  assert.deepEqual(read.controllers, ['*', '-ttl', 'bootstrapsigner'])
  const { concurrentSyncs = {}, clusterCidr, nodeCidrMaskSize, nodeEviction, rootCa } = read.options
  assert.deepEqual([concurrentSyncs['replicationcontroller-controller'], concurrentSyncs['garbage-collector-controller']], [7, 3])
  assert.deepEqual([clusterCidr, nodeCidrMaskSize, nodeEviction?.evictionRate, rootCa], ['10.0.0.0/8', 26, 0.5, undefined])
})

test('CTL-22 every controller that a number of workers is for exists', async () => {
  const { controllers: read } = await readOptions(controllerManagerGroups, [], noFiles)
  const known = new Set(controllers.map(({ name }) => name))
  assert.deepEqual(
    Object.keys(read.options.concurrentSyncs ?? {}).filter((name) => !known.has(name)),
    [],
  )
  // Without --allocate-node-cidrs no controller assigns ranges to nodes.
  assert.deepEqual(read.controllers, ['-node-ipam-controller', '*'])
})

test('HA-04 a form of the log and a version of TLS that there are not are refused', async () => {
  const args = ['--logging-format=xml', '--tls-min-version=VersionTLS9']
  const refused = readOptions(schedulerGroups, args, noFiles)
  await assert.rejects(refused, /"xml" must be "text" or "json"/)
  await assert.rejects(refused, /VersionTLS9/)
  const { logs } = await readOptions(schedulerGroups, ['--logging-format=json', '--v=4'], noFiles)
  assert.deepEqual(logs, { verbosity: 4, format: 'json' })
})

test('CTL-22 every fault of the flags is named', async () => {
  const args = [
    '--controllers=nope,-neither',
    '--concurrent-job-syncs=0',
    '--cluster-signing-cert-file=a',
    '--leader-elect-renew-deadline=x',
    '--secure-port=70000',
  ]
  assert.deepEqual(await faultsOf(readOptions(controllerManagerGroups, args, noFiles)), [
    'invalid argument "x" for "--leader-elect-renew-deadline" flag: expected a duration such as 1m30s',
  ])
  assert.deepEqual(
    await faultsOf(
      readOptions(
        controllerManagerGroups,
        args.filter((arg) => !arg.includes('=x')),
        noFiles,
      ),
    ),
    [
      '"nope" is not in the list of known controllers',
      '"neither" is not in the list of known controllers',
      'concurrent-job-syncs must be greater than 0, but got 0',
      '--cluster-signing-cert-file and --cluster-signing-key-file must be specified together',
      '--secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port',
    ],
  )
})

test('CTL-22 controllers of upstream’s that are not here can be turned off, and asked for where upstream does nothing', async () => {
  const read = (value: string) => readOptions(controllerManagerGroups, [`--controllers=${value}`], noFiles)
  const { controllers: settings } = await read('*,-selinux-warning-controller,-ttl,route,storage-version-gc')
  assert.deepEqual(settings.controllers, ['-node-ipam-controller', '*', '-ttl'])
  assert.deepEqual(await faultsOf(read('*,selinux-warning-controller')), [
    '"selinux-warning-controller" cannot run: SELinux labels of volumes are not compared',
  ])
})

test('AUT-01 the flags of the autoscaler reach the controller, and a period of zero is refused', async () => {
  const name = (flag: string) => `--horizontal-pod-autoscaler-${flag}`
  const args = ['sync-period=5s', 'downscale-stabilization=1m', 'tolerance=0.2', 'cpu-initialization-period=2m', 'initial-readiness-delay=10s'].map(name)
  const read = (more: readonly string[]) => readOptions(controllerManagerGroups, more, noFiles)
  const { options } = (await read([...args, '--concurrent-horizontal-pod-autoscaler-syncs=7'])).controllers
  assert.deepEqual(options.autoscaler, {
    syncPeriodMs: 5000,
    downscaleStabilizationMs: 60_000,
    tolerance: 0.2,
    cpuInitializationMs: 120_000,
    initialReadinessDelayMs: 10_000,
  })
  assert.equal(options.concurrentSyncs?.['horizontal-pod-autoscaler-controller'], 7)
  assert.deepEqual(await faultsOf(read([name('sync-period=0s')])), ['--horizontal-pod-autoscaler-sync-period must be greater than zero'])
})

test('CTL-22 flags about clouds are taken, unless they ask for what is not there', async () => {
  const taken = ['--cloud-provider=external', '--configure-cloud-routes=false', '--route-reconciliation-period=5s', '--min-resync-period=1h']
  assert.deepEqual(await faultsOf(readOptions(controllerManagerGroups, taken, noFiles)), [])
  const faults = await faultsOf(readOptions(controllerManagerGroups, ['--cloud-provider=aws', '--cidr-allocator-type=CloudAllocator'], noFiles))
  assert.deepEqual(faults, ['--cidr-allocator-type "CloudAllocator" is not there: only RangeAllocator', '--cloud-provider "aws" is not there: only external'])
})

test('CTL-22 one authority signs for all, or one for each signer, not both', async () => {
  const both = [
    '--cluster-signing-cert-file=a',
    '--cluster-signing-key-file=b',
    '--cluster-signing-kubelet-client-cert-file=c',
    '--cluster-signing-kubelet-client-key-file=d',
  ]
  assert.deepEqual(await faultsOf(readOptions(controllerManagerGroups, both, noFiles)), ['cannot specify default and per controller certs at the same time'])
  const none = await readOptions(controllerManagerGroups, [], noFiles)
  assert.equal(none.signing.signing, undefined)
  const { testCertificates } = await import('#testing/testCertificates')
  const { cert, key } = await testCertificates('CN=signer')
  const { signing } = await readOptions(controllerManagerGroups, [...both.slice(2), '--cluster-signing-duration=1h'], filesOf({ c: cert, d: key }))
  assert.equal(signing.signing?.durationMs, 3_600_000)
  assert.equal(signing.signing?.authorityOf('kubernetes.io/kube-apiserver-client-kubelet')?.cert, cert)
  assert.equal(signing.signing?.authorityOf('kubernetes.io/kubelet-serving'), undefined)
})

test('HA-04 flags of leader election override the configuration file, those of the connection do not', async () => {
  const config = [
    'apiVersion: kubescheduler.config.k8s.io/v1',
    'kind: KubeSchedulerConfiguration',
    'leaderElection: {leaseDuration: 40s, renewDeadline: 30s, retryPeriod: 5s, resourceName: mine}',
    'clientConnection: {kubeconfig: /a}',
  ].join('\n')
  const args = ['--config=c', '--kubeconfig=/b', '--leader-elect-renew-deadline=20s', '--leader-elect=false']
  const { scheduler, lease } = await readOptions(schedulerGroups, args, filesOf({ c: config }))
  assert.equal(scheduler.isFromFile, true)
  assert.equal(scheduler.configuration.clientConnection.kubeconfig, '/a')
  const { leaderElect, leaseDurationMs, renewDeadlineMs, retryPeriodMs, resourceName } = leaseOf(lease, scheduler.configuration.leaderElection)
  assert.deepEqual([leaderElect, leaseDurationMs, renewDeadlineMs, retryPeriodMs, resourceName], [false, 40_000, 20_000, 5000, 'mine'])
})

for (const [args, want] of [
  [['--leader-elect-lease-duration=10s'], ['leaseDuration must be greater than renewDeadline']],
  [['--leader-elect-retry-period=9s'], ['renewDeadline must be greater than retryPeriod*JitterFactor']],
  [['--leader-elect-resource-lock=endpoints'], ['resourceLock value must be "leases"']],
  [['--leader-elect-resource-lock=endpoints', '--leader-elect=false'], []],
  [['--leader-elect-lease-duration=30s', '--leader-elect-renew-deadline=20s'], []],
] as const) {
  test(`HA-04 ${args.join(' ')} is ${want.length > 0 ? 'refused' : 'fine'}`, async () => {
    const { lease } = await readOptions(schedulerGroups, args, noFiles)
    const read = async () => leaseOf(lease, defaultLease('kube-scheduler'))
    assert.deepEqual(await faultsOf(read()), want)
  })
}

test('HA-04 unknown flags are refused, all of them', async () => {
  assert.deepEqual(await faultsOf(readOptions(schedulerGroups, ['--foo', '--bar=1', 'x'], noFiles)), [
    'unknown flag: --foo',
    'unknown flag: --bar',
    'unknown argument: x',
  ])
})
