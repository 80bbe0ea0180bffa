/**
 * A CSI driver on a real node: it runs in the node's mount and process namespaces and registers as drivers do. A pod uses volumes that the test created, while the agent
 * ends and comes back. Real containerd, real kubectl.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { csiProto } from '#grpc/proto/csi'
import { connectUnixService } from '#grpc/unixService'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { introduceDriver, type Registration } from '#testing/csiDriver'
import { eventually, LocalCluster, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
// Paths of sockets have at most 107 bytes.
const name = 'csi'
const nodeName = `${name}-node-1`
const driverName = 'hostpath.csi.skiff.dev'
const image = 'docker.io/library/busybox:1'
/** The driver's directory as the node sees it. */
const onNode = '/var/lib/kubelet/plugins/h'
let cluster: LocalCluster
let driver: ChildProcess
let registration: Registration
/** The kubelet's directory, seen from the host. */
const folder = () => path.join(cluster.dir, 'home/clusters', name, 'nodes', nodeName, 'kubelet')
const socket = () => path.join(folder(), 'plugins/h/csi.sock')

async function pidOf(role: string): Promise<number> {
  const { stdout } = await cluster.skiff(['status', name, '-o', 'json'])
  const { pids } = JSON.parse(stdout) as { pids: { role: string; pid: number }[] }
  return pids.find((one) => one.role === role)?.pid ?? 0
}

