/** The flags of the reference documents for clusters of 5,000 nodes: each is read as docs/observability.md says. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { serverOptions } from '#main/apiserver/options/index'
import { readOptions } from '#main/apiserver/options/readOptions'
import { localControllerGroups, localSchedulerGroups } from '#main/component/options/local'
import { kubeletGroups } from '#main/layouts/kubelet'

const noFiles = { file: (path: string) => ({ path, read: () => Promise.reject(new Error(`${path} cannot be read`)), follow: () => {} }) }

/** Component → flags, as the documents have them. */
const flags = {
  'API server': {
    'max-requests-inflight': '3000',
    'max-mutating-requests-inflight': '1000',
    'enable-priority-and-fairness': 'true',
    'watch-cache-sizes': 'deployments#1000,pods#5000',
    'request-timeout': '1m',
    profiling: 'true',
    'disable-admission-plugins': 'DefaultStorageClass',
  },
  'controller manager': {
    'concurrent-deployment-syncs': '50',
    'concurrent-replicaset-syncs': '50',
    'concurrent-statefulset-syncs': '20',
    'concurrent-daemonset-syncs': '10',
    'concurrent-job-syncs': '20',
    'concurrent-endpoint-syncs': '20',
    'concurrent-service-syncs': '10',
    'concurrent-namespace-syncs': '20',
    'concurrent-gc-syncs': '30',
    'node-monitor-period': '5s',
    'node-monitor-grace-period': '40s',
    'pod-eviction-timeout': '5m',
    'leader-elect': 'true',
    'leader-elect-lease-duration': '15s',
    'leader-elect-renew-deadline': '10s',
    'leader-elect-retry-period': '2s',
  },
  scheduler: { 'leader-elect': 'true', 'scheduling-queue-size': '10000' },
  kubelet: {
    'node-status-update-frequency': '10s',
    'node-status-report-frequency': '5m',
    'image-gc-high-threshold': '85',
    'image-gc-low-threshold': '80',
    'minimum-image-ttl-duration': '2m',
    'eviction-hard': 'memory.available<100Mi,nodefs.available<10%',
    'eviction-soft': 'memory.available<300Mi,nodefs.available<15%',
    'eviction-soft-grace-period': 'memory.available=1m,nodefs.available=1m',
    'kube-api-qps': '50',
    'kube-api-burst': '100',
    'max-pods': '110',
    'serialize-image-pulls': 'false',
  },
} as const

const argsOf = (component: keyof typeof flags) => Object.entries(flags[component]).map(([name, value]) => `--${name}=${value}`)

test('OBS-17 the API server honours the flags of large clusters', async () => {
  const { generic, features, storage, flags: shown } = await serverOptions(argsOf('API server'), noFiles)
  assert.deepEqual(generic.maxInFlight, { readOnly: 3000, mutating: 1000 })
  assert.deepEqual([generic.requestTimeoutMs, generic.profiling, features.priorityAndFairness], [60_000, true, true])
  assert.equal(shown['disable-admission-plugins'], '[DefaultStorageClass]')
  assert.deepEqual(storage.warnings, ['--watch-cache-sizes has no effect: the watch cache holds each resource whole, once'])
})

test('OBS-17 the controllers honour the flags of large clusters, and warn about the one that has no effect', async () => {
  const { controllers, lease } = await readOptions(localControllerGroups, argsOf('controller manager'), noFiles)
  const { concurrentSyncs = {}, nodeMonitorPeriodMs, nodeMonitorGracePeriodMs } = controllers.options
  const workers = ['deployment', 'replicaset', 'statefulset', 'daemonset', 'job', 'namespace', 'garbage-collector'].map(
    (name) => concurrentSyncs[`${name}-controller`],
  )
  assert.deepEqual(workers, [50, 50, 20, 10, 20, 20, 30])
  assert.deepEqual([nodeMonitorPeriodMs, nodeMonitorGracePeriodMs], [5000, 40_000])
  assert.deepEqual(
    controllers.warnings.map((text) => text.split(' ')[0]),
    ['--pod-eviction-timeout'],
  )
  assert.ok(lease)
})

test('OBS-17 the scheduler warns about a size of its queue', async () => {
  const { scheduler } = await readOptions(localSchedulerGroups, argsOf('scheduler'), noFiles)
  assert.deepEqual(scheduler.warnings, ['--scheduling-queue-size has no effect: the queue holds every pod that waits'])
})

test('OBS-17 the kubelet honours the flags of large clusters', async () => {
  const { configuration } = await readOptions(kubeletGroups, argsOf('kubelet'), noFiles)
  const { document } = configuration
  assert.deepEqual(
    [document.nodeStatusUpdateFrequency, document.nodeStatusReportFrequency, document.imageGCHighThresholdPercent, document.imageGCLowThresholdPercent],
    ['10s', '5m', 85, 80],
  )
  assert.deepEqual(document.evictionSoft, { 'memory.available': '300Mi', 'nodefs.available': '15%' })
  assert.deepEqual([document.kubeAPIQPS, document.kubeAPIBurst, document.maxPods, document.serializeImagePulls], [50, 100, 110, false])
})

test('OBS-17 docs/observability.md has each flag of large clusters in its table', () => {
  const page = readFileSync(new URL('../../../docs/observability.md', import.meta.url), 'utf8')
  const [, table = ''] = /## Flags for large clusters\n([\s\S]*?)(\n## |$)/.exec(page) ?? []
  const listed = [...table.matchAll(/^\| ([^|]+?) \| `--([a-z-]+)` \| (honoured|warning)/gm)].map(([, component, flag]) => `${component} ${flag}`)
  const wanted = Object.entries(flags).flatMap(([component, own]) => Object.keys(own).map((flag) => `${component} ${flag}`))
  assert.deepEqual(listed.sort(), wanted.sort())
})
