/**
 * A real node whose disks run full, of bytes and of inodes: the kubelet's disk, by another process and by a pod, and the disk of images and
 * containers. Running pods keep their processes, a kubelet that is killed meanwhile restarts, only the pod that filled the disk is evicted, and
 * pods start again once there is room.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { configMaps, deployments, pods } from '#client/builtIn'
import { connectCri } from '#grpc/criClient'
import { createExec } from '#host/exec'
import { importImage } from '#kubelet/images/importImage'
import { ociTar } from '#kubelet/images/ociTar'
import { createContainerdRuntime } from '#kubelet/runtime/containerd/containerdRuntime'
import { realClock } from '#testing/realClock'
import { busybox } from '../../e2e/kubeletContainerd.ts'
import { eventually } from '../../e2e/support/localCluster.ts'
import { fillDisk } from '../../support/fillDisk.ts'
import { BoundedNode, obstacleToNode, withinMs } from './support/boundedNode.ts'

const skip = await obstacleToNode()
const options = { skip, timeout: 170_000 }
const mebibyte = 2 ** 20
const steady = 3
const onlyMemory = { 'memory.available': '1Mi' }
let node: BoundedNode

const account = { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1 }
const main = (script: string) => ({ name: 'main', image: busybox, imagePullPolicy: 'Never', command: ['sh', '-c', script] })
/** With what makes a kubelet write: content of the API, and a directory. */
const spec = (script: string) => ({
  ...account,
  containers: [
    {
      ...main(script),
      volumeMounts: [
        { name: 'settings', mountPath: '/settings' },
        { name: 'scratch', mountPath: '/scratch' },
      ],
    },
  ],
  volumes: [
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'scratch', emptyDir: {} },
  ],
})
const create = (name: string, podSpec: Pod['spec']) => node.client.of(pods).create({ metadata: { namespace: 'default', name }, spec: podSpec })
const isSteady = ({ metadata }: Frozen<Pod>) => metadata.name?.startsWith('steady-') === true
const isReady = ({ status }: Frozen<Pod>) => status?.containerStatuses?.[0]?.ready === true
const identity = ({ metadata, status }: Frozen<Pod>) => {
  const [first] = status?.containerStatuses ?? []
  return `${metadata.name} ${metadata.uid} ${first?.containerID} ${first?.restartCount}`
}
const steadyPods = async () => (await node.pods()).filter(isSteady)
const identities = async () => (await steadyPods()).map(identity).sort()
const allSteady = () => eventually('the steady pods run, none more', withinMs, steadyPods, (found) => found.length === steady && found.every(isReady))

before(async () => {
  if (skip) return
  const disks = { nodefsBytes: 120 * mebibyte, nodefsInodes: 1000, imagefsBytes: 200 * mebibyte }
  node = await BoundedNode.start({ ...disks, kubelet: { evictionHard: onlyMemory } })
  await node.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'settings' }, data: { color: 'blue' } })
  const template = { metadata: { labels: { app: 'steady' } }, spec: spec('exec sleep 1000') }
  await node.client.of(deployments).create({
    metadata: { namespace: 'default', name: 'steady' },
    spec: { replicas: steady, selector: { matchLabels: { app: 'steady' } }, template },
  })
  await allSteady()
})

after(() => (skip ? undefined : node?.stop()))

async function saysDiskPressure() {
  const found = await node.node()
  return {
    condition: found?.status?.conditions?.find(({ type }) => type === 'DiskPressure')?.status,
    tainted: found?.spec?.taints?.some(({ key, effect }) => key === 'node.kubernetes.io/disk-pressure' && effect === 'NoSchedule') === true,
  }
}
const pressure = () => eventually('the node says so', withinMs, saysDiskPressure, (says) => says.condition === 'True' && says.tainted)
const noPressure = () => eventually('the pressure is over', withinMs, saysDiskPressure, (says) => says.condition === 'False' && !says.tainted)

async function evicted(name: string): Promise<Frozen<Pod>> {
  return eventually(
    `${name} is evicted`,
    withinMs,
    () => node.pod(name),
    ({ status }) => status?.phase === 'Failed' && status.reason === 'Evicted',
  )
}

test(
  'KUB-02 a full disk stops no container and no deletion, a kubelet killed on it comes back, and what could not start does when there is room',
  options,
  async () => {
    const filler = path.join(node.nodefs, 'filler')
    const before_ = await identities()
    fillDisk(filler)
    await create('late', spec('exec sleep 1000'))
    await eventually(
      'the pod says why it does not start',
      withinMs,
      () => node.eventsOf('late'),
      (told) => told.some((text) => /no space left on device/.test(text)),
    )
    await node.killKubelet()
    fillDisk(filler)
    await node.startKubelet()
    assert.deepEqual(await identities(), before_)
    const [first] = await steadyPods()
    await node.client.of(pods).delete({ namespace: 'default', name: first?.metadata.name ?? '' })
    await eventually('the deleted pod is gone', withinMs, steadyPods, (found) => found.every(({ metadata }) => metadata.uid !== first?.metadata.uid))
    fs.rmSync(filler)
    const now = (await allSteady()).map(identity)
    assert.equal(before_.filter((one) => now.includes(one)).length, steady - 1)
    await eventually('what could not start', withinMs, () => node.pod('late'), isReady)
    assert.deepEqual((await node.leftovers()).halfWritten, [])
  },
)

