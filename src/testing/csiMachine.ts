/** Gives tests of the kubelet's CSI volumes a machine with a driver that is registered there, the volume manager, and a PersistentVolume. */
import assert from 'node:assert/strict'
import type { Container, PersistentVolume, Pod, Volume } from '#api/gen/types/core.v1'
import type { CSIDriver } from '#api/gen/types/storage.v1'
import type { VirtualClock } from '#base/virtualClock'
import type { CsiDriver } from '#csi/server/csiTypes'
import { listIfExists } from '#host/files'
import { type CsiDrivers, createCsiDrivers } from '#kubelet/volumes/csi/drivers'
import { volumePlugins } from '#kubelet/volumes/index'
import { onMachine, type TestMachine } from '#kubelet/volumes/testMachine'
import { createVolumeManager, type VolumeManager } from '#kubelet/volumes/volumeManager'
import { untracked } from '#kubelet/volumes/volumesInUse'
import { openTestDriver, type RecordedCall, type ServedDriver, serveTestDriver } from './csiDriver.ts'

export interface CsiMachine extends TestMachine {
  readonly served: ServedDriver
  readonly drivers: CsiDrivers
  readonly manager: VolumeManager
  /** As after a restart of the kubelet, with the driver registered again. */
  restarted(): Promise<VolumeManager>
  /** Names of the node methods that the driver was asked for since the last question. */
  methods(): string[]
  /** The last request of the method. */
  requestOf(method: string): RecordedCall['request']
}

export interface CsiMachineOptions {
  /** Absent: the host path driver. */
  readonly driver?: CsiDriver
  /** Absent: the driver is not attached. Null: there is no CSIDriver. */
  readonly spec?: Partial<CSIDriver['spec']> | null
  /** For the calls of one operation. */
  readonly timeoutMs?: number
}

export function onCsiMachine({ driver, spec = {}, timeoutMs }: CsiMachineOptions, run: (machine: CsiMachine) => Promise<void>): Promise<void> {
  return onMachine(async (machine) => {
    const { root, objects, context } = machine
    const served = await serveTestDriver(`${root}/driver`, driver ?? (await openTestDriver(`${root}/driver`)))
    const { name } = served.driver
    objects.set('Node/node-1', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', uid: 'node-uid' }, spec: {}, status: {} })
    if (spec)
      objects.set(`CSIDriver/${name}`, { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec: { attachRequired: false, ...spec } })
    const stop = new AbortController()
    const running: Promise<void>[] = []
    const start = async () => {
      const drivers = createCsiDrivers(context, timeoutMs)
      running.push(drivers.run(stop.signal))
      await drivers.handler.register({ type: 'CSIPlugin', name, endpoint: served.socket, supportedVersions: ['1.0.0'] })
      return { drivers, manager: createVolumeManager(context, volumePlugins, { csi: drivers, inUse: untracked }) }
    }
    try {
      const started = await start()
      let read = served.calls.length
      const methods = () => {
        const from = read
        read = served.calls.length
        return served.calls.slice(from).map(({ method }) => method)
      }
      const restarted = async () => {
        const { manager } = await start()
        methods()
        return manager
      }
      const requestOf = (method: string) => served.calls.findLast((call) => call.method === method)?.request ?? assert.fail(`${method} was not called`)
      await run({ ...machine, ...started, served, restarted, methods, requestOf })
    } finally {
      stop.abort()
      await Promise.all(running)
      await served.close()
      for (const point of (await machine.mountsBelow()).reverse()) await machine.host.mounter.unmount(point, { lazy: true })
      await detachLoops(machine)
    }
  })
}

/** Loop devices that a test which failed has left. */
async function detachLoops({ host, root }: TestMachine): Promise<void> {
  const { stdout } = await host.exec.run('losetup', ['-n', '-O', 'NAME,BACK-FILE'])
  for (const line of stdout.split('\n')) if (line.includes(`${root}/`)) await host.exec.run('losetup', ['-d', line.split(' ', 1)[0] ?? ''])
}

/** Puts the machine's clock forward. */
export function advance({ context }: CsiMachine, ms: number): Promise<void> {
  return (context.clock as VirtualClock).advance(ms)
}

/** A volume of the host path driver, as its controller makes it. */
export async function createVolume({ served }: CsiMachine, kind: 'mount' | 'block' = 'mount'): Promise<string> {
  const answer = await served.driver.controller?.createVolume?.({
    ...{ name: 'volume', capacityRange: { requiredBytes: 16 * 2 ** 20, limitBytes: 0 }, parameters: {}, secrets: {}, mutableParameters: {} },
    ...{ volumeContentSource: null, accessibilityRequirements: null },
    volumeCapabilities: [{ [kind]: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
  })
  return answer?.volume.volumeId ?? assert.fail('the driver makes no volumes')
}

/** Adds the bound claim `claim` of the PersistentVolume `pv-1` to the API. */
export function bindVolume({ objects, served }: CsiMachine, volumeHandle: string, spec: Partial<PersistentVolume['spec']> = {}, source: object = {}): void {
  const csi = { driver: served.driver.name, volumeHandle, ...source }
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'n', name: 'claim', uid: 'claim-uid' }
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv-1' }, status: {} } as const
  objects.set('PersistentVolume/pv-1', { ...volume, spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '16Mi' }, ...spec, csi, claimRef } })
  const metadata = { namespace: 'n', name: 'claim', uid: 'claim-uid' }
  const status = { phase: 'Bound', capacity: { storage: '16Mi' } } as const
  objects.set('PersistentVolumeClaim/claim', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: { volumeName: 'pv-1' }, status })
}

/** A pod that uses the claim, or a volume of its own, as `data`. */
export function podUsing(uid: string, source: Omit<Volume, 'name'> = { persistentVolumeClaim: { claimName: 'claim' } }, spec: Partial<Pod['spec']> = {}): Pod {
  const container: Container = { name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data' }] }
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid }, status: {} },
    spec: { nodeName: 'node-1', serviceAccountName: 'robot', containers: [container], volumes: [{ name: 'data', ...source }], ...spec },
  }
}

/** Nothing of any volume is left: no mount, no directory of a pod, no staged volume. */
export async function assertNothingLeft({ root, served, mountsBelow }: CsiMachine): Promise<void> {
  assert.deepEqual(await mountsBelow(), [])
  assert.deepEqual(await listIfExists(`${root}/pods`), [])
  const directory = `${root}/plugins/kubernetes.io/csi`
  for (const place of [served.driver.name, 'volumeDevices/staging', 'volumeDevices/publish'])
    assert.deepEqual(await listIfExists(`${directory}/${place}`), [], place)
  assert.deepEqual(
    (await listIfExists(`${directory}/volumeDevices`)).filter((name) => name !== 'staging' && name !== 'publish'),
    [],
  )
}

/** The container of a pod that uses the volume as a device. */
export const withDevice: Container = { name: 'main', volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] }
