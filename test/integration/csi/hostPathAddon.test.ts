/** The host path driver of simulated nodes: the claims of real nodes, with the same controllers, in milliseconds. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import {
  csiDrivers,
  csiNodes,
  customResourceDefinitions,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
  volumeAttachments,
} from '#client/builtIn'
import type { NodeDriver } from '#csi/controllers/nodeDrivers'
import { volumeGroupSnapshots } from '#csi/controllers/snapshotter/groupTypes'
import { volumeSnapshotContents, volumeSnapshots } from '#csi/controllers/snapshotter/snapshotTypes'
import { memoryState } from '#csi/hostpath/state'
import { ensureCsiHostPath, removeCsiHostPath } from '#main/layouts/csiHostPath/csiHostPathObjects'
import { csiHostPathUser } from '#main/layouts/csiHostPath/csiHostPathOptions'
import { register, runHostPathControllers, simulatedNodeDriver, unregister } from '#main/layouts/csiHostPath/csiHostPathProcesses'
import { startCluster, type TestCluster } from '#testing/cluster'

const nodeNames = ['n1', 'n2']
const namespace = 'default'
const className = 'csi-hostpath'
const topologyKey = 'topology.hostpath.csi.skiff.dev/node'
const never = new AbortController().signal
const stop = new AbortController()
let cluster: TestCluster
let running: Promise<void>
let drivers: NodeDriver[]

const registrationDeps = () => ({ client: cluster.client, clock: cluster.clock, random: seededRandom(1), log: cluster.log })

before(async () => {
  cluster = await startCluster({ clock: 'real', nodes: nodeNames })
  drivers = nodeNames.map((name) => simulatedNodeDriver(name, memoryState(), cluster.clock))
  await ensureCsiHostPath(cluster.client, never)
  const controllerClient = cluster.clientAs({ name: csiHostPathUser, groups: ['system:authenticated'] })
  running = runHostPathControllers({ ...registrationDeps(), metrics: noMetrics, client: controllerClient }, drivers, stop.signal)
  await register(registrationDeps(), nodeNames, never)
})

after(async () => {
  stop.abort(new Error('the test has ended'))
  await running
  await cluster.close()
})

const addClaim = (name: string, spec: Partial<PersistentVolumeClaim['spec']> = {}) => {
  const base = { storageClassName: className, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  return cluster.client.of(persistentVolumeClaims).create({ metadata: { namespace, name }, spec: { ...base, ...spec } })
}

function addPod(name: string, volumes: Pod['spec']['volumes'], nodeName?: string) {
  const spec = { containers: [{ name: 'main', image: 'busybox' }], volumes, ...(nodeName ? { nodeSelector: { 'kubernetes.io/hostname': nodeName } } : {}) }
  return cluster.client.of(pods).create({ metadata: { namespace, name }, spec })
}

const using = (claimName: string) => [{ name: 'data', persistentVolumeClaim: { claimName } }]
const claimNamed = (name: string) => cluster.client.of(persistentVolumeClaims).get({ namespace, name })
const runs = (name: string) => cluster.until(async () => (await cluster.client.of(pods).get({ namespace, name })).status.phase === 'Running', 30_000)

async function boundVolume(claimName: string) {
  const claim = await cluster.until(async () => {
    const found = await claimNamed(claimName)
    return found.status.phase === 'Bound' && found
  }, 30_000)
  return cluster.client.of(persistentVolumes).get({ name: claim.spec.volumeName ?? '' })
}

const attachedNodes = async () =>
  (await cluster.client.of(volumeAttachments).list()).items.filter(({ status }) => status?.attached).map(({ spec }) => spec.nodeName)

/** By node. */
function volumeCounts(): Promise<number[]> {
  const list = ({ connection }: NodeDriver) => connection.call('listVolumes', {}, 1000, never)
  return Promise.all(drivers.map(async (driver) => (await list(driver)).entries.length))
}

const endPod = (name: string) => cluster.client.of(pods).delete({ namespace, name }, { gracePeriodSeconds: 0 })
const endClaim = (name: string) => cluster.client.of(persistentVolumeClaims).delete({ namespace, name })

test('STO-08 a claim of a simulated node is provisioned on the node of its pod, attached there, expanded and deleted', async () => {
  await addClaim('data')
  await addPod('user', using('data'), 'n2')
  await runs('user')
  const { spec } = await boundVolume('data')
  assert.deepEqual(spec.nodeAffinity?.required?.nodeSelectorTerms, [{ matchExpressions: [{ key: topologyKey, operator: 'In', values: ['n2'] }] }])
  await cluster.until(async () => (await attachedNodes()).join() === 'n2', 30_000)
  assert.deepEqual(await volumeCounts(), [0, 1])
  await cluster.client.of(persistentVolumeClaims).patch({ namespace, name: 'data' }, 'merge', { spec: { resources: { requests: { storage: '2Gi' } } } })
  await cluster.until(async () => (await claimNamed('data')).status.capacity?.storage === '2Gi', 30_000)
  await endPod('user')
  await cluster.until(async () => (await cluster.client.of(volumeAttachments).list()).items.length === 0, 30_000)
  await endClaim('data')
  await cluster.until(async () => (await volumeCounts()).join() === '0,0', 30_000)
})