test('KUB-13 the pod that fills the kubelet’s disk is evicted, by a kubelet too that was killed on it, and no other', options, async () => {
  const before_ = await identities()
  await create('writer', spec('dd if=/dev/zero of=/scratch/big bs=64k; exec sleep 1000'))
  await eventually(
    'the disk is full',
    withinMs,
    async () => fs.statfsSync(node.nodefs),
    ({ bavail, bsize }) => bavail * bsize < mebibyte,
  )
  await node.killKubelet()
  await node.startKubelet({ evictionHard: { ...onlyMemory, 'nodefs.available': '30Mi' } })
  const { status } = await evicted('writer')
  assert.match(status?.message ?? '', /^The node was low on resource: ephemeral-storage\. Threshold quantity: 30Mi, available: /)
  await pressure()
  await create('later', spec('exec sleep 1000'))
  await noPressure()
  await eventually('the pod that came meanwhile runs', withinMs, () => node.pod('later'), isReady)
  assert.deepEqual(await identities(), before_)
  assert.equal((await node.pod('late')).status?.phase, 'Running')
})

test('KUB-13 the pod whose files take all inodes of the kubelet’s disk is evicted, and no other', options, async () => {
  const before_ = await identities()
  await create('maker', spec('file=0; while touch /scratch/$file; do file=$((file + 1)); done; exec sleep 1000'))
  await eventually(
    'no file can be made',
    withinMs,
    async () => fs.statfsSync(node.nodefs),
    ({ ffree, bavail, bsize }) => ffree === 0 && bavail * bsize > 50 * mebibyte,
  )
  await node.killKubelet()
  await node.startKubelet({ evictionHard: { ...onlyMemory, 'nodefs.inodesFree': '20%' } })
  const { status } = await evicted('maker')
  assert.match(status?.message ?? '', /^The node was low on resource: inodes\. Threshold quantity: \d+, available: \d+/)
  await pressure()
  await noPressure()
  assert.ok(fs.statfsSync(node.nodefs).ffree > 200)
  assert.deepEqual(await identities(), before_)
})

test('KUB-10 KUB-13 where images run short of room the unused ones go first, and no pod', options, async () => {
  const { directory, socket } = node.containerd
  const before_ = await identities()
  const free = () => fs.statfsSync(node.imagefs).bavail * fs.statfsSync(node.imagefs).bsize
  const wasFree = free()
  const big = ociTar({ names: ['skiff.test/unused:1'], files: [{ path: 'big', type: 'file', data: Buffer.alloc(40 * mebibyte, directory) }] })
  await importImage({ exec: createExec(), socket }, big)
  assert.ok(free() < wasFree - 40 * mebibyte, `${free()} of ${wasFree} bytes are free`)
  const threshold = Math.floor((wasFree - 20 * mebibyte) / mebibyte)
  await node.killKubelet()
  await node.startKubelet({ evictionHard: { ...onlyMemory, 'imagefs.available': `${threshold}Mi` } })
  await eventually(
    'the image is gone',
    withinMs,
    async () => free(),
    (bytes) => bytes > wasFree - 5 * mebibyte,
  )
  await noPressure()
  assert.deepEqual(await identities(), before_)
  assert.ok((await node.pods()).every(({ metadata, status }) => status?.phase !== 'Failed' || ['writer', 'maker'].includes(metadata.name ?? '')))
})

test('KUB-13 the container that fills the disk of images and containers is evicted, and no other', options, async () => {
  const before_ = await identities()
  await node.killKubelet()
  await node.startKubelet({ evictionHard: onlyMemory })
  await create('layer', { ...account, containers: [main('dd if=/dev/zero of=/big bs=64k; exec sleep 1000')] })
  const client = connectCri(node.containerd.socket)
  const runtime = createContainerdRuntime({ client, clock: realClock })
  await eventually(
    'the runtime has counted what it wrote',
    withinMs,
    () => runtime.listContainerStats(),
    (stats) => stats.some(({ writableLayer }) => (writableLayer?.usedBytes?.value ?? 0) > 100 * mebibyte),
  )
  client.close()
  await node.killKubelet()
  await node.startKubelet({ evictionHard: { ...onlyMemory, 'imagefs.available': '50Mi' } })
  const { status } = await evicted('layer')
  assert.match(status?.message ?? '', /^The node was low on resource: ephemeral-storage\. Threshold quantity: 50Mi, .*Container main was using \d+/)
  await pressure()
  await noPressure()
  assert.deepEqual(await identities(), before_)
})

test('KUB-13 in the end nothing is left of pods that were evicted or deleted: no mount, cgroup, interface, process or directory', options, async () => {
  await node.empty('steady', ['late', 'later', 'writer', 'maker', 'layer'])
})
