/** Drivers that hang, end, refuse or answer garbage: what is kept, what is removed, and what the rest of the node sees. */
import assert from 'node:assert/strict'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { listIfExists } from '#host/files'
import { CsiError, nodeDriver } from '#testing/csiDriver'
import { advance, assertNothingLeft, bindVolume, type CsiMachine, onCsiMachine, podUsing } from '#testing/csiMachine'
import { createVolumeMeasures } from '../../server/stats/volumeMeasures.ts'
import { volumePlugins } from '../index.ts'
import { createVolumeManager } from '../volumeManager.ts'
import { createVolumesInUse } from '../volumesInUse.ts'
import { attachmentName } from './source.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const nothing = () => {}
const never = () => new Promise<void>(() => {})
const refuse = (code: ConstructorParameters<typeof CsiError>[0], message = 'because') => {
  throw new CsiError(code, message)
}
const staging = { nodeStageVolume: nothing, nodeUnstageVolume: nothing }
const staged = ({ root, served }: CsiMachine) => listIfExists(`${root}/plugins/kubernetes.io/csi/${served.driver.name}`)

test('STO-09 a refusal to stage leaves nothing, and the pod ends without another call', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ ...staging, nodeStageVolume: () => refuse('INTERNAL') }) }, async (machine) => {
    bindVolume(machine, 'h')
    await assert.rejects(machine.manager.setUpPod(podUsing('u-1')), { name: 'VolumesNotReady' })
    const text = 'Warning FailedMount MountVolume.MountDevice failed for volume "pv-1" : rpc error: code = Internal desc = because'
    assert.deepEqual(machine.events, [text])
    assert.deepEqual(await staged(machine), [])
    await machine.manager.tearDownPod('u-1')
    assert.deepEqual(machine.methods(), ['nodeStageVolume'])
    await assertNothingLeft(machine)
  }),
)

test('STO-09 a refusal to publish keeps what is staged, and the end of the pod unstages it', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ ...staging, nodePublishVolume: () => refuse('INVALID_ARGUMENT') }) }, async (machine) => {
    bindVolume(machine, 'h')
    await assert.rejects(machine.manager.setUpPod(podUsing('u-1')))
    await advance(machine, 1_000)
    await assert.rejects(machine.manager.setUpPod(podUsing('u-1')))
    assert.deepEqual(machine.methods(), ['nodeStageVolume', 'nodePublishVolume', 'nodePublishVolume'])
    await machine.manager.tearDownPod('u-1')
    assert.deepEqual(machine.methods(), ['nodeUnstageVolume'])
    await assertNothingLeft(machine)
  }),
)

test('STO-09 a driver that does not answer in time may have staged: it is asked to unstage, also by a later kubelet', { skip }, () => {
  let finish = nothing
  const slow = () =>
    new Promise<void>((resolve) => {
      finish = resolve
    })
  return onCsiMachine({ driver: nodeDriver({ ...staging, nodeStageVolume: slow }), timeoutMs: 500 }, async (machine) => {
    bindVolume(machine, 'h')
    await assert.rejects(machine.manager.setUpPod(podUsing('u-1')))
    const reason = 'rpc error: code = DeadlineExceeded desc = context deadline exceeded'
    assert.deepEqual(machine.events, [`Warning FailedMount MountVolume.MountDevice failed for volume "pv-1" : ${reason}`])
    assert.equal((await staged(machine)).length, 1)
    const later = await machine.restarted()
    await later.tearDownPod('u-1')
    assert.deepEqual(machine.methods(), [])
    finish()
    await advance(machine, 500)
    await later.removeOrphans(() => true)
    assert.deepEqual(machine.methods(), ['nodeUnstageVolume'])
    await assertNothingLeft(machine)
  })
})

test('STO-09 a pod ends although its volume cannot be unstaged; the volume stays in use, and is unstaged once the driver can', { skip }, () => {
  let isRefusing = true
  const nodeUnstageVolume = () => {
    if (isRefusing) refuse('INTERNAL')
  }
  return onCsiMachine({ driver: nodeDriver({ ...staging, nodeUnstageVolume }), spec: { attachRequired: true } }, async (machine) => {
    const { context, drivers, objects, root } = machine
    bindVolume(machine, 'h')
    const attachment = attachmentName('h', machine.served.driver.name, 'node-1')
    const spec = { attacher: machine.served.driver.name, nodeName: 'node-1', source: { persistentVolumeName: 'pv-1' } }
    objects.set(`VolumeAttachment/${attachment}`, {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: attachment } },
      ...{ spec, status: { attached: true } },
    })
    const inUse = createVolumesInUse(context.clock, () => inUse.reported(inUse.names([])))
    const manager = createVolumeManager(context, volumePlugins, { csi: drivers, inUse })
    await manager.setUpPod(podUsing('u-1'))
    await manager.tearDownPod('u-1')
    assert.deepEqual(await listIfExists(`${root}/pods`), [])
    const [name = ''] = [`kubernetes.io/csi/${machine.served.driver.name}^h`]
    assert.deepEqual(inUse.names([name]), [name])
    await manager.removeOrphans(() => true)
    assert.equal(machine.methods().filter((method) => method === 'nodeUnstageVolume').length, 1, 'the wait is not over')
    isRefusing = false
    await advance(machine, 500)
    await manager.removeOrphans(() => true)
    assert.deepEqual(inUse.names([name]), [])
    await assertNothingLeft(machine)
  })
})