test('STO-12 a snapshot is restored and a volume is cloned on the node that has the source, and a pod of them runs there', async () => {
  await addClaim('origin')
  await addPod('writer', using('origin'), 'n1')
  await runs('writer')
  await cluster.client.of(volumeSnapshots).create({
    metadata: { namespace, name: 'snap' },
    spec: { source: { persistentVolumeClaimName: 'origin' }, volumeSnapshotClassName: className },
  })
  await cluster.until(async () => (await cluster.client.of(volumeSnapshots).get({ namespace, name: 'snap' })).status?.readyToUse, 30_000)
  await addClaim('restored', { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' } })
  await addClaim('clone', { dataSource: { kind: 'PersistentVolumeClaim', name: 'origin' } })
  await addPod('reader', [...using('restored'), { name: 'clone', persistentVolumeClaim: { claimName: 'clone' } }])
  await runs('reader')
  assert.deepEqual(await volumeCounts(), [3, 0])
  for (const name of ['writer', 'reader']) await endPod(name)
  await cluster.client.of(volumeSnapshots).delete({ namespace, name: 'snap' })
  for (const name of ['restored', 'clone', 'origin']) await endClaim(name)
  await cluster.until(async () => (await volumeCounts()).join() === '0,0', 30_000)
  await cluster.until(async () => (await cluster.client.of(volumeSnapshotContents).list()).items.length === 0, 30_000)
})

test('STO-13 the claims of one node are snapshotted as a group, and a group of claims of two nodes says why not', async () => {
  const { client } = cluster
  for (const [name, nodeName] of [
    ['left', 'n1'],
    ['near', 'n2'],
    ['nearer', 'n2'],
  ] as const) {
    await addClaim(name)
    await addPod(name, using(name), nodeName)
    await runs(name)
    await client.of(persistentVolumeClaims).patch({ namespace, name }, 'merge', { metadata: { labels: { place: nodeName, all: '' } } })
  }
  const take = (name: string, matchLabels: Record<string, string>) =>
    client
      .of(volumeGroupSnapshots)
      .create({ metadata: { namespace, name }, spec: { source: { selector: { matchLabels } }, volumeGroupSnapshotClassName: className } })
  const untilStatus = (
    name: string,
    matches: (status: { readyToUse?: boolean | undefined; error?: { message?: string | undefined } | undefined }) => unknown,
  ) => cluster.until(async () => matches((await client.of(volumeGroupSnapshots).get({ namespace, name })).status ?? {}), 30_000)
  await take('near', { place: 'n2' })
  await untilStatus('near', ({ readyToUse }) => readyToUse)
  const members = async () => (await client.of(volumeSnapshots).list()).items
  await cluster.until(async () => {
    const all = await members()
    return all.length === 2 && all.every(({ status }) => status?.readyToUse)
  }, 30_000)
  await take('all', { all: '' })
  await untilStatus('all', ({ error }) => /the volumes are on several nodes/.test(error?.message ?? ''))
  for (const name of ['near', 'all']) await client.of(volumeGroupSnapshots).delete({ namespace, name })
  await cluster.until(async () => (await members()).length === 0, 30_000)
  for (const name of ['left', 'near', 'nearer']) {
    await endPod(name)
    await endClaim(name)
  }
  await cluster.until(async () => (await volumeCounts()).join() === '0,0', 30_000)
})

test('STO-16 a generic ephemeral volume of the driver lives as long as its pod', async () => {
  const template = { spec: { storageClassName: className, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } }
  await addPod('scratch', [{ name: 'data', ephemeral: { volumeClaimTemplate: template } }], 'n1')
  await runs('scratch')
  assert.deepEqual(await volumeCounts(), [1, 0])
  await endPod('scratch')
  await cluster.until(async () => (await volumeCounts()).join() === '0,0', 30_000)
})

test('STO-11 turning the driver off removes its objects, its definitions and its registrations', async () => {
  await removeCsiHostPath(cluster.client, never)
  await unregister(registrationDeps(), nodeNames, never)
  const { client } = cluster
  assert.deepEqual((await client.of(storageClasses).list()).items, [])
  assert.deepEqual((await client.of(csiDrivers).list()).items, [])
  assert.deepEqual(
    (await client.of(csiNodes).list()).items.flatMap(({ spec }) => spec.drivers),
    [],
  )
  // A definition is deleted with its objects, which takes a moment.
  await cluster.until(async () => (await client.of(customResourceDefinitions).list()).items.length === 0, 30_000)
  const { metadata } = await client.of(nodes).get({ name: 'n1' })
  assert.equal(metadata.annotations?.['csi.volume.kubernetes.io/nodeid'], undefined)
  const refused = cluster.complaints.filter((line) => /forbidden/i.test(line))
  assert.deepEqual(refused, [])
})
