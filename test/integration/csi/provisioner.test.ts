/** The provisioner with the host path driver: volumes are created for claims and deleted with them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { persistentVolumeClaims, persistentVolumes, pods, secrets, storageClasses } from '#client/builtIn'
import { type CreateVolumeRequest, CsiError, type TextMap, type Volume } from '#csi/server/csiTypes'
import { CsiCluster, changed, driverName, namespace, topologyKey } from './csiSetup.ts'

const recording = (requests: CreateVolumeRequest[]) =>
  changed((controller) => ({
    createVolume: (request) => {
      requests.push(request)
      return controller.createVolume(request)
    },
  }))

const noRoom = () => {
  throw new CsiError('RESOURCE_EXHAUSTED', 'no room')
}

test('STO-08 a claim of a class gets a volume of the driver, and the volume is deleted with the claim', async () => {
  await using csi = await CsiCluster.start()
  const { client } = csi.cluster
  await csi.addClass('fast', { mountOptions: ['noatime'], parameters: { 'csi.storage.k8s.io/fstype': 'ext4' } })
  const claim = await csi.addClaim('data', 'fast')
  const volume = await csi.boundVolume('data')
  assert.equal(volume.metadata.name, `pvc-${claim.metadata.uid}`)
  const [volumeHandle] = await csi.volumeIds()
  const { metadata, spec } = volume
  assert.equal(metadata.annotations?.['pv.kubernetes.io/provisioned-by'], driverName)
  assert.ok(metadata.finalizers?.includes('external-provisioner.volume.kubernetes.io/finalizer'))
  assert.deepEqual(spec.csi, {
    driver: driverName,
    volumeHandle,
    volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': `test-${driverName}` },
    fsType: 'ext4',
  })
  assert.deepEqual(
    [spec.capacity?.storage, spec.mountOptions, spec.persistentVolumeReclaimPolicy, spec.storageClassName],
    ['1Mi', ['noatime'], 'Delete', 'fast'],
  )
  const matchExpressions = [{ key: topologyKey, operator: 'In', values: ['n1'] }]
  assert.deepEqual(spec.nodeAffinity, { required: { nodeSelectorTerms: [{ matchExpressions }] } })
  assert.equal(await csi.untilEvent('data', 'ProvisioningSucceeded'), `Successfully provisioned volume ${metadata.name}`)
  assert.deepEqual(await csi.messagesOf('data', 'Provisioning'), ['External provisioner is provisioning volume for claim "default/data"'])
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await csi.untilGone(persistentVolumes, { name: metadata.name ?? '' })
  assert.deepEqual(await csi.volumeIds(), [])
})

test('STO-07 a claim that waits for its consumer gets a volume in the topology of the selected node, with the names of the claim as parameters', async () => {
  const requests: CreateVolumeRequest[] = []
  await using csi = await CsiCluster.start({ options: { extraCreateMetadata: true }, driver: recording(requests) })
  const { client } = csi.cluster
  await csi.addClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
  await csi.addClaim('data', 'late')
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  await client.of(pods).create({ metadata: { namespace, name: 'app' }, spec: { containers: [{ name: 'app', image: 'example.com/app:1' }], volumes } })
  const volume = await csi.boundVolume('data')
  const topologies = [{ segments: { [topologyKey]: 'n1' } }]
  const [request] = requests
  assert.deepEqual(request?.accessibilityRequirements, { requisite: topologies, preferred: topologies })
  assert.deepEqual(request?.parameters, {
    'csi.storage.k8s.io/pvc/name': 'data',
    'csi.storage.k8s.io/pvc/namespace': namespace,
    'csi.storage.k8s.io/pv/name': volume.metadata.name,
  })
  assert.deepEqual(request?.volumeCapabilities, [
    { block: null, mount: { fsType: '', mountFlags: [], volumeMountGroup: '' }, accessMode: { mode: 'SINGLE_NODE_MULTI_WRITER' } },
  ])
})

test('STO-08 the driver gets the Secret that the class names by a template, to create and to delete, and the volume names those of later calls', async () => {
  const seen: { creation?: TextMap; deletion?: TextMap } = {}
  await using csi = await CsiCluster.start({
    driver: changed((controller) => ({
      createVolume: (request) => {
        seen.creation = request.secrets
        return controller.createVolume(request)
      },
      deleteVolume: (request) => {
        seen.deletion = request.secrets
        return controller.deleteVolume(request)
      },
    })),
  })
  const { client } = csi.cluster
  await client.of(secrets).create({ metadata: { namespace, name: 'key-data' }, stringData: { password: 'abc' } })
  const token = (value: string) => `$${`{${value}}`}`
  const prefix = 'csi.storage.k8s.io/'
  const parameters = {
    [`${prefix}provisioner-secret-name`]: `key-${token("pvc.annotations['example.com/key']")}`,
    [`${prefix}provisioner-secret-namespace`]: token('pvc.namespace'),
    [`${prefix}node-stage-secret-name`]: 'stage',
    [`${prefix}node-stage-secret-namespace`]: 'kube-system',
  }
  await csi.addClass('secret', { parameters })
  await csi.addClaim('data', 'secret', {}, { annotations: { 'example.com/key': 'data' } })
  const { metadata, spec } = await csi.boundVolume('data')
  assert.deepEqual(spec.csi?.nodeStageSecretRef, { name: 'stage', namespace: 'kube-system' })
  const annotation = (name: string) => metadata.annotations?.[`volume.kubernetes.io/provisioner-deletion-secret-${name}`]
  assert.deepEqual([annotation('name'), annotation('namespace')], ['key-data', namespace])
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await csi.untilGone(persistentVolumes, { name: metadata.name ?? '' })
  assert.deepEqual(seen, { creation: { password: 'abc' }, deletion: { password: 'abc' } })
})

test('STO-08 a volume is deleted again when its claim is deleted while the driver creates it and does not answer', async () => {
  let isStuck = true
  await using csi = await CsiCluster.start({
    driver: changed((controller) => ({
      createVolume: async (request) => {
        const answer = await controller.createVolume(request)
        if (isStuck) throw new CsiError('DEADLINE_EXCEEDED', 'it takes long')
        return answer
      },
    })),
  })
  const { client } = csi.cluster
  await csi.addClass('fast')
  const { metadata } = await csi.addClaim('data', 'fast')
  await csi.untilEvent('data', 'ProvisioningFailed')
  assert.equal((await csi.volumeIds()).length, 1)
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await csi.untilGone(persistentVolumeClaims, { namespace, name: 'data' })
  isStuck = false
  await csi.cluster.until(async () => (await csi.volumeIds()).length === 0, 30_000)
  await csi.untilGone(persistentVolumes, { name: `pvc-${metadata.uid}` })
})

const lies: readonly (readonly [what: string, volume: (volume: Volume) => object | undefined, problem: RegExp])[] = [
  ['without a volume', () => undefined, /without a volume id/],
  ['without an id', (volume) => ({ ...volume, volumeId: '' }), /without a volume id/],
  ['with less than the claim asks for', (volume) => ({ ...volume, capacityBytes: 5 }), /created volume capacity 5 less than requested capacity 1048576$/],
  ['with a negative capacity', (volume) => ({ ...volume, capacityBytes: -5 }), /created volume capacity -5 less than/],
  ['with a topology that no node can have', (volume) => ({ ...volume, accessibleTopology: [{ segments: { '?': '?' } }] }), /error saving volume/],
]
for (const [what, lie, problem] of lies) {
  test(`STO-08 a driver that answers ${what} gets no PersistentVolume, others do, and no volume remains when the claim is deleted`, async () => {
    let isLying = true
    await using csi = await CsiCluster.start({
      driver: changed((controller) => ({
        createVolume: async (request) => {
          const { volume } = await controller.createVolume(request)
          return { volume: isLying && request.capacityRange?.requiredBytes === 1 << 20 ? (lie(volume) as never) : volume }
        },
      })),
    })
    const { client } = csi.cluster
    await csi.addClass('fast')
    await csi.addClaim('lied', 'fast')
    assert.match(await csi.untilEvent('lied', 'ProvisioningFailed'), problem)
    await csi.addClaim('good', 'fast', { resources: { requests: { storage: '2Mi' } } })
    const good = await csi.boundVolume('good')
    assert.deepEqual(
      (await client.of(persistentVolumes).list()).items.map(({ metadata }) => metadata.name),
      [good.metadata.name],
    )
    await client.of(persistentVolumeClaims).delete({ namespace, name: 'lied' })
    isLying = false
    await csi.cluster.until(async () => String(await csi.volumeIds()) === good.spec.csi?.volumeHandle, 30_000)
  })
}

test('STO-07 a driver that has no room on the selected node has the scheduler select again', async () => {
  await using csi = await CsiCluster.start({ driver: changed(() => ({ createVolume: noRoom })) })
  const { client } = csi.cluster
  await csi.addClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
  await csi.addClaim('data', 'late', {}, { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } })
  assert.match(await csi.untilEvent('data', 'ProvisioningFailed'), /code = ResourceExhausted/)
  await csi.cluster.until(async () => {
    const { metadata } = await client.of(persistentVolumeClaims).get({ namespace, name: 'data' })
    return metadata.annotations?.['volume.kubernetes.io/selected-node'] === undefined
  }, 30_000)
  assert.deepEqual(await csi.volumeIds(), [])
})

test('STO-06 a class with parameters that the driver does not know is tried again when the class is another', async () => {
  await using csi = await CsiCluster.start()
  const { client } = csi.cluster
  await csi.addClass('odd', { parameters: { odd: 'yes' } })
  await csi.addClaim('data', 'odd')
  assert.match(
    await csi.untilEvent('data', 'ProvisioningFailed'),
    /^Volume provisioning failed with infeasible error\. Retries will be delayed\. rpc error: code = InvalidArgument desc = /,
  )
  await client.of(storageClasses).delete({ name: 'odd' })
  await csi.addClass('odd')
  await csi.boundVolume('data')
})

test('STO-14 a claim of another claim gets a clone of its volume, and the source stays until then', async () => {
  let isHeld = true
  await using csi = await CsiCluster.start({
    driver: changed((controller) => ({
      createVolume: (request) => {
        if (request.volumeContentSource && isHeld) throw new CsiError('UNAVAILABLE', 'not now')
        return controller.createVolume(request)
      },
    })),
  })
  const { client } = csi.cluster
  await csi.addClass('fast')
  await csi.addClaim('data', 'fast')
  const source = await csi.boundVolume('data')
  const dataSource = { kind: 'PersistentVolumeClaim', name: 'data' }
  await csi.addClaim('small', 'fast', { dataSource, resources: { requests: { storage: '1' } } })
  assert.match(await csi.untilEvent('small', 'ProvisioningFailed'), /must be greater than or equal in size to the specified PVC data source/)
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'small' })
  await csi.addClaim('clone', 'fast', { dataSource })
  await csi.untilEvent('clone', 'ProvisioningFailed')
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await csi.cluster.until(async () => {
    const { metadata } = await client.of(persistentVolumeClaims).get({ namespace, name: 'data' })
    return String(metadata.finalizers) === 'provisioner.storage.kubernetes.io/cloning-protection'
  }, 30_000)
  isHeld = false
  const clone = await csi.boundVolume('clone')
  const { volume } = await csi.driver.controller.controllerGetVolume({ volumeId: clone.spec.csi?.volumeHandle ?? '' })
  assert.equal(volume.contentSource?.volume?.volumeId, source.spec.csi?.volumeHandle)
  await csi.untilGone(persistentVolumes, { name: source.metadata.name ?? '' })
  assert.deepEqual(await csi.volumeIds(), [clone.spec.csi?.volumeHandle])
})
