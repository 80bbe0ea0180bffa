/** A local cluster with flags for its components: skiff up --kube-controller-manager-arg, --kube-scheduler-arg. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
let cluster: LocalCluster
let dir = ''

before(async () => {
  if (skip) return
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-flags-'))
  const kind = ['apiVersion: kubescheduler.config.k8s.io/v1', 'kind: KubeSchedulerConfiguration']
  fs.writeFileSync(path.join(dir, 'scheduler.yaml'), [...kind, 'profiles: [{ schedulerName: default-scheduler }, { schedulerName: mine }]'].join('\n'))
  const controllers = ['controllers=-deployment', 'node-cidr-mask-size=27'].flatMap((flag) => ['--kube-controller-manager-arg', flag])
  const gates = ['--kube-apiserver-arg', 'feature-gates=WatchList=true,KMSv1=true']
  cluster = await LocalCluster.start('flags', [
    '--runtime',
    'simulated',
    ...controllers,
    '--kube-scheduler-arg',
    `config=${path.join(dir, 'scheduler.yaml')}`,
    ...gates,
  ])
})
after(async () => {
  await cluster?.delete()
  if (dir) fs.rmSync(dir, { recursive: true })
})

test('SCH-14 pods of a second profile are scheduled', { skip }, async () => {
  await cluster.must(['run', 'p', '--image=i', '--overrides={"spec":{"schedulerName":"mine"}}'])
  const phase = () => cluster.must(['get', 'pod', 'p', '-o', 'jsonpath={.status.phase}'])
  await eventually('the pod runs', 60_000, phase, (text) => text === 'Running')
})

test('CTL-22 controllers go by their flags, and one that is switched off does nothing', { skip }, async () => {
  assert.match(await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[*].spec.podCIDR}']), /^10\.244\.\d+\.\d+\/27$/)
  await cluster.must(['create', 'deployment', 'd', '--image=i'])
  // The ReplicaSet controller runs: a ReplicaSet of the Deployment controller would have pods.
  await cluster.mustWith(JSON.stringify(replicaSet), ['create', '-f', '-'])
  const ready = () => cluster.must(['get', 'rs', 'r', '-o', 'jsonpath={.status.readyReplicas}'])
  await eventually('the pod of the replica set is ready', 60_000, ready, (text) => text === '1')
  assert.equal(await cluster.must(['get', 'rs', '-o', 'jsonpath={.items[*].metadata.name}']), 'r')
})

const labels = { app: 'r' }
const replicaSet = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'r' },
  spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } } },
}

test('feature gates are in the metrics, one without effect is logged, and an unknown one is refused', { skip }, async () => {
  const metrics = await cluster.must(['get', '--raw', '/metrics'])
  for (const line of [
    'name="WatchList",stage="BETA"} 1',
    'name="KMSv1",stage="DEPRECATED"} 1',
    'name="MemoryQoS",stage="ALPHA"} 0',
    'name="NodeSwap",stage=""} 1',
  ]) {
    assert.ok(metrics.includes(`\nkubernetes_feature_enabled{${line}\n`), line)
  }
  const { stdout } = await cluster.skiff(['logs', 'flags'])
  assert.match(stdout, /Feature gates without effect here, these features stay as v1\.36 has them by default: KMSv1=true/)
  for (const [arg, why] of [
    ['feature-gates=Nope=true', '--feature-gates: unrecognized feature gate: Nope'],
    ['feature-gates=NodeSwap=false', '--feature-gates: cannot set feature gate NodeSwap to false, feature is locked to true'],
    ['feature-gates=NodeSwap=2', 'invalid argument "NodeSwap=2" for "--feature-gates" flag: invalid value of NodeSwap=2, expected true or false'],
  ] as const) {
    for (const flag of ['--kube-apiserver-arg', '--kube-scheduler-arg']) {
      const wrong = await cluster.skiff(['up', 'other', '--no-kubeconfig', flag, arg])
      assert.deepEqual([wrong.code, wrong.stderr.split('\n')[0]], [2, `error: ${why}`])
    }
  }
})

test('CTL-22 flags that cannot be used, or differ while the cluster runs, are refused', { skip }, async () => {
  const wrong = await cluster.skiff(['up', 'flags', '--no-kubeconfig', '--kube-controller-manager-arg', 'controllers=nope'])
  assert.deepEqual([wrong.code, wrong.stderr.split('\n')[0]], [2, 'error: "nope" is not in the list of known controllers'])
  const other = await cluster.skiff(['up', 'flags', '--no-kubeconfig', '--kube-controller-manager-arg', 'controllers=-ttl'])
  assert.deepEqual([other.code, other.stderr.split('\n')[0]], [4, 'error: cluster "flags" runs with other --kube-controller-manager-arg flags'])
})
