import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kubeletConfig } from '../core/config.ts'
import { defaultDocument, mergeDocuments, readDocument } from './document.ts'
import { configurationFields } from './fields.ts'
import { documentOf, settingsOf, unsupported } from './settings.ts'
import { validateDocument } from './validate.ts'

const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n'

const refused: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ['nothing', '', /path: f\.yaml, error: file was empty/],
  ['another kind', 'apiVersion: v1\nkind: Pod\n', /no kind "Pod" is registered for version "v1"/],
  ['an unknown field', `${head}maxPodz: 3\n`, /strict decoding error: unknown field "maxPodz"/],
  ['another type', `${head}maxPods: many\n`, /maxPods: "many" is not a whole number/],
  ['no duration', `${head}syncFrequency: soon\n`, /syncFrequency: "soon" is not a duration/],
]
for (const [name, text, message] of refused) test(`KUB-24 a file with ${name} is refused`, () => assert.throws(() => readDocument(text, 'f.yaml'), message))

test('KUB-24 every default is upstream’s, and the kubelet works with the same ones', () => {
  const document = defaultDocument({})
  assert.deepEqual(validateDocument(document), [])
  assert.equal(document.port, 10_250)
  assert.equal(document.healthzPort, 10_248)
  assert.deepEqual(document.authentication, { x509: {}, webhook: { enabled: true, cacheTTL: '2m0s' }, anonymous: { enabled: false } })
  // Without a file, defaults differ only in fields that this project leaves to the process.
  const own = kubeletConfig({ nodeName: 'n' })
  for (const [name, value] of Object.entries(settingsOf(document))) {
    if (name === 'memorySwap' || name === 'crashLoopBackOff') continue
    assert.deepEqual((own as unknown as Record<string, unknown>)[name], value, name)
  }
})

test('KUB-24 drop-ins are merged in order: objects member by member, lists and values replaced', () => {
  const base = readDocument(`${head}maxPods: 50\nclusterDNS: [10.0.0.1]\nevictionHard: {memory.available: 1Gi}\n`, 'a')
  const first = readDocument(`${head}clusterDNS: [10.0.0.2]\nevictionHard: {nodefs.available: 5%}\n`, 'b')
  const second = readDocument(`${head}maxPods: 60\n`, 'c')
  assert.deepEqual([first, second].reduce(mergeDocuments, base), {
    maxPods: 60,
    clusterDNS: ['10.0.0.2'],
    evictionHard: { 'memory.available': '1Gi', 'nodefs.available': '5%' },
  })
})

test('KUB-24 a file becomes the settings that the kubelet works with, and /configz shows it again', () => {
  const given = readDocument(
    `${head}maxPods: 20\nserializeImagePulls: false\nimageGCHighThresholdPercent: 90\ncontainerLogMaxSize: 1Mi\nnodeStatusUpdateFrequency: 5s\n` +
      'evictionHard: {memory.available: 200Mi}\ncrashLoopBackOff: {maxContainerRestartPeriod: 1m}\nsystemReserved: {cpu: 200m}\nsyncFrequency: 90s\n',
    'f',
  )
  const settings = settingsOf(defaultDocument(given))
  const config = kubeletConfig({ nodeName: 'n', ...settings })
  assert.equal(config.maxPods, 20)
  assert.equal(config.serializeImagePulls, false)
  assert.equal(config.imageGCHighThresholdPercent, 90)
  assert.equal(config.containerLogMaxSizeBytes, 2 ** 20)
  assert.equal(config.nodeStatusReportFrequencyMs, 5000)
  assert.equal(config.containerRestartMaxBackOffMs, 60_000)
  assert.deepEqual(config.evictionHard, { 'memory.available': '200Mi' })
  const shown = documentOf(config, given)
  assert.equal(shown.syncFrequency, '1m30s')
  assert.equal(shown.containerLogMaxSize, '1Mi')
  assert.deepEqual(shown.systemReserved, { cpu: '200m' })
  assert.deepEqual([shown.podsPerCore, shown.evictionMaxPodGracePeriod], [undefined, undefined])
  assert.deepEqual(validateDocument(shown), [])
  for (const name of Object.keys(shown)) assert.ok(name in configurationFields, name)
})

test('KUB-24 mergeDefaultEvictionSettings keeps the defaults that a file does not name', () => {
  const { evictionHard } = settingsOf(defaultDocument({ evictionHard: { 'memory.available': '1Gi' }, mergeDefaultEvictionSettings: true }))
  assert.equal(evictionHard?.['memory.available'], '1Gi')
  assert.equal(evictionHard?.['nodefs.available'], '10%')
})

