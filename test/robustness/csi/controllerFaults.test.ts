/**
 * The driver or its controllers crash at each call of a volume's life in the cluster, before the driver has done it, or after that and before the answer: every
 * object gets to its end, and the driver has made each volume, snapshot and group of snapshots once. The rows are generated; the controllers and the driver are real.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { csiNodes, nodes, persistentVolumeClaims, persistentVolumes, storageClasses, volumeAttachments } from '#client/builtIn'
import { defaultCsiControllerOptions } from '#csi/controllers/context'
import { runCsiControllers } from '#csi/controllers/csiControllers'
import type { CsiConnection } from '#csi/controllers/driver'
import { connectInProcess } from '#csi/controllers/inProcess'
import { volumeGroupSnapshotClasses, volumeGroupSnapshots } from '#csi/controllers/snapshotter/groupTypes'
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#csi/controllers/snapshotter/snapshotTypes'
import { hostPathDriverName as driverName, openHostPathDriver } from '#csi/hostpath/driver'
import { openState } from '#csi/hostpath/state'
import { GrpcError } from '#grpc/grpcError'
import { createExec } from '#host/exec'
import { startCluster, type TestCluster } from '#testing/cluster'

const methods = [
  'createVolume',
  'controllerPublishVolume',
  'controllerExpandVolume',
  'createSnapshot',
  'deleteSnapshot',
  'createVolumeGroupSnapshot',
  'deleteVolumeGroupSnapshot',
  'controllerUnpublishVolume',
  'deleteVolume',
] as const
const moments = ['before', 'after'] as const
const crashing = ['driver', 'controllers'] as const

interface Fault {
  readonly method: (typeof methods)[number]
  readonly moment: (typeof moments)[number]
  readonly who: (typeof crashing)[number]
}

const topologyKey = 'topology.hostpath.csi.skiff.dev/node'
const namespace = 'default'
const waitMs = 60_000
const directory = mkdtempSync(path.join(os.tmpdir(), 'csi-faults-'))
let cluster: TestCluster

type Call = Parameters<CsiConnection['call']>

interface Answer {
  readonly volume?: { readonly volumeId: string }
  readonly snapshot?: { readonly snapshotId: string }
  readonly groupSnapshot?: { readonly groupSnapshotId: string }
}

/** The driver with what it was asked to make, and the controllers over it. */
class World {
  fault: Fault | undefined
  /** Ids of everything that the driver has made. */
  readonly made = new Set<string>()
  #driver: CsiConnection | undefined
  #life: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined

  async openDriver(): Promise<void> {
    const settings = { directory, exec: createExec(), nodeId: 'n1', capacityBytes: 1e12, now: () => Date.now() }
    this.#driver = connectInProcess(await openHostPathDriver(settings), cluster.clock)
  }

  startControllers(): void {
    const stop = new AbortController()
    const { client, clock, log } = cluster
    const options = { ...defaultCsiControllerOptions, retryStartMs: 5, identity: 'test' }
    const ended = runCsiControllers(
      { client, clock, log, metrics: noMetrics, random: seededRandom(1) },
      { connection: this.#connection(), options },
      stop.signal,
    )
    this.#life = { stop, ended }
  }

  async stopControllers(): Promise<void> {
    this.#life?.stop.abort(new Error('the controllers have crashed'))
    await this.#life?.ended
  }

  #connection(): CsiConnection {
    const driver = () => this.#driver as CsiConnection
    const real = async (...args: Call) => {
      const [method] = args
      const answer = (await driver().call(...args)) as object
      const { volume, snapshot, groupSnapshot } = answer as Answer
      if (method.startsWith('create')) this.made.add(volume?.volumeId ?? snapshot?.snapshotId ?? groupSnapshot?.groupSnapshotId ?? '')
      return answer
    }
    return {
      identity: (...args) => driver().identity(...args),
      nodeCapabilities: (...args) => driver().nodeCapabilities(...args),
      close: () => {},
      call: (async (...args: Call) => {
        const { fault } = this
        const [method, , , signal] = args
        if (fault?.method !== method) return real(...args)
        this.fault = undefined
        if (fault.moment === 'after') await real(...args)
        if (fault.who === 'driver') {
          await this.openDriver()
          throw new GrpcError('UNAVAILABLE', 'the driver has ended').inGoWords()
        }
        this.#life?.stop.abort(new Error('the controllers have crashed'))
        signal.throwIfAborted()
        throw new Error('the controllers have crashed')
      }) as CsiConnection['call'],
    }
  }

