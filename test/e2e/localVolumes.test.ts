/**
 * The StatefulSet of the reference documents on a real node: each claim gets a directory of the node, its data survive the end of pods, agent, server and node,
 * and the directories go or stay as the reclaim policy says. Real containerd, real kubectl.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { createExec } from '#host/exec'
import { ociTar, type TarEntry } from '#kubelet/images/ociTar'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const name = 'e2e-volumes'
const nodeName = `${name}-node-1`
const replicas = [0, 1, 2]
let cluster: LocalCluster

/** Stands for a database's image: its program runs until SIGTERM. */
async function writeDatabaseImage(dir: string): Promise<string> {
  const directory = (where: string): TarEntry => ({ path: `${where}/`, type: 'directory' })
  const programs = ['cat', 'id', 'ls', 'sh', 'sleep', 'stat', 'tail'].map(
    (program): TarEntry => ({ path: `bin/${program}`, type: 'symlink', target: 'busybox' }),
  )
  const busybox: TarEntry = { path: 'bin/busybox', type: 'file', mode: 0o755, data: await fs.promises.readFile('/bin/busybox') }
  const image = ociTar({
    names: ['docker.io/library/postgres:13'],
    command: ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'],
    files: [...['bin', 'var', 'var/lib'].map(directory), busybox, ...programs],
  })
  const file = path.join(dir, 'postgres.tar')
  await fs.promises.writeFile(file, image)
  return file
}

/** The document's, with the selector and the labels that the API demands. */
const manifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: database
spec:
  serviceName: database
  replicas: 3
  selector:
    matchLabels:
      app: database
  template:
    metadata:
      labels:
        app: database
    spec:
      containers:
      - name: db
        image: postgres:13
        volumeMounts:
        - name: data
          mountPath: /var/lib/postgresql/data
  volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: ["ReadWriteOnce"]
      resources:
        requests:
          storage: 10Gi
`

const file = '/var/lib/postgresql/data/file'
const inPod = (index: number, script: string) => cluster.must(['exec', `database-${index}`, '--', 'sh', '-c', script])
const readAll = () => Promise.all(replicas.map((index) => inPod(index, `cat ${file}`)))
const written = replicas.map((index) => `written by ${index}`)
const volumeOf = (index: number) => cluster.must(['get', 'pvc', `data-database-${index}`, '-o', 'jsonpath={.spec.volumeName}'])
/** The directories of the node, seen from the host. */
const folder = () => path.join(cluster.dir, 'home/clusters', name, 'nodes', nodeName, 'kubelet/local-path')
const directories = () => fs.readdirSync(folder()).sort()
const allReady = () => cluster.must(['rollout', 'status', 'statefulset/database', '--timeout=90s'], 100_000)

async function pidOf(role: string): Promise<number> {
  const { stdout } = await cluster.skiff(['status', name, '-o', 'json'])
  const { pids } = JSON.parse(stdout) as { pids: { role: string; pid: number }[] }
  return pids.find((one) => one.role === role)?.pid ?? 0
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, await writeDatabaseImage(cluster.dir)])
  assert.equal(loaded.code, 0, loaded.stderr)
})

after(async () => {
  if (!skip) await cluster?.delete()
})

test('STO-06 a new cluster has one StorageClass, which is the default', options, async () => {
  const [heading = '', line = '', ...others] = (await cluster.must(['get', 'sc'])).split('\n')
  assert.match(heading, /^NAME +PROVISIONER +RECLAIMPOLICY +VOLUMEBINDINGMODE +ALLOWVOLUMEEXPANSION +AGE$/)
  assert.match(line, /^standard \(default\) +skiff\.dev\/local-path +Delete +WaitForFirstConsumer +false +\d+s$/)
  assert.deepEqual(others, [])
})

test('STO-06 the StatefulSet of the reference documents runs, and every claim has a directory of the node', options, async () => {
  await cluster.mustWith(manifest, ['apply', '-f', '-'])
  await allReady()
  for (const index of replicas) {
    assert.equal(await inPod(index, 'stat -c %a /var/lib/postgresql/data'), '777')
    await inPod(index, `echo written by ${index} > ${file}`)
  }
  assert.deepEqual(await readAll(), written)
  assert.deepEqual(directories(), (await Promise.all(replicas.map(volumeOf))).sort())
  for (const index of replicas) assert.equal(fs.readFileSync(path.join(folder(), await volumeOf(index), 'file'), 'utf8'), `written by ${index}\n`)
})

test('STO-11 a real node has a CSINode without drivers, which its Node owns', options, async () => {
  const template = '{.metadata.ownerReferences[0].uid} {.spec.drivers} {.metadata.annotations.storage\\.alpha\\.kubernetes\\.io/migrated-plugins}'
  const found = await cluster.must(['get', 'csinode', nodeName, '-o', `jsonpath=${template}`])
  const [uid, drivers, plugins = ''] = found.split(' ')
  assert.equal(uid, await cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.metadata.uid}']))
  assert.deepEqual([drivers, plugins.split(',').length], ['null', 7])
})

test('KUB-01 the ephemeral storage of a real node is the filesystem that holds its folder', options, async () => {
  const { blocks, bsize } = fs.statfsSync(path.dirname(folder()))
  const capacity = await cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.status.capacity.ephemeral-storage}'])
  assert.equal(capacity, `${(blocks * bsize) / 1024}Ki`)
})

test('KUB-17 the kubelet reports the usage of claims as that of the filesystem of the node', options, async () => {
  const metrics = await cluster.must(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/metrics`])
  const value = (metric: string) =>
    Number(new RegExp(`^kubelet_volume_stats_${metric}\\{namespace="default",persistentvolumeclaim="data-database-0"\\} (\\S+)`, 'm').exec(metrics)?.[1])
  const { blocks, bsize, files } = fs.statfsSync(folder())
  assert.equal(value('capacity_bytes'), blocks * bsize)
  assert.equal(value('inodes'), files)
  assert.ok(value('used_bytes') > 0)
})

