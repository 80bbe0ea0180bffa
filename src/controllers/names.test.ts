/** The list of controllers against upstream's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Component } from '#base/component'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import { HistoryTransport } from '#testing/historyTransport'
import { absentControllers } from './absent.ts'
import { createControllerManager, isEnabled } from './framework/manager.ts'
import { controllers } from './index.ts'

/** Upstream: cmd/kube-controller-manager/names/controller_names.go and cloud-provider/names (v1.36); the older names are each controller's aliases. */
const upstream: readonly (readonly [name: string, ...aliases: string[]])[] = [
  ['serviceaccount-token-controller', 'serviceaccount-token'],
  ['endpoints-controller', 'endpoint'],
  ['endpointslice-controller', 'endpointslice'],
  ['endpointslice-mirroring-controller', 'endpointslicemirroring'],
  ['replicationcontroller-controller', 'replicationcontroller'],
  ['pod-garbage-collector-controller', 'podgc'],
  ['resourcequota-controller', 'resourcequota'],
  ['namespace-controller', 'namespace'],
  ['serviceaccount-controller', 'serviceaccount'],
  ['garbage-collector-controller', 'garbagecollector'],
  ['daemonset-controller', 'daemonset'],
  ['job-controller', 'job'],
  ['deployment-controller', 'deployment'],
  ['replicaset-controller', 'replicaset'],
  ['horizontal-pod-autoscaler-controller', 'horizontalpodautoscaling'],
  ['disruption-controller', 'disruption'],
  ['statefulset-controller', 'statefulset'],
  ['cronjob-controller', 'cronjob'],
  ['certificatesigningrequest-signing-controller', 'csrsigning'],
  ['certificatesigningrequest-approving-controller', 'csrapproving'],
  ['certificatesigningrequest-cleaner-controller', 'csrcleaner'],
  ['podcertificaterequest-cleaner-controller'],
  ['ttl-controller', 'ttl'],
  ['bootstrap-signer-controller', 'bootstrapsigner'],
  ['token-cleaner-controller', 'tokencleaner'],
  ['node-ipam-controller', 'nodeipam'],
  ['node-lifecycle-controller', 'nodelifecycle'],
  ['taint-eviction-controller'],
  ['device-taint-eviction-controller'],
  ['service-lb-controller', 'service'],
  ['node-route-controller', 'route'],
  ['cloud-node-lifecycle-controller', 'cloud-node-lifecycle'],
  ['persistentvolume-binder-controller', 'persistentvolume-binder'],
  ['persistentvolume-attach-detach-controller', 'attachdetach'],
  ['persistentvolume-expander-controller', 'persistentvolume-expander'],
  ['clusterrole-aggregation-controller', 'clusterrole-aggregation'],
  ['persistentvolumeclaim-protection-controller', 'pvc-protection'],
  ['persistentvolume-protection-controller', 'pv-protection'],
  ['volumeattributesclass-protection-controller'],
  ['ttl-after-finished-controller', 'ttl-after-finished'],
  ['root-ca-certificate-publisher-controller', 'root-ca-cert-publisher'],
  ['kube-apiserver-serving-clustertrustbundle-publisher-controller'],
  ['ephemeral-volume-controller', 'ephemeral-volume'],
  ['storageversion-garbage-collector-controller', 'storage-version-gc'],
  ['resourceclaim-controller', 'resource-claim-controller'],
  ['resourcepoolstatusrequest-controller'],
  ['legacy-serviceaccount-token-cleaner-controller', 'legacy-service-account-token-cleaner'],
  ['validatingadmissionpolicy-status-controller'],
  ['service-cidr-controller'],
  ['storage-version-migrator-controller'],
  ['selinux-warning-controller'],
]

/** Controllers that upstream does not have: none of them runs unless it is named. */
const additional = ['local-path-provisioner-controller']

const offByDefault = ['bootstrap-signer-controller', 'token-cleaner-controller', ...additional]

for (const [name, ...aliases] of upstream) {
  const found = controllers.find((one) => one.name === name)
  const absent = absentControllers.find((one) => one.name === name)
  if (absent) test(`CTL-22 ${name} is not there, under none of its names`, () => assert.deepEqual([found, absent.aliases], [undefined, aliases]))
  else {
    test(`CTL-22 ${name} is there, by its older names too, and can be switched off`, () => {
      assert.ok(found)
      assert.deepEqual(found.aliases, aliases)
      assert.equal(isEnabled(found, ['*']), !offByDefault.includes(name))
      for (const called of [name, ...aliases]) assert.deepEqual([isEnabled(found, [called]), isEnabled(found, ['*', `-${called}`])], [true, false])
    })
  }
}

test('CTL-22 controllers that upstream does not have are off by default', () => {
  const known = new Set(upstream.map(([name]) => name))
  assert.deepEqual(
    [...controllers, ...absentControllers].map(({ name }) => name).filter((name) => !known.has(name)),
    additional,
  )
  for (const name of additional) assert.equal(controllers.find((one) => one.name === name)?.disabledByDefault, true)
})

test('CTL-22 every controller starts, stops and starts again while the others run', async () => {
  const clock = new VirtualClock()
  const client = createClient(new HistoryTransport())
  const deps = { client, clientFor: () => client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
  const featureGates = Object.fromEntries(controllers.flatMap(({ requiredFeatureGate: gate }) => (gate ? [[gate, true]] : [])))
  const options = { controllers: ['*', ...offByDefault], featureGates, rootCa: 'PEM', serviceAccountToken: () => 'token' }
  const manager = createControllerManager(deps, controllers, options)
  const stop = new AbortController()
  const running = (manager as Component).run(stop.signal)
  for (const _ of controllers) await clock.turn()
  const names = controllers.map(({ name }) => name).sort()
  assert.deepEqual([...manager.running()].sort(), names)
  for (const { name, aliases } of controllers) {
    await manager.setEnabled(name, false)
    assert.equal(manager.running().includes(name), false)
    await manager.setEnabled(aliases[0] ?? name, true)
    assert.equal(manager.running().includes(name), true)
  }
  stop.abort(new Error('the test is over'))
  await running
  assert.deepEqual(manager.running(), [])
})
