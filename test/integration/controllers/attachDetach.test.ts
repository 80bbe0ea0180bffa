/** Attaching and detaching volumes through the real API server; the test plays the driver. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PersistentVolume } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { events, nodes, persistentVolumeClaims, persistentVolumes, pods, volumeAttachments } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ podsRun: false, volumeBinding: { syncPeriodMs: 100 } })
  for (const name of ['a', 'b']) {
    const annotations = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' }
    const conditions = [{ type: 'Ready', status: 'True' }]
    await cluster.client.of(nodes).create({ metadata: { name, annotations }, spec: {}, status: { conditions } as never })
  }
})
after(() => cluster.close())

const namespace = 'default'
const driver = 'disk.example.com'

async function addBound(name: string, modes = ['ReadWriteOnce'], source: Partial<PersistentVolume['spec']> = {}): Promise<void> {
  const shared = { accessModes: modes, storageClassName: 'disk' }
  const type = Object.keys(source).length > 0 ? source : { csi: { driver, volumeHandle: `handle-${name}` } }
  await cluster.client
    .of(persistentVolumes)
    .create({ metadata: { name }, spec: { ...shared, ...type, capacity: { storage: '1Gi' }, claimRef: { namespace, name } } })
  const spec = { ...shared, volumeName: name, resources: { requests: { storage: '1Gi' } } }
  await cluster.client.of(persistentVolumeClaims).create({ metadata: { namespace, name }, spec })
}

async function addPod(name: string, nodeName: string, claimName: string): Promise<void> {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName } }]
  await cluster.client.of(pods).create({ metadata: { namespace, name }, spec: { nodeName, volumes, containers: [{ name: 'c', image: 'a' }] } })
}

const deletePod = (name: string) => cluster.client.of(pods).delete({ namespace, name }, { gracePeriodSeconds: 0 })
const attachmentOf = async (volume: string, nodeName: string): Promise<Frozen<VolumeAttachment> | undefined> =>
  (await cluster.client.of(volumeAttachments).list()).items.find(({ spec }) => spec.source.persistentVolumeName === volume && spec.nodeName === nodeName)
const untilAttachment = (volume: string, nodeName: string) => eventually(async () => (await attachmentOf(volume, nodeName)) ?? false)
const untilDetached = (volume: string, nodeName: string) => eventually(async () => (await attachmentOf(volume, nodeName)) === undefined)
const attachedTo = async (nodeName: string) => ((await cluster.client.of(nodes).get({ name: nodeName })).status?.volumesAttached ?? []).map(({ name }) => name)

async function driverSays(volume: string, nodeName: string, status: object): Promise<void> {
  const { metadata } = await untilAttachment(volume, nodeName)
  await cluster.client.of(volumeAttachments).patch({ name: metadata.name ?? '' }, 'merge', { status }, { subresource: 'status' })
}

const untilEvent = (name: string, message: string) =>
  eventually(async () => {
    const { items } = await cluster.client.of(events).list({ namespace })
    const told = items.filter((event) => event.involvedObject.name === name).map((event) => event.message)
    assert.ok(told.includes(message), `${name} was told: ${told.join(' | ')}`)
    return true
  })

test('STO-10 CTL-15 a volume is attached where its pod is, said in the node’s status, and detached after the pod', async () => {
  await addBound('plain')
  await addPod('user', 'a', 'plain')
  const { spec, metadata } = await untilAttachment('plain', 'a')
  assert.deepEqual([spec.attacher, spec.source.persistentVolumeName], [driver, 'plain'])
  assert.match(metadata.name ?? '', /^csi-[0-9a-f]{64}$/)
  await driverSays('plain', 'a', { attached: false, attachError: { message: 'no such disk', time: '2026-01-01T00:00:00Z' } })
  await untilEvent('user', 'AttachVolume.Attach failed for volume "plain" : no such disk')
  assert.deepEqual(await attachedTo('a'), [])
  await driverSays('plain', 'a', { attached: true, attachError: null })
  await eventually(async () => (await attachedTo('a')).join() === `kubernetes.io/csi/${driver}^handle-plain`)
  await untilEvent('user', 'AttachVolume.Attach succeeded for volume "plain" ')
  await cluster.client
    .of(nodes)
    .patch({ name: 'a' }, 'merge', { status: { volumesInUse: [`kubernetes.io/csi/${driver}^handle-plain`] } }, { subresource: 'status' })
  await deletePod('user')
  // Still mounted: the volume is detached only after the node has unmounted it.
  await addBound('later')
  await addPod('other', 'a', 'later')
  await untilAttachment('later', 'a')
  assert.ok(await attachmentOf('plain', 'a'))
  await cluster.client.of(nodes).patch({ name: 'a' }, 'merge', { status: { volumesInUse: null } }, { subresource: 'status' })
  await untilDetached('plain', 'a')
  await eventually(async () => (await attachedTo('a')).length === 0)
})

test('STO-20 CTL-15 an iSCSI volume is attached by the status of its node alone, and a second node waits for it', async () => {
  const name = 'kubernetes.io/iscsi/192.0.2.1:3260:iqn.2026-01.com.example:disk:0'
  await addBound('lun', ['ReadWriteOnce'], { iscsi: { targetPortal: '192.0.2.1:3260', iqn: 'iqn.2026-01.com.example:disk', lun: 0 } })
  await addPod('lun-first', 'a', 'lun')
  await eventually(async () => (await attachedTo('a')).includes(name))
  await untilEvent('lun-first', 'AttachVolume.Attach succeeded for volume "lun" ')
  assert.equal(await attachmentOf('lun', 'a'), undefined)
  await cluster.client.of(nodes).patch({ name: 'a' }, 'merge', { status: { volumesInUse: [name] } }, { subresource: 'status' })
  await addPod('lun-second', 'b', 'lun')
  await untilEvent('lun-second', 'Multi-Attach error for volume "lun" Volume is already used by pod(s) lun-first')
  await deletePod('lun-first')
  // Still mounted: another change of the node leaves the volume in its status.
  await cluster.client.of(nodes).patch({ name: 'a' }, 'merge', { spec: { unschedulable: true } })
  assert.deepEqual([(await attachedTo('a')).includes(name), (await attachedTo('b')).includes(name)], [true, false])
  await cluster.client.of(nodes).patch({ name: 'a' }, 'merge', { status: { volumesInUse: null } }, { subresource: 'status' })
  await eventually(async () => (await attachedTo('b')).includes(name))
  assert.equal((await attachedTo('a')).includes(name), false)
  await deletePod('lun-second')
  await eventually(async () => !(await attachedTo('b')).includes(name))
})

test('STO-10 a volume for one node is not attached to a second one; it follows when the first pod is gone', async () => {
  await addBound('single')
  await addPod('first', 'a', 'single')
  await driverSays('single', 'a', { attached: true })
  await addPod('second', 'b', 'single')
  await untilEvent('second', 'Multi-Attach error for volume "single" Volume is already used by pod(s) first')
  assert.equal(await attachmentOf('single', 'b'), undefined)
  await deletePod('first')
  await untilDetached('single', 'a')
  await untilAttachment('single', 'b')
})

test('STO-10 a volume for many nodes is attached to each', async () => {
  await addBound('shared', ['ReadWriteMany'])
  await addPod('left', 'a', 'shared')
  await addPod('right', 'b', 'shared')
  await untilAttachment('shared', 'a')
  await untilAttachment('shared', 'b')
})

test('STO-10 a node that is out of service gives up even what it has mounted', async () => {
  await addBound('stranded')
  await addPod('victim', 'b', 'stranded')
  await driverSays('stranded', 'b', { attached: true })
  const volumesInUse = [`kubernetes.io/csi/${driver}^handle-stranded`]
  await cluster.client.of(nodes).patch({ name: 'b' }, 'merge', { status: { volumesInUse } }, { subresource: 'status' })
  await deletePod('victim')
  await addBound('probe')
  await addPod('probe', 'b', 'probe')
  await untilAttachment('probe', 'b')
  assert.ok(await attachmentOf('stranded', 'b'))
  const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }]
  await cluster.client.of(nodes).patch({ name: 'b' }, 'merge', { spec: { taints } })
  await untilDetached('stranded', 'b')
})
