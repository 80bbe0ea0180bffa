/** The capacity of a driver in the API, and the scheduler that keeps pods from nodes without room for their claims. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csiDrivers, csiStorageCapacities, persistentVolumeClaims, pods, storageClasses } from '#client/builtIn'
import { CsiCluster, driverName, namespace, topologyKey } from './csiSetup.ts'

const place = 'kube-system'
const late = { volumeBindingMode: 'WaitForFirstConsumer' } as const
const labels = { 'csi.storage.k8s.io/drivername': driverName, 'csi.storage.k8s.io/managed-by': 'external-provisioner' }

function start(capacity = {}) {
  const options = { capacity: { namespace: place, pollMs: 60_000, isForImmediate: false, ...capacity } }
  return CsiCluster.start({ capacityBytes: 8 << 20, options })
}

const published = async ({ cluster }: CsiCluster) => (await cluster.client.of(csiStorageCapacities).list()).items
const untilPublished = (csi: CsiCluster, wanted: string) =>
  csi.cluster.until(async () => {
    const found = await published(csi)
    return found.map(({ storageClassName, capacity }) => `${storageClassName} ${capacity}`).join() === wanted && found
  }, 30_000)

test('STO-18 each class that waits for pods has the capacity of each topology, which follows the volumes, and goes with the class', async () => {
  await using csi = await start()
  await csi.addClass('at-once')
  await csi.addClass('late', late)
  const [first] = await untilPublished(csi, 'late 8Mi')
  assert.equal(first?.metadata.namespace, place)
  assert.deepEqual(first?.metadata.labels, labels)
  assert.deepEqual([first?.nodeTopology, first?.maximumVolumeSize], [{ matchLabels: { [topologyKey]: 'n1' } }, '8Mi'])
  await csi.addClaim('data', 'at-once', { resources: { requests: { storage: '3Mi' } } })
  await csi.boundVolume('data')
  await untilPublished(csi, 'late 5Mi')
  await csi.cluster.client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await untilPublished(csi, 'late 8Mi')
  await csi.cluster.client.of(storageClasses).delete({ name: 'late' })
  await untilPublished(csi, '')
})

test('STO-18 a capacity that is deleted comes back, one too many is deleted, and one of another manager stays', async () => {
  await using csi = await start({ isForImmediate: true })
  const capacities = csi.cluster.client.of(csiStorageCapacities)
  await csi.addClass('at-once')
  const [first] = await untilPublished(csi, 'at-once 8Mi')
  await capacities.delete({ namespace: place, name: first?.metadata.name ?? '' })
  await untilPublished(csi, 'at-once 8Mi')
  const copy = { storageClassName: 'at-once', nodeTopology: { matchLabels: { [topologyKey]: 'gone' } }, capacity: '1Mi' }
  await capacities.create({ ...copy, metadata: { namespace: place, name: 'obsolete', labels } })
  await csi.untilGone(csiStorageCapacities, { namespace: place, name: 'obsolete' })
  await capacities.create({ ...copy, metadata: { namespace: place, name: 'other', labels: { ...labels, 'csi.storage.k8s.io/managed-by': 'another' } } })
  await capacities.delete({ namespace: place, name: (await published(csi)).find(({ metadata }) => metadata.name !== 'other')?.metadata.name ?? '' })
  await csi.cluster.until(async () => (await published(csi)).length === 2, 30_000)
})

test('STO-18 a pod whose claim finds no room waits, and starts when a volume is deleted', async () => {
  await using csi = await start()
  const { client } = csi.cluster
  const spec = { attachRequired: false, storageCapacity: true, volumeLifecycleModes: ['Persistent'] }
  await client.of(csiDrivers).create({ metadata: { name: driverName }, spec })
  await csi.addClass('at-once')
  await csi.addClass('late', late)
  await csi.addClaim('first', 'at-once', { resources: { requests: { storage: '6Mi' } } })
  await csi.boundVolume('first')
  await untilPublished(csi, 'late 2Mi')
  await csi.addClaim('second', 'late', { resources: { requests: { storage: '4Mi' } } })
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'second' } }]
  await client.of(pods).create({ metadata: { namespace, name: 'user' }, spec: { containers: [{ name: 'main', image: 'i' }], volumes } })
  assert.match(await csi.untilEvent('user', 'FailedScheduling'), /^0\/1 nodes are available: 1 node\(s\) did not have enough free storage\./)
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'first' })
  await csi.boundVolume('second')
  await csi.cluster.until(async () => (await client.of(pods).get({ namespace, name: 'user' })).status.phase === 'Running', 30_000)
})
