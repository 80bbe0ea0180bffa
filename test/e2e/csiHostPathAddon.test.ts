/**
 * The host path CSI driver as an addon of a cluster with a real node and a simulated one: a claim is provisioned, attached, mounted, expanded, copied and deleted by
 * the driver of the node and the built-in controllers. Turning the driver off leaves nothing. Real containerd, real kubectl.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
// Paths of sockets have at most 107 bytes.
const name = 'csa'
const nodeName = `${name}-node-1`
const driverName = 'hostpath.csi.skiff.dev'
const image = 'docker.io/library/busybox:1'
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>
const kubelet = () => path.join(cluster.dir, 'home/clusters', name, 'nodes', nodeName, 'kubelet')
const state = () => path.join(kubelet(), `plugins/${driverName}/state`)

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, [])
  const file = path.join(cluster.dir, 'busybox.tar')
  fs.writeFileSync(file, await busyboxImage(createExec(), [image]))
  const loaded = await cluster.skiff(['image', 'load', '--name', name, file])
  assert.equal(loaded.code, 0, loaded.stderr)
})

after(async () => {
  if (!skip && cluster && fs.existsSync(cluster.dir)) await cluster.delete()
})

const apply = (...items: unknown[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])

function claim(of: string, spec: object = {}) {
  const base = { storageClassName: 'csi-hostpath', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } }
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: of }, spec: { ...base, ...spec } }
}

function pod(of: string, volumes: Readonly<Record<string, object>>, devices: readonly string[] = []) {
  const names = Object.keys(volumes)
  const container = {
    ...{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'] },
    volumeMounts: names.filter((one) => !devices.includes(one)).map((one) => ({ name: one, mountPath: `/${one}` })),
    volumeDevices: devices.map((one) => ({ name: one, devicePath: `/dev/${one}` })),
  }
  const spec = { securityContext: { fsGroup: 4711 }, containers: [container], volumes: names.map((one) => ({ name: one, ...volumes[one] })) }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: of }, spec }
}

const ofClaim = (claimName: string) => ({ persistentVolumeClaim: { claimName } })
const inPod = (of: string, script: string) => cluster.must(['exec', of, '--', 'sh', '-c', script])
const ready = (of: string) => cluster.must(['wait', '--for=condition=Ready', `pod/${of}`, '--timeout=60s'], 70_000)
/** Files of this driver's volumes that are behind loop devices, of any cluster of this host. */
const loops = () =>
  execFileSync('losetup', ['-n', '-O', 'BACK-FILE'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(driverName))
const content = () => (fs.existsSync(path.join(state(), 'content')) ? fs.readdirSync(path.join(state(), 'content')) : [])

test('STO-11 the driver starts on the node and registers, with its classes, its capacity and the kinds of snapshots', options, async () => {
  const enabled = await cluster.skiff(['addon', 'enable', 'csi-hostpath', '--cluster', name])
  assert.equal(enabled.code, 0, enabled.stderr)
  const drivers = JSON.parse(await cluster.must(['get', 'csinode', nodeName, '-o', 'jsonpath={.spec.drivers}']))
  assert.deepEqual(drivers, [{ name: driverName, nodeID: nodeName, topologyKeys: ['topology.hostpath.csi.skiff.dev/node'] }])
  assert.match(await cluster.must(['get', 'sc']), /^csi-hostpath +hostpath\.csi\.skiff\.dev +Delete +WaitForFirstConsumer +true/m)
  assert.match(await cluster.must(['get', 'volumesnapshotclass']), /^csi-hostpath +hostpath\.csi\.skiff\.dev +Delete/m)
  const capacities = () => cluster.must(['get', 'csistoragecapacities', '-A', '-o', 'jsonpath={.items[*].storageClassName}'])
  await eventually('the capacity', 30_000, capacities, (found) => found === 'csi-hostpath')
  const { stdout } = await cluster.skiff(['status', name, '-o', 'json'])
  assert.ok((JSON.parse(stdout) as { pids: { role: string }[] }).pids.some(({ role }) => role === 'csi'))
})

test('STO-08 a pod writes to a claim of the driver, to a block device and to an ephemeral volume', options, async () => {
  const { kind: _kind, metadata: _metadata, apiVersion: _apiVersion, ...template } = claim('')
  const volumes = { data: ofClaim('data'), disk: ofClaim('disk'), scratch: { ephemeral: { volumeClaimTemplate: template } } }
  await apply(claim('data'), claim('disk', { volumeMode: 'Block' }), pod('user', volumes, ['disk']))
  await ready('user')
  await inPod('user', 'echo written > /data/file && echo passing > /scratch/file')
  assert.equal(await inPod('user', 'stat -c %g /data'), '4711')
  assert.equal(await inPod('user', 'test -b /dev/disk && echo data > /dev/disk && head -c 4 /dev/disk'), 'data')
  const attached = await cluster.must(['get', 'volumeattachments', '-o', 'jsonpath={.items[*].status.attached}'])
  assert.equal(attached, 'true true true')
  assert.equal(content().length, 3)
})

test('STO-12 a volume and a device grow while the pod runs', options, async () => {
  for (const of of ['data', 'disk']) await cluster.must(['patch', 'pvc', of, '--type=merge', '-p', '{"spec":{"resources":{"requests":{"storage":"32Mi"}}}}'])
  await eventually(
    "the node's turn",
    60_000,
    () => cluster.must(['get', 'pvc', 'disk', '-o', 'jsonpath={.status.allocatedResourceStatuses.storage}']),
    (found) => found === 'NodeResizePending',
  )
  // The kubelet looks at the claims of a pod when it syncs the pod, which it does about once a minute without a change.
  await cluster.must(['annotate', 'pod', 'user', 'test/sync=now'])
  for (const of of ['data', 'disk'])
    await eventually(
      `the size of ${of}`,
      60_000,
      () => cluster.must(['get', 'pvc', of, '-o', 'jsonpath={.status.capacity.storage}']),
      (found) => found === '32Mi',
    )
  assert.equal(await inPod('user', 'blockdev --getsize64 /dev/disk'), String(32 * 2 ** 20))
})

test('STO-14 a snapshot is restored and a claim is cloned, each with the data of its moment', options, async () => {
  const source = { persistentVolumeClaimName: 'data' }
  const spec = { source, volumeSnapshotClassName: 'csi-hostpath' }
  await apply({ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot', metadata: { name: 'snap' }, spec })
  await cluster.must(['wait', '--for=jsonpath={.status.readyToUse}=true', 'volumesnapshot/snap', '--timeout=60s'], 70_000)
  await inPod('user', 'echo later > /data/file; sync')
  const resources = { requests: { storage: '32Mi' } }
  const restored = claim('restored', { resources, dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' } })
  const clone = claim('clone', { resources, dataSource: { kind: 'PersistentVolumeClaim', name: 'data' } })
  await apply(restored, clone, pod('reader', { restored: ofClaim('restored'), clone: ofClaim('clone') }))
  await ready('reader')
  assert.equal(await inPod('reader', 'cat /restored/file /clone/file'), 'written\nlater')
})

test('LRN-07 skiff calls shows what the kubelet asked of containerd and of the driver for a pod and for a claim', options, async () => {
  const ofPod = await cluster.skiff(['calls', 'pod/user', '--cluster', name])
  assert.equal(ofPod.code, 0, ofPod.stderr)
  for (const method of ['CRI RunPodSandbox: OK', 'CRI StartContainer: OK', 'CSI NodeStageVolume: OK', 'CSI NodePublishVolume: OK'])
    assert.ok(ofPod.stdout.includes(method), `${method}\n${ofPod.stdout}`)
  const ofClaims = await cluster.skiff(['calls', 'pvc/restored', '--cluster', name, '-o', 'json'])
  const { nodes } = JSON.parse(ofClaims.stdout) as { nodes: { node: string; calls: { method: string; pod?: string }[] }[] }
  assert.deepEqual(
    nodes.map(({ node, calls }) => [node, calls.map(({ method, pod: by }) => [method, by].join(' ').trim())]),
    [[nodeName, ['NodeStageVolume', 'NodePublishVolume default/reader']]],
  )
  assert.match((await cluster.skiff(['calls', 'pod/none', '--cluster', name])).stderr, /there is no pod default\/none/)
})

test('STO-09 a driver with volumes is not turned off; without them it leaves nothing', options, async () => {
  const refused = await cluster.skiff(['addon', 'disable', 'csi-hostpath', '--cluster', name])
  assert.match(refused.stderr, /the driver has volumes or snapshots that would be lost: 6/)
  await cluster.must(['delete', 'pod', 'user', 'reader', '--timeout=90s'], 100_000)
  await cluster.must(['delete', 'volumesnapshot', 'snap', '--timeout=60s'], 70_000)
  await cluster.must(['delete', 'pvc', 'data', 'disk', 'restored', 'clone', '--timeout=60s'], 70_000)
  await eventually(
    'the end of all content',
    60_000,
    async () => content(),
    (left) => left.length === 0,
  )
  await eventually(
    'the end of all volumes',
    60_000,
    () => cluster.must(['get', 'pv,volumeattachments,volumesnapshotcontents', '-o', 'name']),
    (left) => left === '',
  )
  const disabled = await cluster.skiff(['addon', 'disable', 'csi-hostpath', '--cluster', name])
  assert.equal(disabled.code, 0, disabled.stderr)
  assert.equal(await cluster.must(['get', 'csidrivers,sc', '-o', 'name']), 'storageclass.storage.k8s.io/standard')
  await eventually(
    'the end of the definitions',
    30_000,
    () => cluster.must(['get', 'crd', '-o', 'name']),
    (left) => left === '',
  )
  assert.equal(fs.existsSync(path.join(kubelet(), `plugins/${driverName}`)), false)
  assert.deepEqual(loops(), [])
})

test('STO-09 a driver that is turned on again serves, and the end of the cluster takes the loop devices of its volumes', options, async () => {
  const enabled = await cluster.skiff(['addon', 'enable', 'csi-hostpath', '--cluster', name])
  assert.equal(enabled.code, 0, enabled.stderr)
  await apply(claim('disk', { volumeMode: 'Block' }), pod('last', { disk: ofClaim('disk') }, ['disk']))
  await ready('last')
  assert.equal(loops().length, 1)
  await cluster.delete()
  assert.deepEqual(loops(), [])
  assert.deepEqual(newTraces(before_), {})
})
