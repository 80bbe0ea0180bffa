/** The attacher with the host path driver: volumes are published to nodes and taken back with their VolumeAttachments. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { csiNodes, persistentVolumeClaims, persistentVolumes, volumeAttachments } from '#client/builtIn'
import { CsiError } from '#csi/server/csiTypes'
import { CsiCluster, driverName, namespace } from './csiSetup.ts'

const finalizer = 'external-attacher/hostpath-csi-skiff-dev'

async function attach(csi: CsiCluster, persistentVolumeName: string): Promise<Frozen<VolumeAttachment>> {
  return csi.cluster.client
    .of(volumeAttachments)
    .create({ metadata: { name: 'one' }, spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName } } })
}

const untilAttachment = (csi: CsiCluster, matches: (attachment: Frozen<VolumeAttachment>) => boolean) =>
  csi.cluster.until(async () => {
    const attachment = await csi.cluster.client.of(volumeAttachments).get({ name: 'one' })
    return matches(attachment) && attachment
  }, 30_000)

async function publishedTo(csi: CsiCluster, volumeId: string) {
  return (await csi.driver.controller.controllerGetVolume({ volumeId })).status.publishedNodeIds
}

async function start(setup: Parameters<typeof CsiCluster.start>[0] = {}) {
  const csi = await CsiCluster.start(setup)
  await csi.addClass('fast')
  await csi.addClaim('data', 'fast')
  const volume = await csi.boundVolume('data')
  return { csi, volume, name: volume.metadata.name ?? '', volumeId: volume.spec.csi?.volumeHandle ?? '' }
}

test('STO-10 an attachment publishes the volume to its node, keeps the volume, and takes it back when it is deleted', async () => {
  const { csi, name, volumeId } = await start()
  await using _csi = csi
  const { client } = csi.cluster
  await attach(csi, name)
  const { metadata } = await untilAttachment(csi, ({ status }) => status?.attached === true)
  assert.deepEqual([metadata.finalizers, metadata.annotations], [[finalizer], { 'csi.alpha.kubernetes.io/node-id': 'n1' }])
  assert.ok((await client.of(persistentVolumes).get({ name })).metadata.finalizers?.includes(finalizer))
  assert.deepEqual(await publishedTo(csi, volumeId), ['n1'])
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  assert.match(await csi.untilEvent(name, 'VolumeDelete'), /is still attached to node n1, waiting for detach$/)
  await client.of(volumeAttachments).delete({ name: 'one' })
  await csi.untilGone(volumeAttachments, { name: 'one' })
  await csi.untilGone(persistentVolumes, { name })
  assert.deepEqual(await csi.volumeIds(), [])
})

test('STO-10 the error of a publish is in the attachment, with its code, and the publish is tried again', async () => {
  let failures = 2
  const { csi, name } = await start({
    driver: (driver) => ({
      ...driver,
      controller: {
        ...driver.controller,
        controllerPublishVolume: (request) => {
          if (failures-- > 0) throw new CsiError('RESOURCE_EXHAUSTED', 'the node is full')
          return driver.controller.controllerPublishVolume(request)
        },
      },
    }),
  })
  await using _csi = csi
  await attach(csi, name)
  const failed = await untilAttachment(csi, ({ status }) => status?.attachError !== undefined)
  assert.deepEqual(
    [failed.status?.attachError?.message, failed.status?.attachError?.errorCode],
    ['rpc error: code = ResourceExhausted desc = the node is full', 8],
  )
  const { status } = await untilAttachment(csi, (one) => one.status?.attached === true)
  assert.equal(status?.attachError, undefined)
})

test('STO-10 an attachment whose node is gone is taken back with the node id of its annotation', async () => {
  const { csi, name, volumeId } = await start()
  await using _csi = csi
  const { client } = csi.cluster
  await attach(csi, name)
  await untilAttachment(csi, ({ status }) => status?.attached === true)
  await client.of(csiNodes).patch({ name: 'n1' }, 'merge', { spec: { drivers: [] } })
  await client.of(volumeAttachments).delete({ name: 'one' })
  await csi.untilGone(volumeAttachments, { name: 'one' })
  assert.deepEqual(await publishedTo(csi, volumeId), [])
})

test('STO-10 an attachment of a driver without publishing is attached at once, without a finalizer', async () => {
  const { csi, name } = await start({
    driver: ({ controller, ...driver }) => {
      const { controllerPublishVolume: _publish, controllerUnpublishVolume: _unpublish, ...others } = controller
      return { ...driver, controller: others }
    },
  })
  await using _csi = csi
  await attach(csi, name)
  const { metadata } = await untilAttachment(csi, ({ status }) => status?.attached === true)
  assert.equal(metadata.finalizers, undefined)
})

test('STO-10 a volume that the driver no longer lists at its node is published once more', async () => {
  const { csi, name, volumeId } = await start({ options: { compareMs: 100 } })
  await using _csi = csi
  await attach(csi, name)
  await untilAttachment(csi, ({ status }) => status?.attached === true)
  await csi.driver.controller.controllerUnpublishVolume({ volumeId, nodeId: 'n1', secrets: {} })
  await csi.cluster.until(async () => String(await publishedTo(csi, volumeId)) === 'n1', 30_000)
})