async function startDriver(): Promise<ChildProcess> {
  fs.mkdirSync(path.dirname(socket()), { recursive: true })
  const flags = ['--endpoint', `unix://${onNode}/csi.sock`, '--node-id', nodeName, '--state-dir', `${onNode}/state`]
  const started = spawn('nsenter', ['-t', String(await pidOf('node')), '-m', '-p', '--', process.execPath, skiffBin, 'csi-hostpath', ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await eventually(
    'the driver to listen',
    20_000,
    async () => fs.existsSync(socket()),
    (isThere) => isThere,
  )
  return started
}

/** In the node's process namespace it is a child of nsenter, which ends with it. */
async function stopDriver(): Promise<void> {
  const { pid, exitCode } = driver
  if (exitCode !== null) return
  const ended = once(driver, 'exit')
  for (const child of fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')) process.kill(Number(child))
  await ended
}

/** As the driver's provisioner does. */
async function createVolume(kind: 'mount' | 'block'): Promise<string> {
  const service = connectUnixService(csiProto, 'csi.v1.Controller', `unix:${socket()}`)
  try {
    const request = {
      name: kind,
      capacityRange: { requiredBytes: 16 * 2 ** 20 },
      volumeCapabilities: [{ [kind]: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
    }
    const { volume } = await service.call<{ volume: { volumeId: string } }>('CreateVolume', request, 10_000)
    return volume.volumeId
  } finally {
    service.close()
  }
}

const objects = (handles: { readonly mount: string; readonly block: string }) => `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata:
  name: ${driverName}
spec:
  attachRequired: true
  podInfoOnMount: true
${(['mount', 'block'] as const)
  .map(
    (kind) => `---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: ${kind}
spec:
  accessModes: [ReadWriteOnce]
  capacity: { storage: 16Mi }
  storageClassName: ''
  volumeMode: ${kind === 'block' ? 'Block' : 'Filesystem'}
  persistentVolumeReclaimPolicy: Retain
  csi: { driver: ${driverName}, volumeHandle: ${handles[kind]} }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ${kind}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: ${kind}
  volumeMode: ${kind === 'block' ? 'Block' : 'Filesystem'}
  resources: { requests: { storage: 16Mi } }
`,
  )
  .join('')}---
apiVersion: v1
kind: Pod
metadata:
  name: user
spec:
  securityContext: { fsGroup: 4711 }
  containers:
  - name: main
    image: ${image}
    imagePullPolicy: IfNotPresent
    command: [sh, -c, 'trap "exit 0" TERM; sleep 100000 & wait']
    volumeMounts: [{ name: data, mountPath: /data }]
    volumeDevices: [{ name: disk, devicePath: /dev/disk }]
  volumes:
  - { name: data, persistentVolumeClaim: { claimName: mount } }
  - { name: disk, persistentVolumeClaim: { claimName: block } }
`

/** As the driver's attacher does, once the attach/detach controller has asked for both volumes. */
async function attach(): Promise<void> {
  const asked = async () => (await cluster.must(['get', 'volumeattachments', '-o', 'name'])).split('\n')
  await eventually('both attachments', 20_000, asked, (found) => found.length === 2)
  for (const one of await asked()) {
    await cluster.must(['patch', one, '--subresource=status', '--type=merge', '-p', '{"status":{"attached":true}}'])
  }
}

const inPod = (script: string) => cluster.must(['exec', 'user', '--', 'sh', '-c', script])

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  const file = path.join(cluster.dir, 'busybox.tar')
  fs.writeFileSync(file, await busyboxImage(createExec(), [image]))
  const loaded = await cluster.skiff(['image', 'load', '--name', name, file])
  assert.equal(loaded.code, 0, loaded.stderr)
  driver = await startDriver()
  registration = await introduceDriver(path.join(folder(), 'plugins_registry'), { driver: { name: driverName }, socket: `${onNode}/csi.sock` })
})

after(async () => {
  if (skip) return
  await registration?.close()
  if (driver) await stopDriver()
  await cluster?.delete()
})

test('STO-11 a driver that registers is in the CSINode and on the Node', options, async () => {
  await eventually(
    'the registration',
    20_000,
    async () => registration.answers,
    (answers) => answers.length > 0,
  )
  assert.deepEqual(registration.answers, [''])
  const drivers = JSON.parse(await cluster.must(['get', 'csinode', nodeName, '-o', 'jsonpath={.spec.drivers}']))
  const topologyKey = 'topology.hostpath.csi.skiff.dev/node'
  assert.deepEqual(drivers, [{ name: driverName, nodeID: nodeName, topologyKeys: [topologyKey] }])
  const { metadata } = JSON.parse(await cluster.must(['get', 'node', nodeName, '-o', 'json']))
  assert.equal(metadata.labels[topologyKey], nodeName)
  assert.deepEqual(JSON.parse(metadata.annotations['csi.volume.kubernetes.io/nodeid']), { [driverName]: nodeName })
})

test('STO-08 a pod writes to a volume and to a block device of the driver', options, async () => {
  const [mount, block] = [await createVolume('mount'), await createVolume('block')]
  await cluster.mustWith(objects({ mount, block }), ['apply', '-f', '-'])
  await attach()
  await cluster.must(['wait', '--for=condition=Ready', 'pod/user', '--timeout=60s'], 70_000)
  const inUse = JSON.parse(await cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.status.volumesInUse}']))
  assert.deepEqual(inUse, [mount, block].map((handle) => `kubernetes.io/csi/${driverName}^${handle}`).sort())
  await inPod('echo written > /data/file')
  assert.equal(fs.readFileSync(path.join(folder(), 'plugins/h/state/content', mount, 'data/file'), 'utf8'), 'written\n')
  assert.equal(await inPod('stat -c %g /data'), '4711')
  assert.equal(await inPod('test -b /dev/disk && echo data > /dev/disk && head -c 4 /dev/disk'), 'data')
})

test('KUB-17 the kubelet reports the usage of a claim as its driver does', options, async () => {
  const metrics = await cluster.must(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/metrics`])
  assert.match(metrics, /^kubelet_volume_stats_capacity_bytes\{namespace="default",persistentvolumeclaim="mount"\} 16777216$/m)
})

test('STO-09 volumes stay while the agent and the driver come back, and the end of the pod leaves nothing of them', options, async () => {
  const killed = await pidOf('node')
  process.kill(killed, 'SIGKILL')
  await eventually(
    'another agent',
    20_000,
    () => pidOf('node'),
    (pid) => pid > 0 && pid !== killed,
  )
  await stopDriver()
  driver = await startDriver()
  await eventually(
    'the registration with the new agent',
    60_000,
    async () => registration.answers,
    (answers) => answers.length > 1,
  )
  await eventually(
    'exec again',
    20_000,
    () => cluster.kubectl(['exec', 'user', '--', 'cat', '/data/file']),
    ({ code, stdout }) => code === 0 && stdout === 'written\n',
  )
  await cluster.must(['delete', 'pod', 'user', '--timeout=60s'], 70_000)
  await eventually(
    'nothing staged',
    20_000,
    async () =>
      [driverName, 'volumeDevices/staging', 'volumeDevices/publish'].flatMap((place) => list(path.join(folder(), 'plugins/kubernetes.io/csi', place))),
    (left) => left.length === 0,
  )
  const others = list(path.join(folder(), 'pods')).filter((uid) => list(path.join(folder(), 'pods', uid, 'volumes/kubernetes.io~csi')).length > 0)
  assert.deepEqual(others, [])
  const inUse = () => cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.status.volumesInUse}'])
  await eventually('no volume in use', 20_000, inUse, (found) => found === '')
})

function list(directory: string): string[] {
  return fs.existsSync(directory) ? fs.readdirSync(directory) : []
}

test('STO-11 a driver that removes its registration is not in the CSINode any more', options, async () => {
  await registration.close()
  const drivers = () => cluster.must(['get', 'csinode', nodeName, '-o', 'jsonpath={.spec.drivers}'])
  await eventually('no driver', 30_000, drivers, (found) => found === 'null' || found === '' || found === '[]')
  assert.equal(await cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.metadata.annotations.csi\\.volume\\.kubernetes\\.io/nodeid}']), '')
})
