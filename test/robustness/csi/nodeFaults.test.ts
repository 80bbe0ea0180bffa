/**
 * The driver or the kubelet crashes at each call of a volume's life on a node, before the driver has done it, or after that and before the answer: the pod gets
 * the volume with its data, and its end leaves nothing. The rows are generated; the kubelet's volumes, the driver and the mounts are real.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { GrpcError } from '#grpc/grpcError'
import { listIfExists } from '#host/files'
import type { CsiDrivers } from '#kubelet/volumes/csi/drivers'
import { volumePlugins } from '#kubelet/volumes/index'
import { createVolumeManager, type VolumeManager } from '#kubelet/volumes/volumeManager'
import { untracked } from '#kubelet/volumes/volumesInUse'
import { openTestDriver } from '#testing/csiDriver'
import { advance, assertNothingLeft, bindVolume, type CsiMachine, createVolume, onCsiMachine, podUsing, withDevice } from '#testing/csiMachine'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const kinds = ['mount', 'block'] as const
const methods = ['NodeStageVolume', 'NodePublishVolume', 'NodeExpandVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'] as const
const moments = ['before', 'after'] as const
const crashing = ['driver', 'kubelet'] as const

type Kind = (typeof kinds)[number]

interface Fault {
  readonly method: (typeof methods)[number]
  readonly moment: (typeof moments)[number]
  readonly who: (typeof crashing)[number]
}

/** Longer than any wait of the kubelet. */
const waitMs = 130_000
const mostAttempts = 20
const mostTurns = 100_000

/** The kubelet and the driver of a row. The fault comes once. */
class Row {
  readonly #machine: CsiMachine
  readonly #fault: Fault
  manager: VolumeManager
  hasCrashed = false
  #kubeletCrash = () => {}
  readonly #kubeletCrashed: Promise<'crashed'>

  constructor(machine: CsiMachine, fault: Fault) {
    this.#machine = machine
    this.#fault = fault
    this.#kubeletCrashed = new Promise((resolve) => {
      this.#kubeletCrash = () => resolve('crashed')
    })
    this.manager = createVolumeManager(machine.context, volumePlugins, { csi: this.#faulty(machine.drivers), inUse: untracked })
  }

  /** Repeats the work as a kubelet does, which may be another one by then, until `isDone`. */
  async until(work: (manager: VolumeManager) => Promise<unknown>, isDone: () => boolean = () => true): Promise<void> {
    let failure: unknown
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      try {
        const hadCrashed = this.hasCrashed
        const crash = hadCrashed ? [] : [this.#kubeletCrashed]
        const outcome = await Promise.race([work(this.manager).then(() => this.#settled(isDone)), ...crash])
        if (outcome === 'crashed') this.manager = await this.#machine.restarted()
        else if (isDone()) return
      } catch (error) {
        failure = error
      }
      await advance(this.#machine, waitMs)
    }
    throw new Error(`no convergence after ${mostAttempts} attempts`, { cause: failure })
  }

  /** The kubelet grows a volume in use besides other work, and records an event when that fails. */
  async #settled(isDone: () => boolean): Promise<void> {
    const { events } = this.#machine
    const before = events.length
    for (let turn = 0; turn < mostTurns && !isDone() && events.length === before; turn++) await new Promise(setImmediate)
  }

  #faulty(drivers: CsiDrivers): CsiDrivers {
    const operation: CsiDrivers['operation'] = (name) => {
      const real = drivers.operation(name)
      return { ...real, call: (method, request) => this.#call(method, () => real.call(method, request)) }
    }
    return { ...drivers, operation }
  }

  async #call<T>(method: string, call: () => Promise<T>): Promise<T> {
    const { moment, who } = this.#fault
    if (method !== this.#fault.method || this.hasCrashed) return call()
    this.hasCrashed = true
    if (moment === 'after') await call()
    if (who === 'kubelet') {
      this.#kubeletCrash()
      return new Promise<never>(() => {})
    }
    await this.#machine.served.restart(await openTestDriver(`${this.#machine.root}/driver`))
    throw new GrpcError('UNAVAILABLE', 'the driver has ended').inGoWords()
  }
}

const claimKey = 'PersistentVolumeClaim/claim'

/** As the resizer does when it hands the expansion to the node. */
function grow({ objects }: CsiMachine): void {
  const claim = objects.get(claimKey) as PersistentVolumeClaim
  const volume = objects.get('PersistentVolume/pv-1') as { spec: object }
  objects.set('PersistentVolume/pv-1', { ...volume, spec: { ...volume.spec, capacity: { storage: '32Mi' } } } as never)
  const status = { ...claim.status, allocatedResources: { storage: '32Mi' }, allocatedResourceStatuses: { storage: 'NodeResizePending' } }
  objects.set(claimKey, { ...claim, status })
}

async function stagedPlaces({ root, served }: CsiMachine): Promise<string[]> {
  const places = [served.driver.name, 'volumeDevices/staging'].map((place) => listIfExists(`${root}/plugins/kubernetes.io/csi/${place}`))
  return (await Promise.all(places)).flat()
}

interface StateFile {
  readonly volumes: readonly { readonly stagingPath?: string; readonly published: readonly unknown[] }[]
}

async function live(machine: CsiMachine, kind: Kind, fault: Fault): Promise<void> {
  const row = new Row(machine, fault)
  const handle = await createVolume(machine, kind)
  bindVolume(machine, handle, kind === 'block' ? { volumeMode: 'Block' } : {})
  const pod = podUsing('u-1', undefined, kind === 'block' ? { containers: [withDevice] } : {})
  let place = ''
  await row.until(async (manager) => {
    place = (await manager.setUpPod(pod)).get('data')?.path ?? ''
  })
  const file = kind === 'block' ? place : `${place}/file`
  await writeFile(file, 'kept', kind === 'block' ? { flag: 'r+' } : {})
  grow(machine)
  const isGrown = () => machine.events.some((event) => event.includes('FileSystemResizeSuccessful'))
  await row.until((manager) => manager.setUpPod(pod), isGrown)
  const mounts = await machine.mountsBelow()
  assert.equal(new Set(mounts).size, mounts.length, `mounted twice: ${mounts.join()}`)
  assert.equal((await readFile(file)).subarray(0, 4).toString(), 'kept')
  await row.until(async (manager) => {
    await manager.tearDownPod('u-1')
    await manager.removeOrphans(() => true)
    assert.deepEqual(await stagedPlaces(machine), [])
  })
  assert.ok(row.hasCrashed, 'the call was never made')
  await assertNothingLeft(machine)
  const { volumes } = JSON.parse(await readFile(`${machine.root}/driver/state/state.json`, 'utf8')) as StateFile
  assert.deepEqual(
    volumes.map(({ stagingPath, published }) => [stagingPath, published]),
    [[undefined, []]],
  )
  const disk = `${machine.root}/driver/state/content/${handle}/disk`
  if (kind === 'block') assert.equal((await machine.host.exec.run('losetup', ['-j', disk])).stdout, '')
}

for (const kind of kinds)
  for (const who of crashing)
    for (const method of methods)
      for (const moment of moments) {
        test(`STO-09 a ${kind} volume of a pod converges and leaves nothing, with a crash of the ${who} ${moment} ${method}`, { skip }, () =>
          onCsiMachine({}, (machine) => live(machine, kind, { method, moment, who })),
        )
      }