test('STO-09 a volume that an earlier kubelet could not unstage is unstaged by the next one', { skip }, () => {
  let isRefusing = true
  const nodeUnstageVolume = () => {
    if (isRefusing) refuse('UNAVAILABLE')
  }
  return onCsiMachine({ driver: nodeDriver({ ...staging, nodeUnstageVolume }) }, async (machine) => {
    bindVolume(machine, 'h')
    await machine.manager.setUpPod(podUsing('u-1'))
    await machine.manager.tearDownPod('u-1')
    isRefusing = false
    const later = await machine.restarted()
    await later.removeOrphans(() => true)
    assert.deepEqual(machine.methods(), ['nodeUnstageVolume'])
    await assertNothingLeft(machine)
  })
})

test('STO-09 a data file that a crash left empty keeps no other volume of an earlier kubelet from being unstaged', { skip }, () => {
  let isRefusing = true
  const nodeUnstageVolume = () => {
    if (isRefusing) refuse('UNAVAILABLE')
  }
  return onCsiMachine({ driver: nodeDriver({ ...staging, nodeUnstageVolume }) }, async (machine) => {
    const { root, served } = machine
    bindVolume(machine, 'h')
    await machine.manager.setUpPod(podUsing('u-1'))
    await machine.manager.tearDownPod('u-1')
    const broken = `${root}/plugins/kubernetes.io/csi/${served.driver.name}/0-broken`
    await mkdir(broken)
    await writeFile(`${broken}/vol_data.json`, '')
    isRefusing = false
    const later = await machine.restarted()
    await later.removeOrphans(() => true)
    assert.deepEqual(machine.methods(), ['nodeUnstageVolume'])
    assert.deepEqual(await staged(machine), ['0-broken'])
  })
})

test('STO-09 two PersistentVolumes of one volume are unstaged after the last pod of both', { skip }, () =>
  onCsiMachine({ driver: nodeDriver(staging) }, async (machine) => {
    const { manager, objects } = machine
    bindVolume(machine, 'h')
    const second = { namespace: 'n', name: 'second', uid: 'second-uid' }
    const volume = objects.get('PersistentVolume/pv-1') as PersistentVolume
    const claim = objects.get('PersistentVolumeClaim/claim') as PersistentVolumeClaim
    objects.set('PersistentVolume/pv-2', { ...volume, metadata: { name: 'pv-2' }, spec: { ...volume.spec, claimRef: second } })
    objects.set('PersistentVolumeClaim/second', { ...claim, metadata: second, spec: { volumeName: 'pv-2' } })
    await manager.setUpPod(podUsing('u-1'))
    await manager.setUpPod(podUsing('u-2', { persistentVolumeClaim: { claimName: 'second' } }))
    machine.methods()
    await manager.tearDownPod('u-1')
    assert.deepEqual(machine.methods(), ['nodeUnpublishVolume'])
    await manager.tearDownPod('u-2')
    assert.deepEqual(machine.methods(), ['nodeUnpublishVolume', 'nodeUnstageVolume'])
    await assertNothingLeft(machine)
  }),
)

test('STO-11 a driver whose socket answers garbage is refused, and the kubelet works on', { skip }, () =>
  onCsiMachine({ driver: nodeDriver(staging) }, async (machine) => {
    const socket = `${machine.root}/garbage.sock`
    const server = createServer((connection) => {
      connection.on('error', nothing)
      connection.write(Buffer.alloc(64_000, 0xa5))
    })
    await new Promise<void>((resolve) => server.listen(socket, resolve))
    try {
      const garbage = { type: 'CSIPlugin', name: 'garbage.example.com', endpoint: socket, supportedVersions: ['1.0.0'] }
      await assert.rejects(async () => machine.drivers.handler.register(garbage), /rpc error: code = Unavailable/)
      bindVolume(machine, 'h')
      await machine.manager.setUpPod(podUsing('u-1'))
      await machine.manager.tearDownPod('u-1')
    } finally {
      server.close()
    }
  }),
)

test('STO-09 a driver that ends during a call leaves the volume in doubt, and the next driver sets it up', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ ...staging, nodePublishVolume: never }) }, async (machine) => {
    bindVolume(machine, 'h')
    const attempt = assert.rejects(machine.manager.setUpPod(podUsing('u-1')))
    while (!machine.served.calls.some(({ method }) => method === 'nodePublishVolume')) await new Promise(setImmediate)
    await machine.served.close()
    await attempt
    assert.match(machine.events.join(), /MountVolume.SetUp failed for volume "pv-1" : rpc error: code = Unavailable/)
    assert.deepEqual((await listIfExists(`${machine.root}/pods/u-1/volumes/kubernetes.io~csi/pv-1`)).sort(), ['stage_data.json', 'vol_data.json'])
  }),
)

