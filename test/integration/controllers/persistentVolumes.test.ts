/** Claims and volumes through the real API server: bound both ways, made by a driver outside, let go and reclaimed. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { events, persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
const removed: string[] = []
const made: string[] = []

before(async () => {
  const hostPaths = { make: async (path: string) => void made.push(path), remove: async (path: string) => void removed.push(path) }
  cluster = await startTestCluster({ podsRun: false, hostPaths, volumeBinding: { syncPeriodMs: 100, provisionHostPaths: true } })
})
after(() => cluster.close())

const namespace = 'default'
const claimsOf = () => cluster.client.of(persistentVolumeClaims)
const volumesOf = () => cluster.client.of(persistentVolumes)

async function addVolume(name: string, spec: Partial<PersistentVolume['spec']> = {}, annotations: Record<string, string> = {}): Promise<void> {
  const base = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain', hostPath: { path: `/data/${name}` } }
  await volumesOf().create({ metadata: { name, annotations }, spec: { ...base, ...spec } })
}

async function addClaim(name: string, spec: Partial<PersistentVolumeClaim['spec']> = {}): Promise<Frozen<PersistentVolumeClaim>> {
  const base = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  return claimsOf().create({ metadata: { namespace, name }, spec: { ...base, ...spec } })
}

const untilClaim = (name: string, phase: string) =>
  eventually(async () => {
    const claim = await claimsOf().get({ namespace, name })
    return claim.status.phase === phase && claim
  })
const untilVolume = (name: string, phase: string) =>
  eventually(async () => {
    const volume = await volumesOf().get({ name })
    return volume.status?.phase === phase && volume
  })
const untilEvent = (name: string, reason: string) =>
  eventually(async () => {
    const { items } = await cluster.client.of(events).list({ namespace })
    return items.find((event) => event.involvedObject.name === name && event.reason === reason) ?? false
  })
const untilGone = (name: string) =>
  eventually(() =>
    volumesOf()
      .get({ name })
      .then(
        () => false,
        (error: unknown) => isStatus(error, 'NotFound'),
      ),
  )

test('STO-04 STO-05 a claim is bound to the smallest volume that suffices, and the volume is released with the claim', async () => {
  await addVolume('small', { storageClassName: 'static' })
  await addVolume('large', { storageClassName: 'static', capacity: { storage: '5Gi' } })
  await untilVolume('small', 'Available')
  await untilVolume('large', 'Available')
  const { metadata } = await addClaim('first', { storageClassName: 'static' })
  const claim = await untilClaim('first', 'Bound')
  assert.equal(claim.spec.volumeName, 'small')
  assert.equal(claim.metadata.annotations?.['pv.kubernetes.io/bind-completed'], 'yes')
  assert.equal(claim.metadata.annotations?.['pv.kubernetes.io/bound-by-controller'], 'yes')
  assert.deepEqual([claim.status.capacity, claim.status.accessModes], [{ storage: '1Gi' }, ['ReadWriteOnce']])
  const volume = await untilVolume('small', 'Bound')
  assert.deepEqual([volume.spec.claimRef?.name, volume.spec.claimRef?.uid], ['first', metadata.uid])
  await claimsOf().delete({ namespace, name: 'first' })
  const released = await untilVolume('small', 'Released')
  assert.equal(released.spec.claimRef?.uid, metadata.uid)
  await addClaim('second', { storageClassName: 'static' })
  assert.equal((await untilClaim('second', 'Bound')).spec.volumeName, 'large')
})

test('STO-04 a volume or claim that names its counterpart is bound to no other', async () => {
  await addVolume('reserved', { storageClassName: 'fixed', claimRef: { kind: 'PersistentVolumeClaim', namespace, name: 'wanted' } })
  await addVolume('asked', { storageClassName: 'fixed' })
  await untilVolume('reserved', 'Available')
  await untilVolume('asked', 'Available')
  await addClaim('asker', { storageClassName: 'fixed', volumeName: 'asked' })
  await untilClaim('asker', 'Bound')
  await addClaim('stranger', { storageClassName: 'fixed' })
  await addClaim('wanted', { storageClassName: 'fixed' })
  const claim = await untilClaim('wanted', 'Bound')
  assert.equal(claim.spec.volumeName, 'reserved')
  const volume = await volumesOf().get({ name: 'reserved' })
  assert.equal(volume.spec.claimRef?.uid, claim.metadata.uid)
  assert.equal(volume.metadata.annotations?.['pv.kubernetes.io/bound-by-controller'], undefined)
  assert.equal((await claimsOf().get({ namespace, name: 'stranger' })).status.phase, 'Pending')
  await addClaim('unlucky', { storageClassName: 'fixed', volumeName: 'asked' })
  assert.equal((await untilEvent('unlucky', 'FailedBinding')).message, 'volume "asked" already bound to a different claim.')
})

test('STO-05 a claim whose volume was deleted by force is lost', async () => {
  await addVolume('fragile', { storageClassName: 'brittle' })
  await untilVolume('fragile', 'Available')
  await addClaim('loser', { storageClassName: 'brittle' })
  await untilClaim('loser', 'Bound')
  await untilVolume('fragile', 'Bound')
  await volumesOf().delete({ name: 'fragile' })
  await eventually(async () => {
    await volumesOf().patch({ name: 'fragile' }, 'merge', { metadata: { finalizers: null } })
    return true
  })
  const lost = await untilClaim('loser', 'Lost')
  assert.deepEqual([lost.status.capacity, lost.status.accessModes], [undefined, undefined])
  assert.match((await untilEvent('loser', 'ClaimLost')).message ?? '', /has lost its PersistentVolume/)
})

test('STO-06 a claim is annotated for its external provisioner, and the provisioned volume is bound', async () => {
  await cluster.client.of(storageClasses).create({ metadata: { name: 'driven' }, provisioner: 'disk.example.com', reclaimPolicy: 'Delete' })
  await addClaim('dynamic', { storageClassName: 'driven' })
  const asked = await eventually(async () => {
    const claim = await claimsOf().get({ namespace, name: 'dynamic' })
    return claim.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'] !== undefined && claim
  })
  assert.equal(asked.metadata.annotations?.['volume.beta.kubernetes.io/storage-provisioner'], 'disk.example.com')
  const { message } = await untilEvent('dynamic', 'ExternalProvisioning')
  assert.match(message ?? '', /^Waiting for a volume to be created either by the external provisioner 'disk\.example\.com' or manually/)
  const { uid, resourceVersion } = asked.metadata
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: 'dynamic', uid, resourceVersion }
  const name = `pvc-${uid}`
  const csi = { driver: 'disk.example.com', volumeHandle: 'h' }
  const spec = {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    persistentVolumeReclaimPolicy: 'Delete',
    storageClassName: 'driven',
    csi,
    claimRef,
  }
  await volumesOf().create({ metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': 'disk.example.com' } }, spec })
  assert.equal((await untilClaim('dynamic', 'Bound')).spec.volumeName, name)
  await untilVolume(name, 'Bound')
  await claimsOf().delete({ namespace, name: 'dynamic' })
  // Deleting what is behind it is the driver's work.
  await untilVolume(name, 'Released')
})

test('STO-06 a class without a provisioner, and one that does not exist, are reported by events', async () => {
  await cluster.client.of(storageClasses).create({ metadata: { name: 'by-hand' }, provisioner: 'kubernetes.io/no-provisioner' })
  await addClaim('nobody', { storageClassName: 'by-hand' })
  await addClaim('nowhere', { storageClassName: 'missing' })
  assert.equal((await untilEvent('nobody', 'ProvisioningFailed')).message, 'no volume plugin matched name: kubernetes.io/no-provisioner')
  assert.equal((await untilEvent('nowhere', 'ProvisioningFailed')).message, 'storageclass.storage.k8s.io "missing" not found')
})

test('STO-06 a claim from before there was a default class gets it', async () => {
  await addClaim('early')
  await untilEvent('early', 'FailedBinding')
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
  await cluster.client.of(storageClasses).create({ metadata: { name: 'usual', annotations }, provisioner: 'disk.example.com' })
  await eventually(async () => (await claimsOf().get({ namespace, name: 'early' })).spec.storageClassName === 'usual')
  await cluster.client.of(storageClasses).delete({ name: 'usual' })
})

test('STO-07 a claim of a WaitForFirstConsumer class waits for its first pod, and an event names the pod', async () => {
  await cluster.client.of(storageClasses).create({ metadata: { name: 'late' }, provisioner: 'disk.example.com', volumeBindingMode: 'WaitForFirstConsumer' })
  await addVolume('idle', { storageClassName: 'late' })
  await untilVolume('idle', 'Available')
  await addClaim('patient', { storageClassName: 'late' })
  await untilEvent('patient', 'WaitForFirstConsumer')
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'patient' } }]
  await cluster.client.of(pods).create({ metadata: { namespace, name: 'user' }, spec: { volumes, containers: [{ name: 'c', image: 'a' }] } })
  assert.equal((await untilEvent('patient', 'WaitForPodScheduled')).message, 'waiting for pod user to be scheduled')
  assert.equal((await volumesOf().get({ name: 'idle' })).spec.claimRef, undefined)
  assert.equal((await claimsOf().get({ namespace, name: 'patient' })).status.phase, 'Pending')
})

test('STO-05 reclaim Delete: a directory goes with its volume, one elsewhere fails for all to see', async () => {
  for (const [name, path] of [
    ['temporary', '/tmp/skiff-test-never-there'],
    ['precious', '/srv/precious'],
  ] as const) {
    await addVolume(name, { storageClassName: name, persistentVolumeReclaimPolicy: 'Delete', hostPath: { path } })
    await untilVolume(name, 'Available')
    await addClaim(name, { storageClassName: name })
    await untilClaim(name, 'Bound')
    await claimsOf().delete({ namespace, name })
  }
  await untilGone('temporary')
  assert.deepEqual(removed, ['/tmp/skiff-test-never-there'])
  const failed = await untilVolume('precious', 'Failed')
  assert.equal(failed.status?.message, 'host_path deleter only supports /tmp/.+ but received provided /srv/precious')
})

test('STO-05 reclaim Delete removes a directory once, a finalizer keeps its volume and the volume changes', async () => {
  const path = '/tmp/skiff-test-kept'
  await addVolume('kept', { storageClassName: 'kept', persistentVolumeReclaimPolicy: 'Delete', hostPath: { path } })
  await volumesOf().patch({ name: 'kept' }, 'merge', { metadata: { finalizers: ['example.com/hold'] } })
  await addClaim('kept', { storageClassName: 'kept' })
  await untilClaim('kept', 'Bound')
  await claimsOf().delete({ namespace, name: 'kept' })
  await eventually(async () => (await volumesOf().get({ name: 'kept' })).metadata.deletionTimestamp !== undefined)
  for (const round of ['1', '2', '3']) {
    await volumesOf().patch({ name: 'kept' }, 'merge', { metadata: { labels: { round } } })
    // A volume that is worked on later shows that the controller has seen the change.
    await addVolume(`behind-${round}`)
    await untilVolume(`behind-${round}`, 'Available')
  }
  await volumesOf().patch({ name: 'kept' }, 'merge', { metadata: { finalizers: null } })
  await untilGone('kept')
  assert.deepEqual(
    removed.filter((one) => one === path),
    [path],
  )
})

test('STO-06 a directory is made where that is switched on', async () => {
  await cluster.client.of(storageClasses).create({ metadata: { name: 'local' }, provisioner: 'kubernetes.io/host-path', reclaimPolicy: 'Delete' })
  const { metadata } = await addClaim('scratch', { storageClassName: 'local' })
  const claim = await untilClaim('scratch', 'Bound')
  assert.equal(claim.spec.volumeName, `pvc-${metadata.uid}`)
  assert.deepEqual(new Set(made), new Set([`/tmp/hostpath_pv/${metadata.uid}`]))
  const volume = await volumesOf().get({ name: claim.spec.volumeName ?? '' })
  assert.ok(volume.metadata.finalizers?.includes('kubernetes.io/pv-controller'))
  await claimsOf().delete({ namespace, name: 'scratch' })
  await untilGone(volume.metadata.name ?? '')
})

test('STO-05 reclaim Recycle: a pod empties the volume, which is free again', async () => {
  await addVolume('reused', { storageClassName: 'round', persistentVolumeReclaimPolicy: 'Recycle', capacity: { storage: '3Gi' } })
  await untilVolume('reused', 'Available')
  await addClaim('one', { storageClassName: 'round' })
  await untilClaim('one', 'Bound')
  await claimsOf().delete({ namespace, name: 'one' })
  const ref = { namespace, name: 'recycler-for-reused' }
  const pod = await eventually(() => cluster.client.of(pods).get(ref))
  assert.deepEqual([pod.spec.activeDeadlineSeconds, pod.spec.volumes?.[0]?.hostPath?.path], [90, '/data/reused'])
  await cluster.client.of(pods).patch(ref, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' })
  const free = await untilVolume('reused', 'Available')
  assert.equal(free.spec.claimRef, undefined)
  await addClaim('two', { storageClassName: 'round' })
  assert.equal((await untilClaim('two', 'Bound')).spec.volumeName, 'reused')
})

test('STO-05 reclaim Recycle: a volume that no pod can empty fails, and so does one whose pod does', async () => {
  const local = { local: { path: '/disk' }, hostPath: undefined }
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n'] }] }] }
  await addVolume('stubborn', { storageClassName: 'stubborn', persistentVolumeReclaimPolicy: 'Recycle', ...local, nodeAffinity: { required } })
  await addVolume('full', { storageClassName: 'full', persistentVolumeReclaimPolicy: 'Recycle' })
  for (const name of ['stubborn', 'full']) {
    await untilVolume(name, 'Available')
    await addClaim(name, { storageClassName: name })
    await untilClaim(name, 'Bound')
    await claimsOf().delete({ namespace, name })
  }
  assert.equal((await untilVolume('stubborn', 'Failed')).status?.message, 'No recycler plugin found for the volume!')
  const ref = { namespace, name: 'recycler-for-full' }
  await eventually(async () => {
    await cluster.client.of(pods).patch(ref, 'merge', { status: { phase: 'Failed', message: 'disk on fire' } }, { subresource: 'status' })
    return true
  })
  assert.equal((await untilVolume('full', 'Failed')).status?.message, 'Recycle failed: failed to recycle volume: disk on fire')
})