  /** Also starts what has crashed. */
  async until<T>(check: () => Promise<T | false | undefined>): Promise<T> {
    return cluster.until(async () => {
      if (this.#life?.stop.signal.aborted) {
        await this.#life.ended
        this.startControllers()
      }
      return check()
    }, waitMs)
  }
}

const world = new World()

before(async () => {
  cluster = await startCluster({ clock: 'real', nodes: 1 })
  const { client } = cluster
  await client.of(nodes).patch({ name: 'n1' }, 'merge', { metadata: { labels: { [topologyKey]: 'n1' } } })
  await client.of(csiNodes).patch({ name: 'n1' }, 'merge', { spec: { drivers: [{ name: driverName, nodeID: 'n1', topologyKeys: [topologyKey] }] } })
  await client.of(storageClasses).create({ metadata: { name: 'fast' }, provisioner: driverName, allowVolumeExpansion: true })
  await world.openDriver()
  world.startControllers()
  const snapshotClass = { metadata: { name: 'snaps' }, driver: driverName, deletionPolicy: 'Delete' }
  for (const classes of [volumeSnapshotClasses, volumeGroupSnapshotClasses]) await world.until(async () => client.of(classes).create(snapshotClass))
})

after(async () => {
  await world.stopControllers()
  await cluster.close()
  rmSync(directory, { recursive: true })
})

async function isGone(get: Promise<unknown>): Promise<boolean> {
  try {
    await get
    return false
  } catch (error) {
    if (isStatus(error, 'NotFound')) return true
    throw error
  }
}

async function liveAsGroup(name: string): Promise<void> {
  const { client } = cluster
  const ref = { namespace, name }
  const source = { selector: { matchLabels: { name } } }
  await client.of(volumeGroupSnapshots).create({ metadata: ref, spec: { source, volumeGroupSnapshotClassName: 'snaps' } })
  await world.until(async () => (await client.of(volumeGroupSnapshots).get(ref)).status?.readyToUse)
  await client.of(volumeGroupSnapshots).delete(ref)
  await world.until(async () => (await client.of(volumeSnapshotContents).list()).items.length === 0)
  await world.until(async () => isGone(client.of(volumeGroupSnapshots).get(ref)))
}

async function live(name: string): Promise<void> {
  const { client } = cluster
  const ref = { namespace, name }
  const spec = { storageClassName: 'fast', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
  await client.of(persistentVolumeClaims).create({ metadata: { ...ref, labels: { name } }, spec })
  const claim = () => client.of(persistentVolumeClaims).get(ref)
  const volumeName = await world.until(async () => {
    const { status, spec: bound } = await claim()
    return status.phase === 'Bound' && bound.volumeName
  })
  const attachment = { metadata: { name }, spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: volumeName } } }
  await client.of(volumeAttachments).create(attachment)
  await world.until(async () => (await client.of(volumeAttachments).get({ name })).status?.attached)
  await client.of(persistentVolumeClaims).patch(ref, 'merge', { spec: { resources: { requests: { storage: '2Mi' } } } })
  await world.until(async () => (await claim()).status.capacity?.storage === '2Mi')
  await client.of(volumeSnapshots).create({ metadata: ref, spec: { source: { persistentVolumeClaimName: name }, volumeSnapshotClassName: 'snaps' } })
  await world.until(async () => (await client.of(volumeSnapshots).get(ref)).status?.readyToUse)
  await client.of(volumeSnapshots).delete(ref)
  await world.until(async () => (await client.of(volumeSnapshotContents).list()).items.length === 0)
  await liveAsGroup(name)
  await client.of(volumeAttachments).delete({ name })
  await world.until(async () => isGone(client.of(volumeAttachments).get({ name })))
  await client.of(persistentVolumeClaims).delete(ref)
  await world.until(async () => isGone(client.of(persistentVolumes).get({ name: volumeName })))
}

for (const who of crashing)
  for (const method of methods)
    for (const moment of moments) {
      test(`STO-08 a volume and its snapshots converge and leave nothing, with a crash of the ${who} ${moment} ${method}`, async () => {
        world.made.clear()
        world.fault = { method, moment, who }
        await live(`${who}-${moment}-${method}`.toLowerCase())
        assert.equal(world.fault, undefined, 'the call was never made')
        assert.equal(world.made.size, 3, `made ${[...world.made].join()}`)
        const { volumes, snapshots, groups } = (await openState(directory)).state
        assert.deepEqual([volumes, snapshots, groups], [[], [], []])
      })
    }
