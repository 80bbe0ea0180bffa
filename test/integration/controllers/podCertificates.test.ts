/** The controllers of PodCertificateRequests and ClusterTrustBundles, which run where their gates are on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import { clusterTrustBundles, podCertificateRequests } from '#client/optional'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { newKey } from '#kubelet/volumes/podCertificateKeys'
import { createAuthority } from '#main/pki/certificates'
import { startCluster } from '#testing/cluster'
import { HistoryTransport } from '#testing/historyTransport'

const minuteMs = 60_000
const names = ['podcertificaterequest-cleaner-controller', 'kube-apiserver-serving-clustertrustbundle-publisher-controller']
const featureGates = { ClusterTrustBundle: true, PodCertificateRequest: true }
const apiServerArgs = ['--runtime-config=certificates.k8s.io/v1beta1=true', '--feature-gates=ClusterTrustBundle=true,PodCertificateRequest=true']

test('CTL-19 a PodCertificateRequest is deleted when it is a quarter of an hour old', async () => {
  await using cluster = await startCluster({ nodes: 0, scheduler: false, controllers: names, apiServerArgs, controllerOptions: { featureGates } })
  const requests = cluster.client.of(podCertificateRequests)
  const { request } = await newKey('ED25519')
  const make = (name: string) => {
    const spec = { signerName: 'example.com/s', podName: 'p', podUID: 'u', serviceAccountName: 's', serviceAccountUID: 'v', nodeName: 'n', nodeUID: 'w' }
    return requests.create({ metadata: { namespace: 'default', name }, spec: { ...spec, stubPKCS10Request: request } })
  }
  const left = async () => (await requests.list({ namespace: 'default' })).items.map(({ metadata }) => metadata.name)
  await make('old')
  await cluster.clock.advance(10 * minuteMs)
  await make('young')
  await cluster.clock.advance(4 * minuteMs)
  assert.deepEqual(await left(), ['old', 'young'])
  await cluster.clock.advance(7 * minuteMs)
  assert.deepEqual(await left(), ['young'])
})

test('CTL-19 the authority of the API server is published as the only bundle of its signer', async () => {
  const { cert: rootCa } = await createAuthority('cluster', Date.UTC(2026, 0, 1), 365)
  const { cert: oldCa } = await createAuthority('before', Date.UTC(2026, 0, 1), 365)
  await using cluster = await startCluster({ nodes: 0, scheduler: false, controllers: names, apiServerArgs, controllerOptions: { featureGates, rootCa } })
  const bundles = cluster.client.of(clusterTrustBundles)
  const signerName = 'kubernetes.io/kube-apiserver-serving'
  const published = () => cluster.until(async () => (await bundles.list()).items.find(({ spec }) => spec.trustBundle === rootCa))
  const { metadata, spec } = await published()
  assert.match(metadata.name ?? '', /^kubernetes\.io:kube-apiserver-serving:[0-9a-f]{24}$/)
  assert.equal(spec.signerName, signerName)
  await bundles.create({ metadata: { name: 'other' }, spec: { trustBundle: oldCa } })
  await bundles.create({ metadata: { name: `${signerName.replace('/', ':')}:old` }, spec: { signerName, trustBundle: oldCa } })
  await cluster.until(async () => (await bundles.list()).items.length === 2)
  await bundles.delete({ name: metadata.name ?? '' })
  await published()
})

test('CTL-22 controllers of a feature that is off do not run', async () => {
  for (const [gates, want] of [
    [{}, []],
    [featureGates, names],
  ] as const) {
    const clock = new VirtualClock('2026-01-01T00:00:00Z')
    const client = createClient(new HistoryTransport())
    const deps = { client, clientFor: () => client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
    const manager = createControllerManager(deps, controllers, { controllers: names, featureGates: gates, rootCa: 'x' })
    const stop = new AbortController()
    const running = manager.run(stop.signal)
    for (const _ of names) await clock.turn()
    assert.deepEqual([...manager.running()], [...want])
    stop.abort()
    await running
  }
})
