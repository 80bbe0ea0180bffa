/**
 * The life of a claim, twice over one driver. First kubernetes-csi's sidecars hold the Leases, and the controllers of Skiff, which run as well, stand back. Then the
 * sidecars are removed, and the controllers of Skiff do the same work. Claims are used by pods of a real node.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { step } from '../support/kubectl.ts'
import { driverDirectory, driverName, startDriver } from './driver.ts'
import { lifeOfClaim } from './lifeOfClaim.ts'
import { applyAll } from './modules.ts'
import { NodePrograms } from './nodePrograms.ts'
import { deploySidecars, leaseHolders, removeSidecars } from './sidecars.ts'

const skipped = 77
// Paths of sockets have at most 107 bytes.
const name = 'scar'
const image = 'docker.io/library/busybox:1'

const obstacle = obstacleToCluster(true)
if (obstacle) {
  console.log(obstacle)
  process.exit(skipped)
}
const cluster = await LocalCluster.start(name, ['--nodes', '1'])
const programs = new NodePrograms(cluster)
try {
  await loadBusybox()
  await startDriver(cluster, programs, `${name}-node-1`)
  await bothRounds()
} catch (error) {
  console.log((error as Error).stack)
  await showState()
  process.exitCode = 1
} finally {
  await programs.stopAll()
  await cluster.delete()
}

async function bothRounds(): Promise<void> {
  await deploySidecars(cluster, driverDirectory)
  await applyAll(cluster, ...classes())
  const holders = await leaseHolders(cluster)
  const access = ['--kubeconfig', path.join(cluster.dir, 'kubeconfig')]
  await programs.start('csi-controller', ['--csi-address', `${driverDirectory}/csi.sock`, '--leader-election-namespace', 'default', ...access])
  const life = { image, driver: driverName }
  await lifeOfClaim(cluster, { ...life, round: 'upstream', controllers: "upstream's sidecars", provisioner: /_csi-provisioner-/ })
  await step("STO-08 the controllers of Skiff stand back, while upstream's sidecars hold the Leases", async () => {
    assert.deepEqual(await leaseHolders(cluster), holders)
  })
  await removeSidecars(cluster)
  const provisioner = new RegExp(`_${os.hostname()}_`)
  await lifeOfClaim(cluster, { ...life, round: 'skiff', controllers: 'the controllers of Skiff', provisioner })
  await step("STO-08 the controllers of Skiff hold the Leases, after upstream's sidecars are removed", async () => {
    const now = await leaseHolders(cluster)
    assert.deepEqual(Object.keys(now), Object.keys(holders))
    for (const [lease, holder] of Object.entries(now)) assert.notEqual(holder, holders[lease], lease)
  })
}

async function loadBusybox(): Promise<void> {
  const file = path.join(cluster.dir, 'busybox.tar')
  fs.writeFileSync(file, await busyboxImage(createExec(), [image]))
  const loaded = await cluster.skiff(['image', 'load', '--name', name, file])
  assert.equal(loaded.code, 0, loaded.stderr)
}

function classes(): object[] {
  const metadata = { name: 'suite' }
  const storageClass = { provisioner: driverName, allowVolumeExpansion: true, volumeBindingMode: 'WaitForFirstConsumer' }
  return [
    { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata, ...storageClass },
    { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotClass', metadata, driver: driverName, deletionPolicy: 'Delete' },
  ]
}

async function showState(): Promise<void> {
  const kinds = 'pods,pvc,pv,volumeattachments,volumesnapshots,volumesnapshotcontents,csinodes,leases,events'
  console.log((await cluster.kubectl(['get', kinds, '-A', '-o', 'wide'])).stdout)
  const pods = (await cluster.kubectl(['get', 'pods', '-o', 'name'])).stdout.split('\n').filter((pod) => /csi-|snapshot-controller/.test(pod))
  for (const pod of pods) console.log(`${pod}\n${(await cluster.kubectl(['logs', pod, '--all-containers', '--tail=20'])).stdout}`)
}
