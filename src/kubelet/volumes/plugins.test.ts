/**
 * One suite for every volume type: each has a sample volume in `samples`, and a plugin without a sample fails the first test. CSI volumes need a driver: their tests
 * are in csi/.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { PersistentVolume, Pod, Volume } from '#api/gen/types/core.v1'
import { directoryUsage } from '#host/directoryUsage'
import { listIfExists } from '#host/files'
import { createVolumeMeasures } from '../server/stats/volumeMeasures.ts'
import { csiPlugin } from './csi/csiText.ts'
import { volumePlugins } from './index.ts'
import { onMachine, type TestMachine } from './testMachine.ts'
import { createVolumeManager } from './volumeManager.ts'
import type { VolumePlugin } from './volumePlugin.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const megabytes = 2 ** 20

interface Sample {
  readonly name: string
  readonly plugin: string
  /** The pod's own source; absent: a claim that is bound to `persistentVolume`. */
  readonly source?: (root: string) => Omit<Volume, 'name'>
  readonly persistentVolume?: (root: string) => PersistentVolume['spec']
  /** Prepares the machine; returns how to undo it. */
  readonly prepare?: (machine: TestMachine) => Promise<() => void>
  /** A file of the volume that is there after set-up, and its content. */
  readonly file?: readonly [name: string, content: string]
  readonly measured: boolean
  readonly isLocalEphemeral?: boolean
}

const data = { greeting: 'hello' }
const metadata = (name: string) => ({ name, namespace: 'n', uid: `uid-of-${name}` })
const withConfigMap = async ({ objects }: TestMachine) => {
  objects.set('ConfigMap/settings', { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings'), data })
  return () => {}
}
const withSecret = async ({ objects }: TestMachine) => {
  const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  objects.set('Secret/token', { apiVersion: 'v1', kind: 'Secret', metadata: metadata('token'), data: encoded })
  return () => {}
}
const withFile = async ({ root }: TestMachine) => {
  await mkdir(`${root}/data`)
  await writeFile(`${root}/data/greeting`, 'hello')
  return () => {}
}
const devices = new Map<string, string>()
/** A block device of 16 MiB: a file behind a loop device. */
const withDevice = async ({ root }: TestMachine) => {
  await writeFile(`${root}/disk`, '')
  await truncate(`${root}/disk`, 16 * megabytes)
  const device = execFileSync('losetup', ['--find', '--show', `${root}/disk`], { encoding: 'utf8' }).trim()
  devices.set(root, device)
  return () => void execFileSync('losetup', ['--detach', device])
}
const deviceSpec =
  (volumeMode: 'Filesystem' | 'Block') =>
  (root: string): PersistentVolume['spec'] => ({ local: { path: devices.get(root) ?? '' }, volumeMode, capacity: { storage: '16Mi' } })
const greeting = ['greeting', 'hello'] as const
const name = { name: 'settings' }

const samples: readonly Sample[] = [
  { name: 'emptyDir', plugin: 'kubernetes.io/empty-dir', source: () => ({ emptyDir: {} }), measured: true, isLocalEphemeral: true },
  { name: 'emptyDir in memory', plugin: 'kubernetes.io/empty-dir', source: () => ({ emptyDir: { medium: 'Memory' } }), measured: true },
  {
    ...{ name: 'hostPath', plugin: 'kubernetes.io/host-path', source: (root) => ({ hostPath: { path: `${root}/data` } }) },
    ...{ prepare: withFile, file: greeting, measured: false },
  },
  {
    ...{ name: 'hostPath behind a claim', plugin: 'kubernetes.io/host-path', persistentVolume: (root) => ({ hostPath: { path: `${root}/data` } }) },
    ...{ prepare: withFile, file: greeting, measured: false },
  },
  {
    ...{ name: 'configMap', plugin: 'kubernetes.io/configmap', source: () => ({ configMap: name }), prepare: withConfigMap },
    ...{ file: greeting, measured: true, isLocalEphemeral: true },
  },
  {
    ...{ name: 'secret', plugin: 'kubernetes.io/secret', source: () => ({ secret: { secretName: 'token' } }), prepare: withSecret },
    ...{ file: greeting, measured: true },
  },
  {
    ...{ name: 'downwardAPI', plugin: 'kubernetes.io/downward-api', measured: true, file: ['pod', 'p'] },
    source: () => ({ downwardAPI: { items: [{ path: 'pod', fieldRef: { fieldPath: 'metadata.name' } }] } }),
  },
  {
    ...{ name: 'projected', plugin: 'kubernetes.io/projected', source: () => ({ projected: { sources: [{ configMap: name }] } }) },
    ...{ prepare: withConfigMap, file: greeting, measured: true },
  },
  {
    ...{ name: 'local directory', plugin: 'kubernetes.io/local-volume', persistentVolume: (root) => ({ local: { path: `${root}/data` } }) },
    ...{ prepare: withFile, file: greeting, measured: true },
  },
  {
    ...{ name: 'local device with a filesystem', plugin: 'kubernetes.io/local-volume', persistentVolume: deviceSpec('Filesystem') },
    ...{ prepare: withDevice, measured: true },
  },
  {
    ...{ name: 'local block device', plugin: 'kubernetes.io/local-volume', persistentVolume: deviceSpec('Block') },
    ...{ prepare: withDevice, measured: true },
  },
]

const isBlock = ({ persistentVolume }: Sample) => persistentVolume?.('').volumeMode === 'Block'

function podWith(sample: Sample, root: string, uid = 'u-1'): Pod {
  const use = isBlock(sample) ? { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] } : { volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  const source = sample.source?.(root) ?? { persistentVolumeClaim: { claimName: 'claim' } }
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid }, status: {} },
    spec: { nodeName: 'node-1', containers: [{ name: 'main', ...use }], volumes: [{ name: 'data', ...source }] },
  }
}

