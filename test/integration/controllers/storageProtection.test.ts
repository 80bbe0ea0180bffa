/** Storage objects are not deleted while they are used: the three controllers that hold finalizers, each with the rights of its own service account. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { persistentVolumeClaims, persistentVolumes, pods, volumeAttributesClasses } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  // It would have its own idea of the phases that are written here by hand.
  cluster = await startTestCluster({ controllers: ['*', '-persistentvolume-binder-controller'] })
})
after(() => cluster.close())

const namespace = 'default'
const gone = (get: () => Promise<unknown>) =>
  eventually(() =>
    get().then(
      () => false,
      (error: unknown) => isStatus(error, 'NotFound'),
    ),
  )

test('STO-05 STO-18 CTL-15 a claim gets its finalizer and goes only after the pod that uses it', async () => {
  const claims = cluster.client.of(persistentVolumeClaims)
  const get = () => claims.get({ namespace, name: 'data' })
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  await claims.create({ metadata: { namespace, name: 'data' }, spec })
  await eventually(async () => (await get()).metadata.finalizers?.includes('kubernetes.io/pvc-protection') === true)
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  await cluster.client.of(pods).create({ metadata: { namespace, name: 'user' }, spec: { nodeName: 'n', volumes, containers: [{ name: 'c', image: 'a' }] } })
  await claims.delete({ namespace, name: 'data' })
  // Another claim that goes meanwhile shows that the controller has looked.
  await claims.create({ metadata: { namespace, name: 'unused', finalizers: ['kubernetes.io/pvc-protection'] }, spec })
  await claims.delete({ namespace, name: 'unused' })
  await gone(() => claims.get({ namespace, name: 'unused' }))
  assert.deepEqual((await get()).metadata.finalizers, ['kubernetes.io/pvc-protection'])
  await cluster.client.of(pods).delete({ namespace, name: 'user' }, { gracePeriodSeconds: 0 })
  await gone(get)
  assert.deepEqual(cluster.complaints, [])
})

test('STO-05 STO-18 CTL-15 a volume gets its finalizer and goes only when it is not bound', async () => {
  const volumes = cluster.client.of(persistentVolumes)
  const create = (name: string) =>
    volumes.create({ metadata: { name }, spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } } })
  const isProtected = (name: string) =>
    eventually(async () => (await volumes.get({ name })).metadata.finalizers?.includes('kubernetes.io/pv-protection') === true)
  await create('bound')
  await create('free')
  await isProtected('bound')
  await isProtected('free')
  await volumes.patch({ name: 'bound' }, 'merge', { status: { phase: 'Bound' } }, { subresource: 'status' })
  await volumes.delete({ name: 'bound' })
  await volumes.delete({ name: 'free' })
  await gone(() => volumes.get({ name: 'free' }))
  assert.equal((await volumes.get({ name: 'bound' })).metadata.finalizers?.length, 1)
  await volumes.patch({ name: 'bound' }, 'merge', { status: { phase: 'Released' } }, { subresource: 'status' })
  await gone(() => volumes.get({ name: 'bound' }))
})

test('STO-05 STO-18 CTL-15 an attributes class goes only when no claim names it', async () => {
  const classes = cluster.client.of(volumeAttributesClasses)
  const get = () => classes.get({ name: 'fast' })
  await classes.create({ metadata: { name: 'fast' }, driverName: 'a.example.com', parameters: { iops: '1' } })
  await eventually(async () => (await get()).metadata.finalizers?.includes('kubernetes.io/vac-protection') === true)
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeAttributesClassName: 'fast' }
  const claims = cluster.client.of(persistentVolumeClaims)
  await claims.create({ metadata: { namespace, name: 'quick' }, spec })
  await classes.delete({ name: 'fast' })
  await classes.create({ metadata: { name: 'other' }, driverName: 'a.example.com', parameters: { iops: '2' } })
  await classes.delete({ name: 'other' })
  await gone(() => classes.get({ name: 'other' }))
  assert.equal((await get()).metadata.finalizers?.length, 1)
  await claims.delete({ namespace, name: 'quick' })
  await gone(get)
})
