/** Volumes of CSI drivers, set up by the volume manager through a driver's socket. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { CSINode, VolumeAttachment } from '#api/gen/types/storage.v1'
import { nodeDriver } from '#testing/csiDriver'
import { advance, assertNothingLeft, bindVolume, createVolume, onCsiMachine, podUsing, withDevice } from '#testing/csiMachine'
import { createVolumeManager } from '../volumeManager.ts'
import type { VolumePlugin } from '../volumePlugin.ts'
import { createVolumesInUse, untracked } from '../volumesInUse.ts'
import { csiVolume } from './csiVolume.ts'
import { attachmentName } from './source.ts'

function promised(): [promise: Promise<void>, resolve: () => void] {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return [promise, () => resolve()]
}

const nothing = () => {}
const skip = process.getuid?.() === 0 ? false : 'needs root'

test('STO-09 two pods of a node share what the driver staged once, and the last one has it unstaged', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    const { root, manager, methods } = machine
    bindVolume(machine, await createVolume(machine))
    const first = (await manager.setUpPod(podUsing('u-1'))).get('data')
    assert.equal(first?.path, `${root}/pods/u-1/volumes/kubernetes.io~csi/pv-1/mount`)
    await writeFile(`${first.path}/file`, 'of the first')
    const second = (await manager.setUpPod(podUsing('u-2'))).get('data')
    assert.equal(await readFile(`${second?.path}/file`, 'utf8'), 'of the first')
    await manager.tearDownPod('u-1')
    assert.deepEqual(methods(), ['nodeStageVolume', 'nodePublishVolume', 'nodePublishVolume', 'nodeUnpublishVolume'])
    await manager.tearDownPod('u-2')
    assert.deepEqual(methods(), ['nodeUnpublishVolume', 'nodeUnstageVolume'])
    await assertNothingLeft(machine)
    assert.deepEqual(machine.events, [])
  }),
)

test('STO-09 the last pod of a volume has it unstaged while an earlier one waits for another volume', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    const { root, context, drivers, methods } = machine
    bindVolume(machine, await createVolume(machine))
    const [waiting, finish] = promised()
    const [isSlow, markSlow] = promised()
    const tearDown = () => {
      markSlow()
      return waiting
    }
    const slow: VolumePlugin = { name: 'example.com/slow', supports: () => false, setUp: async () => '', tearDown }
    const manager = createVolumeManager(context, [csiVolume, slow], { csi: drivers, inUse: untracked })
    for (const uid of ['u-1', 'u-2']) await manager.setUpPod(podUsing(uid))
    await mkdir(`${root}/pods/u-1/volumes/example.com~slow/data`, { recursive: true })
    const first = manager.tearDownPod('u-1')
    await isSlow
    await manager.tearDownPod('u-2')
    assert.deepEqual(methods().slice(3), ['nodeUnpublishVolume', 'nodeUnpublishVolume', 'nodeUnstageVolume'])
    finish()
    await first
    await assertNothingLeft(machine)
  }),
)

test('STO-09 a restarted kubelet sets a volume up again without a new mount, and reverses it when the API objects are gone', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    const { root, objects } = machine
    bindVolume(machine, await createVolume(machine))
    await machine.manager.setUpPod(podUsing('u-1'))
    const directory = `${root}/pods/u-1/volumes/kubernetes.io~csi/pv-1`
    const data = JSON.parse(await readFile(`${directory}/vol_data.json`, 'utf8'))
    assert.deepEqual(Object.keys(data).sort(), ['attachmentID', 'driverName', 'nodeName', 'specVolID', 'volumeHandle', 'volumeLifecycleMode'])
    const mounts = await machine.mountsBelow()
    await (await machine.restarted()).setUpPod(podUsing('u-1'))
    assert.deepEqual(await machine.mountsBelow(), mounts)
    const third = await machine.restarted()
    objects.clear()
    await third.tearDownPod('u-1')
    assert.deepEqual(machine.methods(), ['nodeUnpublishVolume', 'nodeUnstageVolume'])
    await assertNothingLeft(machine)
  }),
)

test('STO-11 a registered driver is in the CSINode and on the Node, and a driver whose socket is gone is not', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    const { objects, patches, served, drivers } = machine
    const { name } = served.driver
    const { spec } = objects.get('CSINode/node-1') as CSINode
    assert.deepEqual(spec.drivers, [{ name, nodeID: 'node-1', topologyKeys: ['topology.hostpath.csi.skiff.dev/node'] }])
    const annotations = { 'csi.volume.kubernetes.io/nodeid': JSON.stringify({ [name]: 'node-1' }) }
    const labels = { 'topology.hostpath.csi.skiff.dev/node': 'node-1' }
    assert.deepEqual(patches, [`Node/node-1 ${JSON.stringify({ metadata: { labels, annotations } })}`])
    drivers.handler.deregister({ type: 'CSIPlugin', name, endpoint: served.socket, supportedVersions: [] })
    await assert.rejects(async () => {
      for (;;) {
        drivers.operation(name)
        await new Promise(setImmediate)
      }
    }, /not found in the list of registered CSI drivers/)
  }),
)

test('STO-08 a block volume is staged and published as a device, and a restarted kubelet reverses it from its own notes', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    const { root, manager, objects, methods } = machine
    bindVolume(machine, await createVolume(machine, 'block'), { volumeMode: 'Block' })
    const pod = podUsing('u-1', undefined, { containers: [withDevice] })
    const mounted = (await manager.setUpPod(pod)).get('data')
    const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`
    assert.deepEqual([mounted?.block, mounted?.path], [true, `${devices}/publish/pv-1/u-1`])
    assert.ok((await stat(mounted?.path ?? '')).isBlockDevice())
    assert.equal(await readlink(`${root}/pods/u-1/volumeDevices/kubernetes.io~csi/pv-1`), mounted?.path)
    assert.equal(machine.requestOf('nodeStageVolume').stagingTargetPath, `${devices}/staging/pv-1`)
    assert.deepEqual(methods(), ['nodeStageVolume', 'nodePublishVolume'])
    const again = await machine.restarted()
    objects.clear()
    await again.tearDownPod('u-1')
    assert.deepEqual(methods(), ['nodeUnpublishVolume', 'nodeUnstageVolume'])
    await assertNothingLeft(machine)
  }),
)

test('STO-10 a pod waits for the attachment of its volume, and the driver gets what its controller answered', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ nodeStageVolume: nothing, nodeUnstageVolume: nothing }), spec: null }, async (machine) => {
    const { manager, objects, events, served, methods } = machine
    bindVolume(machine, 'h')
    const name = attachmentName('h', served.driver.name, 'node-1')
    const attachment = (status: VolumeAttachment['status']) => {
      const spec = { attacher: served.driver.name, nodeName: 'node-1', source: { persistentVolumeName: 'pv-1' } }
      objects.set(`VolumeAttachment/${name}`, { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name }, spec, status })
    }
    const attempt = async () => {
      await assert.rejects(manager.setUpPod(podUsing('u-1')), { name: 'VolumesNotReady' })
      await advance(machine, 10_000)
      return events.pop()?.replace('Warning FailedMount MountVolume.WaitForAttach failed for volume "pv-1" : ', '')
    }
    const missing = `volume h has GET error for volume attachment ${name}: VolumeAttachment "${name}" not found`
    assert.equal(await attempt(), missing)
    attachment({ attached: false })
    assert.equal(await attempt(), `volume h is not attached for volume attachment ${name}`)
    attachment({ attached: false, attachError: { message: 'no disk' } })
    assert.equal(await attempt(), 'no disk')
    assert.deepEqual(methods(), [])
    attachment({ attached: true, attachmentMetadata: { device: 'sdb' } })
    await manager.setUpPod(podUsing('u-1'))
    assert.deepEqual(machine.requestOf('nodeStageVolume').publishContext, { device: 'sdb' })
    assert.deepEqual(machine.requestOf('nodePublishVolume').publishContext, { device: 'sdb' })
  }),
)

test('STO-08 a driver gets the secrets, options, attributes and access mode of its volume, and what it asks of the pod', { skip }, () => {
  const spec = { podInfoOnMount: true, tokenRequests: [{ audience: 'vault' }, { audience: '' }] }
  return onCsiMachine({ driver: nodeDriver({ nodeStageVolume: nothing, nodeUnstageVolume: nothing }), spec }, async (machine) => {
    const { manager, objects, served } = machine
    const secretOf = (name: string) => ({ [`${name}SecretRef`]: { namespace: 's', name } })
    for (const name of ['nodeStage', 'nodePublish']) {
      const data = { key: Buffer.from(`of ${name}`).toString('base64') }
      objects.set(`Secret/${name}`, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 's', name }, data })
    }
    const source = { fsType: 'xfs', volumeAttributes: { pool: 'fast' }, ...secretOf('nodeStage'), ...secretOf('nodePublish') }
    bindVolume(machine, 'h', { accessModes: ['ReadWriteMany'], mountOptions: ['noatime'] }, source)
    await manager.setUpPod(podUsing('u-1', { persistentVolumeClaim: { claimName: 'claim', readOnly: true } }))
    const stage = machine.requestOf('nodeStageVolume')
    const mount = { fsType: 'xfs', mountFlags: ['noatime'], volumeMountGroup: '' }
    const volumeCapability = { block: null, mount, accessMode: { mode: 'MULTI_NODE_MULTI_WRITER' } }
    const { stagingTargetPath } = stage
    const common = { volumeId: 'h', publishContext: {}, stagingTargetPath, volumeCapability }
    assert.deepEqual(stage, { ...common, secrets: { key: 'of nodeStage' }, volumeContext: { pool: 'fast' } })
    const { targetPath, volumeContext, ...publish } = machine.requestOf('nodePublishVolume')
    assert.deepEqual(publish, { ...common, readonly: true, secrets: { key: 'of nodePublish' } })
    const token = { token: 'token', expirationTimestamp: '2026-01-01T01:00:00Z' }
    assert.deepEqual(volumeContext, {
      pool: 'fast',
      'csi.storage.k8s.io/pod.name': 'p',
      'csi.storage.k8s.io/pod.namespace': 'n',
      'csi.storage.k8s.io/pod.uid': 'u-1',
      'csi.storage.k8s.io/serviceAccount.name': 'robot',
      'csi.storage.k8s.io/ephemeral': 'false',
      'csi.storage.k8s.io/serviceAccount.tokens': JSON.stringify({ '': token, vault: token }),
    })
    const directory = `${machine.root}/plugins/kubernetes.io/csi/${served.driver.name}`
    assert.equal(stagingTargetPath, `${directory}/${createHash('sha256').update('h').digest('hex')}/globalmount`)
    assert.equal(targetPath, `${machine.root}/pods/u-1/volumes/kubernetes.io~csi/pv-1/mount`)
  })
})

test('STO-16 an inline volume gets a handle of its pod, is not staged, and needs a driver that has such volumes', { skip }, () =>
  onCsiMachine(
    { driver: nodeDriver({ nodeStageVolume: nothing, nodeUnstageVolume: nothing }), spec: { volumeLifecycleModes: ['Ephemeral'] } },
    async (machine) => {
      const { manager, methods, events, served, objects } = machine
      const { name } = served.driver
      const pod = podUsing('u-1', { csi: { driver: name, readOnly: true, volumeAttributes: { size: '1' } } })
      const mounted = (await manager.setUpPod(pod)).get('data')
      assert.equal(mounted?.readOnly, true)
      const request = machine.requestOf('nodePublishVolume')
      const volumeId = `csi-${createHash('sha256').update('u-1data').digest('hex')}`
      assert.deepEqual([request.volumeId, request.readonly, request.stagingTargetPath], [volumeId, true, ''])
      await manager.tearDownPod('u-1')
      assert.deepEqual(methods(), ['nodePublishVolume', 'nodeUnpublishVolume'])
      await assertNothingLeft(machine)
      objects.delete(`CSIDriver/${name}`)
      await assert.rejects(manager.setUpPod(pod))
      const reason = `volume mode "Ephemeral" not supported by driver ${name} (no CSIDriver object)`
      const step = 'kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode'
      assert.deepEqual(events, [`Warning FailedMount MountVolume.SetUp failed for volume "data" : ${step}: ${reason}`])
    },
  ),
)

const group = 4711
const groupCases = [
  { name: 'File changes it', policy: 'File', fsType: '', accessMode: 'ReadWriteMany', isChanged: true },
  { name: 'None leaves it', policy: 'None', fsType: 'ext4', accessMode: 'ReadWriteOnce', isChanged: false },
  { name: 'the default changes it with a type of filesystem', policy: undefined, fsType: 'ext4', accessMode: 'ReadWriteOnce', isChanged: true },
  { name: 'the default leaves it without a type', policy: undefined, fsType: '', accessMode: 'ReadWriteOnce', isChanged: false },
  { name: 'the default leaves a volume of many nodes', policy: undefined, fsType: 'ext4', accessMode: 'ReadWriteMany', isChanged: false },
]
for (const { name, policy, fsType, accessMode, isChanged } of groupCases) {
  test(`STO-08 the group of a volume and fsGroupPolicy: ${name}`, { skip }, () => {
    const nodePublishVolume = ({ targetPath }: { readonly targetPath: string }) => mkdir(targetPath, { recursive: true }).then(nothing)
    return onCsiMachine({ driver: nodeDriver({ nodePublishVolume }), spec: policy === undefined ? {} : { fsGroupPolicy: policy } }, async (machine) => {
      bindVolume(machine, 'h', { accessModes: [accessMode] }, { fsType })
      const pod = podUsing('u-1', undefined, { securityContext: { fsGroup: group } })
      const mounted = (await machine.manager.setUpPod(pod)).get('data')
      const { gid } = await stat(mounted?.path ?? '')
      assert.equal(gid === group, isChanged)
    })
  })
}

test('STO-08 a driver with VOLUME_MOUNT_GROUP gets the group in both requests', { skip }, () =>
  onCsiMachine({}, async (machine) => {
    bindVolume(machine, await createVolume(machine))
    await machine.manager.setUpPod(podUsing('u-1', undefined, { securityContext: { fsGroup: group } }))
    for (const method of ['nodeStageVolume', 'nodePublishVolume']) {
      const { volumeCapability } = machine.requestOf(method) as { volumeCapability: { mount: { volumeMountGroup: string } } }
      assert.equal(volumeCapability.mount.volumeMountGroup, String(group))
    }
  }),
)

test('STO-10 an attached volume is in the status of the Node before it is mounted, and until its pod is torn down', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ nodeStageVolume: nothing, nodeUnstageVolume: nothing }), spec: { attachRequired: true } }, async (machine) => {
    const { context, drivers, objects, served, methods } = machine
    bindVolume(machine, 'h')
    const { name: driver } = served.driver
    const name = attachmentName('h', driver, 'node-1')
    const source = { persistentVolumeName: 'pv-1' }
    const spec = { attacher: driver, nodeName: 'node-1', source }
    objects.set(`VolumeAttachment/${name}`, { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name }, spec, status: { attached: true } })
    const [isAsked, ask] = promised()
    const inUse = createVolumesInUse(context.clock, ask)
    const manager = createVolumeManager(context, [csiVolume], { csi: drivers, inUse })
    const mounting = manager.setUpPod(podUsing('u-1'))
    await isAsked
    assert.deepEqual([inUse.names([]), methods()], [[`kubernetes.io/csi/${driver}^h`], []])
    inUse.reported(inUse.names([]))
    await mounting
    const later = createVolumesInUse(context.clock, nothing)
    const restarted = createVolumeManager(context, [csiVolume], { csi: drivers, inUse: later })
    await restarted.restoreInUse()
    assert.deepEqual(later.names([]), [])
    assert.deepEqual(later.names([`kubernetes.io/csi/${driver}^h`, 'another']), [`kubernetes.io/csi/${driver}^h`])
    await restarted.tearDownPod('u-1')
    assert.deepEqual(later.names([`kubernetes.io/csi/${driver}^h`]), [])
  }),
)