/** Adds a bound claim to the API; `claimed` is the size that its status reports. */
function bindClaim({ objects }: TestMachine, spec: PersistentVolume['spec'], claimed: string): void {
  const claimRef = { ...metadata('claim'), kind: 'PersistentVolumeClaim' }
  objects.set('PersistentVolume/pv-1', { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv-1' }, spec: { ...spec, claimRef }, status: {} })
  const status = { phase: 'Bound', capacity: { storage: claimed }, conditions: [{ type: 'FileSystemResizePending', status: 'True' }] }
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: metadata('claim'), spec: { volumeName: 'pv-1' }, status } as const
  objects.set('PersistentVolumeClaim/claim', { ...claim, status: { ...status, phase: 'Bound' } })
}

/** Runs a test with the sample's volume present. */
function withSample(sample: Sample, run: (machine: TestMachine) => Promise<void>): Promise<void> {
  return onMachine(async (machine) => {
    const undo = await sample.prepare?.(machine)
    try {
      if (sample.persistentVolume) bindClaim(machine, sample.persistentVolume(machine.root), '16Mi')
      await run(machine)
    } finally {
      for (const point of (await machine.mountsBelow()).reverse()) await machine.host.mounter.unmount(point, { lazy: true })
      undo?.()
    }
  })
}

test('KUB-11 each volume type has a sample, and exactly one type supports it', () => {
  assert.deepEqual([...new Set(samples.map(({ plugin }) => plugin)), csiPlugin].sort(), volumePlugins.map((plugin) => plugin.name).sort())
  for (const sample of samples) {
    const persistentVolume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: {}, spec: sample.persistentVolume?.('/') ?? {}, status: {} } as const
    const spec = { name: 'data', readOnly: false, ...(sample.source ? { volume: { name: 'data', ...sample.source('/') } } : { persistentVolume }) }
    const supporting = volumePlugins.filter((plugin) => plugin.supports(spec)).map((plugin) => plugin.name)
    assert.deepEqual(supporting, [sample.plugin], sample.name)
  }
})