test('STO-15 a deleted pod comes back to its data', options, async () => {
  const uid = () => cluster.must(['get', 'pod', 'database-1', '-o', 'jsonpath={.metadata.uid}'])
  const before_ = await uid()
  await cluster.must(['delete', 'pod', 'database-1'], 60_000)
  await allReady()
  assert.notEqual(await uid(), before_)
  assert.deepEqual(await readAll(), written)
})

test('STO-06 data survive the end of the agent, of the server and of the node', options, async () => {
  const killed = await pidOf('node')
  process.kill(killed, 'SIGKILL')
  await eventually(
    'another agent',
    20_000,
    () => pidOf('node'),
    (pid) => pid > 0 && pid !== killed,
  )
  await eventually(
    'exec again',
    20_000,
    () => cluster.kubectl(['exec', 'database-0', '--', 'cat', file]),
    ({ code }) => code === 0,
  )
  assert.deepEqual(await readAll(), written)
  const deletedClass = ['delete', 'sc', 'standard']
  await cluster.must(deletedClass)
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  // The crash of the node: all its processes end, and its mounts with them.
  process.kill(await pidOf('init'), 'SIGKILL')
  const started = await cluster.skiff(['up', name])
  assert.equal(started.code, 0, started.stderr)
  await eventually(
    'all pods in new containers',
    90_000,
    () => Promise.all(replicas.map((index) => cluster.kubectl(['exec', `database-${index}`, '--', 'cat', file]))),
    (results) => results.every(({ code }) => code === 0),
  )
  assert.deepEqual(await readAll(), written)
  assert.equal(await cluster.must(['get', 'sc', '-o', 'name']), '')
})

test('STO-05 the directory of a deleted claim is removed, that of a retained volume stays', options, async () => {
  const [removed, retained, kept] = (await Promise.all(replicas.map(volumeOf))) as [string, string, string]
  await cluster.must(['patch', 'pv', retained, '-p', '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'])
  await cluster.must(['scale', 'statefulset/database', '--replicas=0'])
  await cluster.must(['wait', '--for=delete', 'pod', '-l', 'app=database', '--timeout=60s'], 70_000)
  await cluster.must(['delete', 'pvc', 'data-database-0', 'data-database-1'])
  await cluster.must(['wait', '--for=delete', `pv/${removed}`, '--timeout=60s'], 70_000)
  assert.deepEqual(directories(), [retained, kept].sort())
  assert.equal(await cluster.must(['get', 'pv', retained, '-o', 'jsonpath={.status.phase}']), 'Released')
  await cluster.must(['delete', 'pv', retained])
  assert.deepEqual(directories(), [retained, kept].sort())
  assert.equal(fs.readFileSync(path.join(folder(), retained, 'file'), 'utf8'), 'written by 1\n')
  assert.equal(await cluster.must(['get', 'node', nodeName, '-o', 'jsonpath={.metadata.annotations}']).then((text) => text.includes('local-path')), false)
})

test('STO-05 a large tree is removed while the agent answers', options, async () => {
  const volume = await volumeOf(2)
  const exec = createExec()
  const grown = await exec.run('sh', [
    '-c',
    `cd "$1" && for d in $(seq 100); do mkdir $d && (cd $d && seq 1000 | xargs touch); done`,
    '-',
    path.join(folder(), volume),
  ])
  assert.equal(grown.code, 0, grown.stderr)
  await cluster.must(['delete', 'pvc', 'data-database-2'])
  let slowestMs = 0
  await eventually(
    'the volume to be gone',
    120_000,
    async () => {
      const startedMs = performance.now()
      await cluster.must(['get', '--raw', `/api/v1/nodes/${nodeName}/proxy/healthz`])
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      return cluster.must(['get', 'pv', '--ignore-not-found', '-o', 'name', volume])
    },
    (found) => found === '',
  )
  assert.equal(fs.existsSync(path.join(folder(), volume)), false)
  assert.ok(slowestMs < 5_000, `an answer took ${slowestMs} ms`)
})

test('delete says how many local volumes it removes, and from where', options, async () => {
  const { stdout } = await cluster.skiff(['delete', name, '--dry-run'])
  assert.match(stdout, new RegExp(`^would remove 1 local volume with its data in ${folder()}$`, 'm'))
})