test('STO-11 a driver that hangs does not keep pods from the volumes of others', { skip }, () =>
  onCsiMachine({ driver: nodeDriver({ ...staging, nodePublishVolume: never }) }, async (machine) => {
    const { manager, served } = machine
    bindVolume(machine, 'h')
    const hanging = manager.setUpPod(podUsing('u-1')).catch(nothing)
    while (!served.calls.some(({ method }) => method === 'nodePublishVolume')) await new Promise(setImmediate)
    const other = await manager.setUpPod(podUsing('u-2', { emptyDir: {} }))
    assert.deepEqual([...other.keys()], ['data'])
    await served.close()
    await hanging
  }),
)

test('STO-09 a driver that is not registered any more keeps the pod, and the error names the driver', { skip }, () =>
  onCsiMachine({ driver: nodeDriver(staging) }, async (machine) => {
    const { manager, drivers, served } = machine
    bindVolume(machine, 'h')
    await manager.setUpPod(podUsing('u-1'))
    const { name } = served.driver
    drivers.handler.deregister({ type: 'CSIPlugin', name, endpoint: served.socket, supportedVersions: [] })
    const step = 'kubernetes.io/csi: Unmounter.TearDownAt failed to get CSI client'
    await assert.rejects(manager.tearDownPod('u-1'), { message: `${step}: driver name ${name} not found in the list of registered CSI drivers` })
    assert.equal((await staged(machine)).length, 1)
    await (await machine.restarted()).tearDownPod('u-1')
    await assertNothingLeft(machine)
  }),
)

test('STO-09 data in place of a volume that the driver says is unpublished is an error, and stays', { skip }, () => {
  const nodePublishVolume = ({ targetPath }: { readonly targetPath: string }) => mkdir(targetPath, { recursive: true }).then(nothing)
  return onCsiMachine({ driver: nodeDriver({ nodePublishVolume }) }, async (machine) => {
    bindVolume(machine, 'h')
    const mounted = (await machine.manager.setUpPod(podUsing('u-1'))).get('data')
    await writeFile(`${mounted?.path}/file`, 'of the pod')
    await assert.rejects(machine.manager.tearDownPod('u-1'), /failed to remove dir .*mount/)
    assert.equal((await stat(`${mounted?.path}/file`)).size, 10)
  })
})

test('STO-08 a volume is published again while its pod runs, if its driver wants that, and a failure keeps the content', { skip }, () => {
  let isRefusing = false
  const nodePublishVolume = async ({ targetPath }: { readonly targetPath: string }) => {
    if (isRefusing) refuse('INTERNAL')
    await mkdir(targetPath, { recursive: true })
  }
  const driver = nodeDriver({ nodePublishVolume })
  return onCsiMachine({ driver, spec: { requiresRepublish: true, volumeLifecycleModes: ['Ephemeral'] } }, async (machine) => {
    const { manager, events, methods } = machine
    const pod = podUsing('u-1', { csi: { driver: driver.name } })
    const publishedAgain = async () => {
      const before = machine.served.calls.length
      await manager.setUpPod(pod)
      while (machine.served.calls.length === before) await new Promise(setImmediate)
    }
    const mounted = (await manager.setUpPod(pod)).get('data')
    await publishedAgain()
    assert.deepEqual(methods(), ['nodePublishVolume', 'nodePublishVolume'])
    isRefusing = true
    // The work of before may still be under way, in which case the pod's next sync starts it.
    while (events.length === 0) {
      await manager.setUpPod(pod)
      await new Promise(setImmediate)
    }
    assert.match(events.join(), /MountVolume.SetUp failed for volume "data" : rpc error: code = Internal/)
    assert.ok((await stat(mounted?.path ?? '')).isDirectory())
  })
})

const usage = { total: 100, used: 40, available: 60, unit: 'BYTES' } as const

test('KUB-17 statistics of a volume are those of its driver, and the last ones while the driver hangs', { skip }, () => {
  let answer = async () => ({ usage: [usage] })
  return onCsiMachine({ driver: nodeDriver({ ...staging, nodeGetVolumeStats: () => answer() }) }, async (machine) => {
    const { manager, host } = machine
    bindVolume(machine, 'h')
    await manager.setUpPod(podUsing('u-1'))
    const measures = createVolumeMeasures(host, { directory: assert.fail })
    const measured = async () => (await manager.statistics('u-1', measures)).map((one) => one.usage)
    const wanted = { capacityBytes: 100, availableBytes: 60, usedBytes: 40, inodes: 0, inodesFree: 0, inodesUsed: 0 }
    assert.deepEqual(await measured(), [wanted])
    answer = () => new Promise(() => {})
    await advance(machine, 60_000)
    const asking = measured()
    while (machine.served.calls.filter(({ method }) => method === 'nodeGetVolumeStats').length < 2) await new Promise(setImmediate)
    await advance(machine, 1_000)
    assert.deepEqual(await asking, [wanted])
  })
})
