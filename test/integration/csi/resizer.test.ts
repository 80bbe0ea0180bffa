/** The resizer with the host path driver: claims that ask for more get larger volumes, and claims with another VolumeAttributesClass its parameters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims, persistentVolumes, volumeAttributesClasses } from '#client/builtIn'
import { CsiError } from '#csi/server/csiTypes'
import { CsiCluster, type CsiSetupOptions, changed, driverName, namespace } from './csiSetup.ts'

async function start(setup: CsiSetupOptions = {}, spec: Partial<PersistentVolumeClaim['spec']> = {}) {
  const csi = await CsiCluster.start(setup)
  await csi.addClass('fast', { allowVolumeExpansion: true })
  await csi.addClaim('data', 'fast', spec)
  const volume = await csi.boundVolume('data')
  return { csi, name: volume.metadata.name ?? '', volumeId: volume.spec.csi?.volumeHandle ?? '' }
}

const patchSpec = ({ cluster }: CsiCluster, spec: object) => cluster.client.of(persistentVolumeClaims).patch({ namespace, name: 'data' }, 'merge', { spec })
const ask = (csi: CsiCluster, storage: string) => patchSpec(csi, { resources: { requests: { storage } } })

const untilClaim = ({ cluster }: CsiCluster, matches: (claim: Frozen<PersistentVolumeClaim>) => boolean | undefined) =>
  cluster.until(async () => {
    const claim = await cluster.client.of(persistentVolumeClaims).get({ namespace, name: 'data' })
    return matches(claim) ? claim : undefined
  }, 30_000)

const sizeOf = async ({ driver }: CsiCluster, volumeId: string) => (await driver.controller.controllerGetVolume({ volumeId })).volume.capacityBytes
const types = ({ status }: Frozen<PersistentVolumeClaim>) => (status.conditions ?? []).map(({ type }) => type)

test('STO-12 a claim that asks for more has its volume expanded, and the node has nothing to do with a file system of the driver', async () => {
  const { csi, name, volumeId } = await start()
  await using _csi = csi
  await ask(csi, '3Mi')
  const { metadata, status } = await untilClaim(csi, (claim) => claim.status.capacity?.storage === '3Mi')
  assert.equal(await sizeOf(csi, volumeId), 3 << 20)
  assert.equal((await csi.cluster.client.of(persistentVolumes).get({ name })).spec.capacity?.storage, '3Mi')
  assert.equal(metadata.annotations?.['volume.kubernetes.io/node-expansion-not-required'], 'true')
  assert.deepEqual([status.conditions ?? [], status.allocatedResources, status.allocatedResourceStatuses], [[], { storage: '3Mi' }, undefined])
  assert.equal(await csi.untilEvent('data', 'VolumeResizeSuccessful'), 'Resize volume succeeded')
})

test('STO-12 the expansion of a block volume is left to the node, and the volume keeps the old size until then', async () => {
  const { csi, name } = await start({}, { volumeMode: 'Block' })
  await using _csi = csi
  const { client } = csi.cluster
  await ask(csi, '3Mi')
  const claim = await untilClaim(csi, ({ status }) => status.allocatedResourceStatuses?.storage === 'NodeResizePending')
  assert.deepEqual([types(claim), claim.status.capacity?.storage], [['Resizing', 'FileSystemResizePending'], '1Mi'])
  const oldSize = async () => (await client.of(persistentVolumes).get({ name })).metadata.annotations?.['volume.alpha.kubernetes.io/pre-resize-capacity']
  assert.equal(await oldSize(), '1Mi')
  // As the kubelet does.
  const status = { capacity: { storage: '3Mi' }, conditions: [], allocatedResourceStatuses: null }
  await client.of(persistentVolumeClaims).patch({ namespace, name: 'data' }, 'merge', { status }, { subresource: 'status' })
  await csi.cluster.until(async () => (await oldSize()) === undefined, 30_000)
})

test('STO-12 a driver that expands volumes on nodes alone is not called by the controller, and the node gets its turn', async () => {
  const driver: CsiSetupOptions['driver'] = (whole) => {
    const { controllerExpandVolume: _none, ...controller } = whole.controller
    return { ...whole, controller }
  }
  const { csi, name, volumeId } = await start({ driver })
  await using _csi = csi
  await ask(csi, '3Mi')
  const claim = await untilClaim(csi, ({ status }) => status.allocatedResourceStatuses?.storage === 'NodeResizePending')
  assert.deepEqual([claim.status.capacity?.storage, claim.status.allocatedResources?.storage], ['1Mi', '3Mi'])
  assert.equal((await csi.cluster.client.of(persistentVolumes).get({ name })).spec.capacity?.storage, '3Mi')
  assert.equal(await sizeOf(csi, volumeId), 1 << 20)
})

test('STO-12 an expansion that the driver refuses is infeasible, and the claim recovers with a smaller size', async () => {
  const { csi, volumeId } = await start({ capacityBytes: 4 << 20 })
  await using _csi = csi
  await ask(csi, '9Mi')
  const claim = await untilClaim(csi, ({ status }) => status.allocatedResourceStatuses?.storage === 'ControllerResizeInfeasible')
  assert.deepEqual(types(claim), ['Resizing', 'ControllerResizeError'])
  assert.match(
    await csi.untilEvent('data', 'VolumeResizeFailed'),
    /^resize volume ".*" by resizer "hostpath\.csi\.skiff\.dev" failed: rpc error: code = OutOfRange /,
  )
  await ask(csi, '2Mi')
  await untilClaim(csi, ({ status }) => status.capacity?.storage === '2Mi')
  assert.equal(await sizeOf(csi, volumeId), 2 << 20)
})

test('STO-12 a size that the driver may be expanding to is asked for until it is answered, also when the claim asks for less meanwhile', async () => {
  const asked: number[] = []
  let isStuck = true
  const { csi } = await start({
    driver: changed((controller) => ({
      controllerExpandVolume: (request) => {
        asked.push(request.capacityRange.requiredBytes >> 20)
        if (isStuck) throw new CsiError('DEADLINE_EXCEEDED', 'it takes long')
        return controller.controllerExpandVolume(request)
      },
    })),
  })
  await using _csi = csi
  await ask(csi, '4Mi')
  await csi.untilEvent('data', 'VolumeResizeFailed')
  await ask(csi, '2Mi')
  const before = asked.length
  await csi.cluster.until(async () => asked.length > before + 1, 30_000)
  isStuck = false
  await untilClaim(csi, ({ status }) => status.capacity?.storage === '4Mi')
  assert.deepEqual([...new Set(asked)], [4])
})

test('STO-12 a driver that answers with a smaller size than asked for does not change the claim', async () => {
  const { csi, name } = await start({ driver: changed(() => ({ controllerExpandVolume: () => ({ capacityBytes: 7, nodeExpansionRequired: false }) })) })
  await using _csi = csi
  await ask(csi, '4Mi')
  assert.match(await csi.untilEvent('data', 'VolumeResizeFailed'), /expanded the volume to 7 bytes instead of 4194304$/)
  assert.equal((await csi.cluster.client.of(persistentVolumes).get({ name })).spec.capacity?.storage, '1Mi')
})

test('STO-17 a claim that names another VolumeAttributesClass has its volume modified, and one with unknown parameters stays as it is', async () => {
  const modified: unknown[] = []
  const { csi, name } = await start({
    driver: changed((controller) => ({
      controllerModifyVolume: (request) => {
        modified.push(request.mutableParameters)
        return controller.controllerModifyVolume(request)
      },
    })),
  })
  await using _csi = csi
  const { client } = csi.cluster
  const addAttributes = (className: string, parameters: Record<string, string>) =>
    client.of(volumeAttributesClasses).create({ metadata: { name: className }, driverName, parameters })
  await addAttributes('quick', { profile: 'latency' })
  await addAttributes('odd', { odd: 'yes' })
  await patchSpec(csi, { volumeAttributesClassName: 'quick' })
  const claim = await untilClaim(csi, ({ status }) => status.currentVolumeAttributesClassName === 'quick')
  assert.deepEqual([claim.status.modifyVolumeStatus, types(claim)], [undefined, []])
  assert.equal((await client.of(persistentVolumes).get({ name })).spec.volumeAttributesClassName, 'quick')
  await patchSpec(csi, { volumeAttributesClassName: 'odd' })
  const refused = await untilClaim(csi, ({ status }) => status.modifyVolumeStatus?.status === 'Infeasible')
  assert.deepEqual([refused.status.currentVolumeAttributesClassName, types(refused)], ['quick', ['ModifyingVolume', 'ModifyVolumeError']])
  await patchSpec(csi, { volumeAttributesClassName: 'quick' })
  await untilClaim(csi, ({ status }) => status.modifyVolumeStatus === undefined)
  assert.deepEqual(modified, [{ profile: 'latency' }, { odd: 'yes' }, { profile: 'latency' }])
})
