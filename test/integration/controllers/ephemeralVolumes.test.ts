/** Claims that pods bring along, and claims that grow, through the real API server with the rights of each controller's service account. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PersistentVolume, Pod } from '#api/gen/types/core.v1'
import { isStatus } from '#api/machinery/status'
import { events, persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ volumeBinding: { syncPeriodMs: 100 } })
})
after(() => cluster.close())

const namespace = 'default'
const claimsOf = () => cluster.client.of(persistentVolumeClaims)
const size = (storage: string) => ({ requests: { storage } })
const untilEvent = (name: string, reason: string) =>
  eventually(async () => {
    const { items } = await cluster.client.of(events).list({ namespace })
    return items.find((event) => event.involvedObject.name === name && event.reason === reason) ?? false
  })

function podWithVolume(name: string): Pick<Pod, 'metadata' | 'spec'> {
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'none', resources: size('1Gi') }
  const volumeClaimTemplate = { metadata: { labels: { of: name }, annotations: { note: 'own' } }, spec }
  return {
    metadata: { namespace, name },
    spec: { volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate } }], containers: [{ name: 'c', image: 'a' }] },
  }
}

test('STO-16 CTL-15 a pod brings its claim along, again when it is deleted, and takes it with it', async () => {
  await cluster.client.of(pods).create(podWithVolume('owner'))
  const ref = { namespace, name: 'owner-scratch' }
  const claim = await eventually(() => claimsOf().get(ref))
  const pod = await cluster.client.of(pods).get({ namespace, name: 'owner' })
  const { ownerReferences, labels, annotations } = claim.metadata
  assert.deepEqual(ownerReferences, [{ apiVersion: 'v1', kind: 'Pod', name: 'owner', uid: pod.metadata.uid, controller: true, blockOwnerDeletion: true }])
  assert.deepEqual([labels, annotations?.note, claim.spec.resources], [{ of: 'owner' }, 'own', size('1Gi')])
  await claimsOf().delete(ref)
  await eventually(async () => (await claimsOf().get(ref)).metadata.uid !== claim.metadata.uid)
  await cluster.client.of(pods).delete({ namespace, name: 'owner' }, { gracePeriodSeconds: 0 })
  await eventually(() =>
    claimsOf()
      .get(ref)
      .then(
        () => false,
        (error: unknown) => isStatus(error, 'NotFound'),
      ),
  )
})

test('STO-16 a claim of that name which is not the pod’s own is not taken', async () => {
  await claimsOf().create({
    metadata: { namespace, name: 'guest-scratch' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'none', resources: size('1Gi') },
  })
  await cluster.client.of(pods).create(podWithVolume('guest'))
  const { message } = await untilEvent('guest', 'FailedBinding')
  assert.equal(message, 'ephemeral volume scratch: PVC default/guest-scratch was not created for pod default/guest (pod is not owner)')
})

async function addGrowable(name: string, source: Partial<PersistentVolume['spec']>): Promise<void> {
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'growing', capacity: { storage: '1Gi' } }
  await cluster.client.of(persistentVolumes).create({ metadata: { name }, spec: { ...spec, claimRef: { namespace, name }, ...source } })
  await claimsOf().create({
    metadata: { namespace, name },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'growing', resources: size('1Gi'), volumeName: name },
  })
  await eventually(async () => (await claimsOf().get({ namespace, name })).status.phase === 'Bound')
  await claimsOf().patch({ namespace, name }, 'merge', { spec: { resources: size('2Gi') } })
}

test("STO-12 CTL-15 a larger request of a claim is left to the driver's resizer, with an event", async () => {
  await cluster.client.of(storageClasses).create({ metadata: { name: 'growing' }, provisioner: 'disk.example.com', allowVolumeExpansion: true })
  await addGrowable('driven', { csi: { driver: 'disk.example.com', volumeHandle: 'h' } })
  assert.equal((await untilEvent('driven', 'ExternalExpanding')).message, 'waiting for an external controller to expand this PVC')
  await addGrowable('migrated', { gcePersistentDisk: { pdName: 'd' } })
  assert.match((await untilEvent('migrated', 'ExternalExpanding')).message ?? '', /^CSI migration enabled for kubernetes\.io\/gce-pd; /)
  const resizer = async () => (await claimsOf().get({ namespace, name: 'migrated' })).metadata.annotations?.['volume.kubernetes.io/storage-resizer']
  await eventually(async () => (await resizer()) === 'pd.csi.storage.gke.io')
})