const faults: readonly (readonly [given: object, fault: string])[] = [
  [{ maxPods: -1 }, 'maxPods (--max-pods) -1 must not be a negative number'],
  [{ port: 70_000 }, 'port (--port) 70000 must be between 1 and 65535, inclusive'],
  [
    { imageGCLowThresholdPercent: 90 },
    'imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85',
  ],
  [
    { maxParallelImagePulls: 3, serializeImagePulls: true },
    'maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false',
  ],
  [
    { topologyManagerPolicy: 'x' },
    'topologyManagerPolicy (--topology-manager-policy) "x" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]',
  ],
  [{ hairpinMode: 'x' }, 'option "x" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'],
  [{ containerLogMaxFiles: 1 }, 'containerLogMaxFiles must be greater than 1'],
  [{ containerLogMonitorInterval: '1s' }, 'containerLogMonitorInterval must be a positive time duration greater than or equal to 3s'],
  [{ podLogsDir: '/var//log' }, 'pod logs path "/var//log" must be normalized'],
  [{ shutdownGracePeriod: '500ms' }, 'shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec'],
  [{ featureGates: { Nope: true } }, 'unrecognized feature gate: Nope'],
  [{ featureGates: { NodeLogQuery: false } }, 'cannot set feature gate NodeLogQuery to false, feature is locked to true'],
  [{ runOnce: true }, 'runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set'],
  [{ cpuCFSQuotaPeriod: '2s' }, 'cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between 1ms and 1sec, inclusive'],
]
const enforce = 'enforceNodeAllocatable (--enforce-node-allocatable)'
const nodeFaultsOf: typeof faults = [
  [
    { registerWithTaints: [{ key: 'a', effect: 'Never' }] },
    'invalid taint: {a  Never}: registerWithTaints needs a key, and NoSchedule, PreferNoSchedule or NoExecute as its effect',
  ],
  [{ registerWithTaints: [{ key: 'a', effect: 'NoSchedule', timeAdded: 'now' }] }, 'taint.TimeAdded is not nil'],
  [
    { enforceNodeAllocatable: ['all'] },
    `option "all" specified for ${enforce}. Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`,
  ],
  [{ enforceNodeAllocatable: ['none', 'pods'] }, `${enforce} may not contain additional enforcements when "none" is specified`],
  [{ cgroupsPerQOS: false }, `cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in ${enforce}`],
  [
    { enforceNodeAllocatable: ['kube-reserved'] },
    `kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in ${enforce}`,
  ],
  [
    { preloadedImagesVerificationAllowlist: ['a/b'] },
    'can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
  ],
  [
    { imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages', preloadedImagesVerificationAllowlist: ['a/b', 'a/*', 'a*/b'] },
    "invalid image pattern in `preloadedImagesVerificationAllowlist`: not a valid wildcard pattern, only patterns ending with '/*' are allowed: a*/b",
  ],
  [
    { imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages', preloadedImagesVerificationAllowlist: ['a/b:1'] },
    'invalid image pattern in `preloadedImagesVerificationAllowlist`: neither tag nor digest is accepted in an image reference: a/b:1',
  ],
  [
    { reservedSystemCPUs: '3-1' },
    'unable to parse reservedSystemCPUs (--reserved-cpus) 3-1, error: "3-1" is no list of CPUs: "3-1" should be a number or a range such as 0-3',
  ],
  [
    { reservedMemory: [{ numaNode: 0, limits: { cpu: '1' } }] },
    'the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted',
  ],
  [{ reservedMemory: [{ numaNode: 1, limits: { memory: '0' } }] }, 'reserved memory may not be zero for NUMA node 1 and resource "memory"'],
  [
    { reservedMemory: [{ limits: { memory: '1Gi' } }, { limits: { memory: '1Gi' } }] },
    'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
  ],
  [
    { tlsCurvePreferences: [29, 4588] },
    'tlsCurvePreferences has 4588, which this kubelet cannot exchange keys with: use some of 23 (P-256), 24 (P-384), 25 (P-521), 29 (X25519)',
  ],
  [
    { configMapAndSecretChangeDetectionStrategy: 'Poll' },
    'unknown configmap and secret manager mode: Poll: configMapAndSecretChangeDetectionStrategy is Get, Cache or Watch',
  ],
  [{ memoryReservationPolicy: 'TieredReservation' }, 'memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled'],
  [{ podLogsDir: '/var/løgs' }, 'pod logs path "/var/løgs" mut contains ASCII characters only'],
]
for (const [given, fault] of [...faults, ...nodeFaultsOf]) {
  test(`KUB-24 refused: ${fault}`, () =>
    assert.deepEqual(validateDocument(defaultDocument(given as Record<string, unknown>)), [`invalid configuration: ${fault}`]))
}

test('KUB-24 maxParallelImagePulls of a file reaches the image manager', () => {
  const { maxParallelImagePulls, serializeImagePulls } = settingsOf(defaultDocument({ maxParallelImagePulls: 3 }))
  assert.deepEqual([maxParallelImagePulls, serializeImagePulls], [3, false])
})

test('KUB-24 what is set and not supported is named', () => {
  assert.deepEqual(unsupported({ maxPods: 3, hairpinMode: 'none', protectKernelDefaults: true, kernelMemcgNotification: true }), [
    'kernelMemcgNotification is set, but this kubelet does not support it: it has no effect',
  ])
})