for (const sample of samples) {
  test(`KUB-11 ${sample.name} is set up, set up again by a restarted kubelet, and torn down by a third one`, { skip }, () =>
    withSample(sample, async (machine) => {
      const { root, context, host, events } = machine
      const pod = podWith(sample, root)
      const manager = createVolumeManager(context)
      const mounted = (await manager.setUpPod(pod)).get('data')
      assert.deepEqual([mounted?.plugin, mounted?.block], [sample.plugin, isBlock(sample)])
      assert.deepEqual(await manager.setUpPod(pod), await createVolumeManager(context).setUpPod(pod))
      if (sample.file) assert.equal(await readFile(`${host.path(mounted?.path ?? '')}/${sample.file[0]}`, 'utf8'), sample.file[1])
      await createVolumeManager(context).removeOrphans(() => false)
      assert.deepEqual(await machine.mountsBelow(), [])
      assert.deepEqual(await listIfExists(`${root}/pods`), [])
      assert.deepEqual(events, [])
    }),
  )

  test(`KUB-17 ${sample.name} ${sample.measured ? 'has statistics under the name that the pod gives it' : 'has no statistics'}`, { skip }, () =>
    withSample(sample, async ({ root, context, host }) => {
      const manager = createVolumeManager(context)
      const measures = createVolumeMeasures(host, { directory: (path) => directoryUsage(host.path(path)) })
      await manager.setUpPod(podWith(sample, root))
      const measured = await manager.statistics('u-1', measures)
      assert.deepEqual(
        measured.map(({ name, isLocalEphemeral }) => ({ name, isLocalEphemeral })),
        sample.measured ? [{ name: 'data', isLocalEphemeral: sample.isLocalEphemeral ?? false }] : [],
      )
      for (const { usage } of measured) assert.ok((usage.capacityBytes ?? 0) > 0, JSON.stringify(usage))
      if (isBlock(sample)) assert.equal(measured[0]?.usage.capacityBytes, 16 * megabytes)
      assert.deepEqual(await manager.statistics('another pod', measures), [])
      await manager.tearDownPod('u-1')
      assert.deepEqual(await manager.statistics('u-1', measures), [])
    }),
  )
}

const local = samples.find((sample) => sample.name === 'local device with a filesystem')

test('KUB-11 pods of a node share a staged device, and the last one unmounts it', { skip }, async () => {
  assert.ok(local)
  await withSample(local, async ({ root, context, mountsBelow }) => {
    const manager = createVolumeManager(context)
    for (const uid of ['u-1', 'u-2']) await manager.setUpPod(podWith(local, root, uid))
    const staged = `${root}/plugins/kubernetes.io/local-volume/mounts/pv-1`
    assert.ok((await mountsBelow()).includes(staged))
    await manager.tearDownPod('u-1')
    assert.ok((await mountsBelow()).includes(staged))
    await createVolumeManager(context).tearDownPod('u-2')
    assert.deepEqual(await mountsBelow(), [])
  })
})

test('KUB-11 the filesystem of a local device grows while it is mounted, when its claim reports less than its volume has', { skip }, async () => {
  assert.ok(local)
  await withSample(local, async (machine) => {
    const { root, host, events, patches } = machine
    bindClaim(machine, { ...deviceSpec('Filesystem')(root), capacity: { storage: '64Mi' } }, '16Mi')
    const grown: string[] = []
    // Growing a mounted filesystem takes a capability that a container of the tests may lack.
    const run: typeof host.exec.run = async (program, args, ...options) => {
      if (program !== 'resize2fs') return host.exec.run(program, args, ...options)
      grown.push(...args)
      return { code: 0, stdout: '', stderr: '', timedOut: false }
    }
    const context = { ...machine.context, host: { ...host, exec: { ...host.exec, run } } }
    await createVolumeManager(context).setUpPod(podWith(local, root))
    assert.deepEqual(grown, [devices.get(root)])
    const event = 'Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv-1" node-1'
    assert.deepEqual(events, [event, event])
    assert.deepEqual(patches, ['PersistentVolumeClaim/claim {"status":{"capacity":{"storage":"64Mi"},"conditions":[]}}'])
  })
})

