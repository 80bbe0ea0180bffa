import assert from 'node:assert/strict'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { kubeletConfig } from '../core/config.ts'
import type { KubeletContext } from '../core/context.ts'
import { containerMounts } from '../pods/mounts.ts'
import { onMachine, type TestMachine } from './testMachine.ts'
import { createVolumeManager, type VolumeManager } from './volumeManager.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'

const volumeMounts = [
  { name: 'memory', mountPath: '/memory' },
  { name: 'disk', mountPath: '/part', subPath: 'a/b' },
]

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', uid: 'u-1' },
  spec: {
    containers: [{ name: 'main', terminationMessagePath: '', volumeMounts }],
    volumes: [
      { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      { name: 'disk', emptyDir: {} },
      { name: 'unused', hostPath: { path: '/none', type: 'Directory' } },
    ],
  },
  status: {},
}

async function mountAll({ context, host }: TestMachine, manager: VolumeManager) {
  const volumes = await manager.setUpPod(pod)
  return containerMounts(context, host, { pod, container: pod.spec.containers[0] ?? { name: '' }, podIPs: [], environment: new Map(), volumes })
}

test('KUB-11 a restarted kubelet keeps mounted volumes of known pods, and tears down those of unknown pods', { skip }, () =>
  onMachine(async (machine) => {
    const { root, context, gauges, mountsBelow } = machine
    const base = `${root}/pods/u-1`
    const first = await mountAll(machine, createVolumeManager(context))
    assert.deepEqual(
      first.map(({ hostPath }) => hostPath),
      [`${base}/volumes/kubernetes.io~empty-dir/memory`, `${base}/volume-subpaths/disk/main/1`],
    )
    await writeFile(`${first[0]?.hostPath}/file`, 'kept')
    const mounted = await mountsBelow()
    assert.deepEqual([...mounted].sort(), first.map(({ hostPath }) => hostPath).sort())

    const again = createVolumeManager(context)
    assert.deepEqual(await mountAll(machine, again), first)
    assert.deepEqual(await mountsBelow(), mounted)
    assert.equal(await readFile(`${first[0]?.hostPath}/file`, 'utf8'), 'kept')
    assert.ok((await stat(`${base}/volumes/kubernetes.io~empty-dir/disk/a/b`)).isDirectory())

    await again.removeOrphans((uid) => uid === 'u-1')
    assert.deepEqual(await mountsBelow(), mounted)
    assert.equal(gauges.get('kubelet_orphan_pod_cleaned_volumes'), 0)
    await createVolumeManager(context).removeOrphans(() => false)
    assert.deepEqual(await mountsBelow(), [])
    assert.deepEqual(await readdir(`${root}/pods`), [])
    assert.equal(gauges.get('kubelet_orphan_pod_cleaned_volumes'), 1)
    assert.equal(gauges.get('kubelet_orphan_pod_cleaned_volumes_errors'), 0)
  }),
)

test('KUB-11 a volume that cannot be set up keeps the others, and is tried again after its own wait', { skip }, () =>
  onMachine(async ({ root, context, events, mountsBelow }) => {
    const manager = createVolumeManager(context)
    const broken: Pod = {
      ...pod,
      spec: { ...pod.spec, containers: [{ name: 'main', volumeMounts: [...volumeMounts, { name: 'unused', mountPath: '/host' }] }] },
    }
    const message = /^unmounted volumes=\[unused\], /
    await assert.rejects(manager.setUpPod(broken), { name: 'VolumesNotReady', message, retryAfterMs: 500 })
    await assert.rejects(manager.setUpPod(broken), { name: 'VolumesNotReady' })
    assert.deepEqual(events, ['Warning FailedMount MountVolume.SetUp failed for volume "unused" : hostPath /none doesn\'t exist'])
    assert.equal((await mountsBelow()).length, 1)
    await manager.tearDownPod('u-1')
    assert.deepEqual(await mountsBelow(), [])
    assert.deepEqual(await readdir(`${root}/pods`), [])
  }),
)

test('STO-01 a node with swap whose kernel has no tmpfs noswap option records an event', () => {
  const events: string[] = []
  const recorder = { event: (about: { kind: string }, type: string, reason: string) => void events.push(`${about.kind} ${type} ${reason}`) }
  const create = (machineInfo: object) =>
    createVolumeManager({
      host: {},
      log: noLog,
      metrics: noMetrics,
      clock: new VirtualClock(),
      config: kubeletConfig({ nodeName: 'n' }),
      recorder,
      machineInfo,
    } as unknown as KubeletContext)
  create({ kernelVersion: '6.1.0', swapBytes: 0 })
  create({ kernelVersion: '6.18.0', swapBytes: 1 })
  assert.deepEqual(events, [])
  create({ kernelVersion: '6.1.0', swapBytes: 1 })
  assert.deepEqual(events, ['Node Warning PossibleMemoryBackedVolumesOnDisk'])
})
