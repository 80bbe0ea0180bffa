/**
 * Velero over a cluster with a real node, whose volumes are those of the addon csi-hostpath. `run` builds the program into WORK/bin and the plugin into WORK/plugins.
 * The backup has the objects of a namespace, and a snapshot of its volume, which stays with the driver.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { type ApiObject, apply, kubectl, list, read, step, until } from '../support/kubectl.ts'
import { whileRunning } from '../support/program.ts'
import { type ObjectStore, startObjectStore } from './objectStore.ts'
import { file, image, namespace, shop } from './objects.ts'
import { installVelero, startServer, system, velero } from './velero.ts'

const skipped = 77
const backup = 'monday'
/** Paths of sockets have at most 107 bytes. */
const name = 'vel'

interface WithPhase extends ApiObject {
  readonly status: ApiObject['status'] & { readonly phase: string; readonly errors?: number; readonly warnings?: number }
}
interface Claim extends ApiObject {
  readonly spec: { readonly volumeName: string; readonly dataSource?: { readonly kind: string } }
}

const inNamespace = ['-n', namespace] as const
const inShop = (script: string) => kubectl(['exec', 'deployment/shop', ...inNamespace, '--', 'sh', '-c', script])
const isReady = () => kubectl(['rollout', 'status', 'deployment/shop', ...inNamespace, '--timeout=120s'])
const readClaim = () => read<Claim>('pvc', 'data', ...inNamespace)

async function loadBusybox(cluster: LocalCluster): Promise<void> {
  const tar = path.join(cluster.dir, 'busybox.tar')
  fs.writeFileSync(tar, await busyboxImage(createExec(), [image]))
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', name, tar])
  assert.equal(code, 0, stderr)
}

async function addon(cluster: LocalCluster, change: 'enable' | 'disable'): Promise<void> {
  const { code, stderr } = await cluster.skiff(['addon', change, 'csi-hostpath', '--cluster', name])
  assert.equal(code, 0, stderr)
}

/** Completed without an error, and with so many warnings. @returns its log, which Velero reads from the object store */
async function isComplete(kind: string, of: string, warnings: number): Promise<string> {
  const { status } = await read<WithPhase>(kind, of, '-n', system)
  const log = await velero(kind, 'logs', of)
  assert.deepEqual([status.phase, status.errors ?? 0, status.warnings ?? 0], ['Completed', 0, warnings], log)
  return log
}

async function backUp(store: ObjectStore): Promise<void> {
  await step("SDR-06 the location of Velero's backups becomes available", async () => {
    await kubectl(['wait', '--for=jsonpath={.status.phase}=Available', '--timeout=120s', 'backupstoragelocation/default', '-n', system])
  })

  await step('SDR-06 a backup of a namespace has its objects in the object store, and a snapshot of its volume', async () => {
    // Velero takes the class of a driver that has this label.
    await kubectl(['label', 'volumesnapshotclass', 'csi-hostpath', 'velero.io/csi-volumesnapshot-class=true'])
    await apply(...shop)
    await isReady()
    await inShop(`echo first > ${file} && sync`)
    await velero('backup', 'create', backup, '--include-namespaces', namespace, '--wait')
    await isComplete('backup', backup, 0)
    const names = store.names()
    for (const expected of [`backups/${backup}/${backup}.tar.gz`, `backups/${backup}/${backup}-volumeinfo.json.gz`])
      assert.ok(names.includes(expected), String(names))
    assert.match(await velero('backup', 'describe', backup, '--details'), /Snapshot Content Name: \S+/)
  })
}

async function restore(): Promise<void> {
  await step('SDR-06 a namespace that was deleted is restored with its objects and the data of its volume', async () => {
    const before = await readClaim()
    await inShop(`echo second > ${file} && sync`)
    await kubectl(['delete', 'namespace', namespace, '--timeout=120s'])
    await until(
      'the volume is deleted',
      () => list('pv'),
      ({ length }) => length === 0,
    )
    await velero('restore', 'create', backup, '--from-backup', backup, '--wait')
    // Every namespace gets this ConfigMap from a controller, before Velero can restore it.
    assert.match(await isComplete('restore', backup, 1), /could not restore, ConfigMap:kube-root-ca\.crt already exists/)
    await isReady()
    assert.equal(await inShop(`cat ${file}`), 'first\n')
    const after = await readClaim()
    assert.equal(after.spec.dataSource?.kind, 'VolumeSnapshot')
    assert.notEqual(after.spec.volumeName, before.spec.volumeName)
    const { data } = await read<{ data: object }>('configmap', 'settings', ...inNamespace)
    assert.deepEqual(data, { currency: 'EUR' })
  })
}

async function removal(cluster: LocalCluster, store: ObjectStore): Promise<void> {
  await step('SDR-06 a backup is deleted with its objects in the store and its snapshot, and nothing of the driver is left', async () => {
    await kubectl(['delete', 'namespace', namespace, '--timeout=120s'])
    await velero('backup', 'delete', backup, '--confirm')
    await until(
      'the backup is deleted',
      () => list('backups.velero.io', '-n', system),
      ({ length }) => length === 0,
    )
    assert.deepEqual(
      store.names().filter((key) => key.startsWith('backups/')),
      [],
    )
    await until(
      'the volume is deleted',
      () => list('pv'),
      ({ length }) => length === 0,
    )
    // The object that a restore makes for the snapshot retains it, and stays: it is not the object by which Velero deletes the snapshot.
    const contents = await list<ApiObject & { spec: { deletionPolicy: string } }>('volumesnapshotcontents')
    assert.deepEqual(
      contents.map(({ spec }) => spec.deletionPolicy),
      ['Retain'],
    )
    await kubectl(['delete', 'volumesnapshotcontents', '--all', '--timeout=60s'])
    // It is refused while the driver has a snapshot, also one that no object names.
    await addon(cluster, 'disable')
  })
}

async function showState(): Promise<void> {
  const show = async (...args: string[]) => console.log(await kubectl(args).catch(String))
  await show('get', 'pods,pvc,pv,volumesnapshots,volumesnapshotcontents,backups.velero.io,restores.velero.io,backupstoragelocations', '-A', '-o', 'wide')
  await show('get', 'events', '-A', '--sort-by=.lastTimestamp')
}

async function onRealNode(): Promise<number> {
  const obstacle = obstacleToCluster(true)
  if (obstacle) {
    console.log(obstacle)
    return skipped
  }
  const cluster = await LocalCluster.start(name, ['--nodes', '1'])
  // The steps' kubectl talks to this cluster, not to the one that runSuites.ts started.
  process.env.KUBECONFIG = cluster.env.KUBECONFIG
  const store = await startObjectStore('backups')
  try {
    await addon(cluster, 'enable')
    await loadBusybox(cluster)
    await installVelero(store)
    await whileRunning([await startServer()], async () => {
      await backUp(store)
      await restore()
      await removal(cluster, store)
    })
    return 0
  } catch (error) {
    console.log((error as Error).stack)
    await showState()
    return 1
  } finally {
    await store.stop()
    await cluster.delete()
  }
}

process.exitCode = await onRealNode()