/** A type with every optional member. It writes its state to disk, as CSI does, and records the calls. */
function recordingPlugin(calls: string[], machine: TestMachine): VolumePlugin {
  const record = (call: string, ...details: (string | undefined)[]) => void calls.push([call, ...details].join(' '))
  return {
    name: 'example.com/recording',
    supports: ({ persistentVolume }) => persistentVolume?.spec.csi !== undefined,
    attachments: {
      uniqueName: ({ name }) => name,
      isAttachable: async () => true,
      waitForAttach: async (_, { spec }) => {
        if (!machine.objects.has('attached')) throw new Error('volume attachment is being waited for')
        record('waitForAttach', spec.name)
        return '/dev/attached'
      },
    },
    staging: {
      path: (_, { name, persistentVolume }) => `${machine.root}/staging/${persistentVolume?.spec.csi?.volumeHandle ?? name}`,
      mountDevice: async (_, { devicePath, stagingPath }) => record('mountDevice', devicePath, stagingPath?.replace(machine.root, '')),
      unmountDevice: async (_, _spec, stagingPath) => record('unmountDevice', stagingPath.replace(machine.root, '')),
    },
    setUp: async (_, { spec, directory, devicePath, stagingPath }) => {
      record('setUp', spec.name, devicePath, stagingPath?.replace(machine.root, ''))
      await mkdir(directory, { recursive: true })
      await writeFile(`${directory}/state`, spec.persistentVolume?.spec.csi?.volumeHandle ?? '')
      return directory
    },
    expansion: { nodeExpand: async (_, { spec }, _path, newSize) => record('nodeExpand', spec.name, newSize) },
    reconstruct: async (_, directory) => {
      const volumeHandle = await readFile(`${directory}/state`, 'utf8')
      const csi = { driver: 'example.com', volumeHandle }
      return { name: 'pv-1', readOnly: false, persistentVolume: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: {}, spec: { csi }, status: {} } }
    },
    tearDown: async (_, { spec }) => record('tearDown', spec.persistentVolume?.spec.csi?.volumeHandle),
  }
}

test('KUB-11 a type with all optional members is attached, staged, set up and expanded, and a restarted kubelet reverses it from disk', { skip }, () =>
  onMachine(async (machine) => {
    const { context, root, events, objects } = machine
    const calls: string[] = []
    const sample: Sample = { name: 'recording', plugin: 'example.com/recording', measured: false }
    bindClaim(machine, { csi: { driver: 'example.com', volumeHandle: 'h' }, capacity: { storage: '2Gi' } }, '1Gi')
    const manager = createVolumeManager(context, [recordingPlugin(calls, machine)])
    await assert.rejects(manager.setUpPod(podWith(sample, root)), { name: 'VolumesNotReady', retryAfterMs: 500 })
    assert.deepEqual(events, ['Warning FailedMount MountVolume.WaitForAttach failed for volume "pv-1" : volume attachment is being waited for'])
    assert.deepEqual(calls, [])
    objects.set('attached', { apiVersion: 'v1', kind: 'Node', metadata: {}, spec: {}, status: {} })
    await (context.clock as unknown as { advance(ms: number): Promise<void> }).advance(500)
    await manager.setUpPod(podWith(sample, root))
    assert.deepEqual(calls, ['waitForAttach pv-1', 'mountDevice /dev/attached /staging/h', 'setUp pv-1 /dev/attached /staging/h', 'nodeExpand pv-1 2Gi'])
    calls.length = 0
    objects.clear()
    await createVolumeManager(context, [recordingPlugin(calls, machine)]).tearDownPod('u-1')
    assert.deepEqual(calls, ['tearDown h', 'unmountDevice /staging/h'])
  }),
)
