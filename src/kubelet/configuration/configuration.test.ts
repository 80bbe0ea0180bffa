import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kubeletConfig } from '../config.ts'
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
  // What no file says differs only where this project's kubelet leaves something to its process.
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
for (const [given, fault] of faults) {
  test(`KUB-24 refused: ${fault}`, () =>
    assert.deepEqual(validateDocument(defaultDocument(given as Record<string, unknown>)), [`invalid configuration: ${fault}`]))
}

test('KUB-24 what is set and not supported is named', () => {
  assert.deepEqual(unsupported({ maxPods: 3, hairpinMode: 'none', protectKernelDefaults: true }), [
    'protectKernelDefaults is set, but this kubelet does not support it: it has no effect',
  ])
})
