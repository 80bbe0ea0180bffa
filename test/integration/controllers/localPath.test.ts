/** Local volumes on simulated nodes: claims of the default class get volumes where their pods run, and the volumes go as their reclaim policy says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { localPathFinalizer, maxRemovals, requestedRemovals } from '#api/helpers/localPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { events, nodes, persistentVolumeClaims, persistentVolumes, pods, statefulSets, storageClasses } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { localPathProvisioner } from '#controllers/localPath/localPathProvisioner'
import { createDefaultStorageClassOnce, ensureLocalPathAccess } from '#main/layouts/localPathStorage'
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'

async function start(options: ClusterOptions = {}): Promise<TestCluster> {
  const cluster = await startCluster({ controllers: ['*', localPathProvisioner.name], ...options })
  const { signal } = new AbortController()
  await ensureLocalPathAccess(cluster.client, signal)
  await createDefaultStorageClassOnce(cluster.client, signal)
  return cluster
}

type ClaimSpec = Partial<PersistentVolumeClaim['spec']>

/** A claim without a class, as a user writes it. */
function addClaim(client: Client, name: string, spec: ClaimSpec = {}): Promise<Frozen<PersistentVolumeClaim>> {
  const base = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } }
  return client.of(persistentVolumeClaims).create({ metadata: { namespace, name }, spec: { ...base, ...spec } })
}

function addPod(client: Client, name: string, claimName: string, spec: Partial<Pod['spec']> = {}): Promise<Frozen<Pod>> {
  const containers = [{ name: 'app', image: 'example.com/app:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] }]
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }]
  return client.of(pods).create({ metadata: { namespace, name }, spec: { terminationGracePeriodSeconds: 0, containers, volumes, ...spec } })
}

function addClass(client: Client, name: string, settings: Partial<StorageClass> = {}): Promise<Frozen<StorageClass>> {
  const base = { provisioner: 'skiff.dev/local-path', volumeBindingMode: 'WaitForFirstConsumer' }
  return client.of(storageClasses).create({ metadata: { name }, ...base, ...settings })
}

const claimOf = ({ client }: TestCluster, name: string) => client.of(persistentVolumeClaims).get({ namespace, name })
const isRunning = async ({ client }: TestCluster, name: string) => (await client.of(pods).get({ namespace, name })).status.phase === 'Running'

/** The volume of a claim once a pod runs with it. */
async function volumeInUse(cluster: TestCluster, pod: string, claim: string): Promise<Frozen<PersistentVolume>> {
  await cluster.until(() => isRunning(cluster, pod))
  return cluster.client.of(persistentVolumes).get({ name: (await claimOf(cluster, claim)).spec.volumeName ?? '' })
}

async function isGone<T extends KubeObject>(client: Client, resource: Resource<T>, name: string): Promise<boolean> {
  try {
    await client.of(resource).get({ name })
    return false
  } catch (error) {
    if (isStatus(error, 'NotFound')) return true
    throw error
  }
}

async function eventsOf({ client }: TestCluster, name: string, reason: string): Promise<Frozen<Event>[]> {
  const { items } = await client.of(events).list()
  return items.filter((event) => event.involvedObject.name === name && event.reason === reason)
}

const untilEvent = (cluster: TestCluster, name: string, reason: string) => cluster.until(async () => (await eventsOf(cluster, name, reason))[0])

/** The volumes that the nodes were asked to remove, one list for each change of a Node. Needs recordHistory. */
function requestsInHistory(cluster: TestCluster): string[][] {
  const objects = cluster.history().flatMap(({ value }) => (value === '' ? [] : [JSON.parse(value) as Node]))
  return objects.filter(({ kind }) => kind === 'Node').map(requestedRemovals)
}

async function release(cluster: TestCluster, pod: string, claim: string): Promise<void> {
  await cluster.client.of(pods).delete({ namespace, name: pod })
  await cluster.client.of(persistentVolumeClaims).delete({ namespace, name: claim })
}

test('STO-06 CTL-15 a claim without a class gets a volume of the default class on the node of its pod', async () => {
  await using cluster = await start({ nodes: 2 })
  const { client } = cluster
  const claim = await addClaim(client, 'data')
  assert.equal(claim.spec.storageClassName, 'standard')
  await addPod(client, 'app', 'data')
  const volume = await volumeInUse(cluster, 'app', 'data')
  const node = (await client.of(pods).get({ namespace, name: 'app' })).spec.nodeName ?? ''
  const { uid } = claim.metadata
  assert.equal(volume.metadata.name, `pvc-${uid}`)
  assert.deepEqual(volume.metadata.finalizers?.includes(localPathFinalizer), true)
  assert.equal(volume.metadata.annotations?.['pv.kubernetes.io/provisioned-by'], 'skiff.dev/local-path')
  const { claimRef, ...spec } = volume.spec
  assert.deepEqual([claimRef?.namespace, claimRef?.name, claimRef?.uid], [namespace, 'data', uid])
  assert.deepEqual(spec, {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '10Gi' },
    local: { path: `/var/lib/kubelet/local-path/pvc-${uid}` },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }] } },
    persistentVolumeReclaimPolicy: 'Delete',
    storageClassName: 'standard',
    volumeMode: 'Filesystem',
  })
  assert.equal((await claimOf(cluster, 'data')).status.phase, 'Bound')
  const { message } = await untilEvent(cluster, 'data', 'ProvisioningSucceeded')
  assert.equal(message, `Successfully provisioned volume pvc-${uid}`)
  assert.equal((await untilEvent(cluster, 'data', 'Provisioning')).message, 'External provisioner is provisioning volume for claim "default/data"')
  assert.deepEqual(cluster.complaints, [])
})

test('STO-05 a deleted claim takes its volume along once the node has removed the directory', async () => {
  await using cluster = await start({ recordHistory: true })
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const { metadata } = await volumeInUse(cluster, 'app', 'data')
  const name = metadata.name ?? ''
  await release(cluster, 'app', 'data')
  await cluster.until(() => isGone(client, persistentVolumes, name))
  const node = await client.of(nodes).get({ name: 'n1' })
  assert.deepEqual(requestedRemovals(node), [])
  assert.ok(requestsInHistory(cluster).some((names) => names.includes(name)))
  assert.deepEqual(cluster.complaints, [])
})

test('STO-05 a volume with the policy Retain stays Released, and its deletion by a user asks no node', async () => {
  await using cluster = await start({ recordHistory: true })
  const { client } = cluster
  await addClass(client, 'kept', { reclaimPolicy: 'Retain', mountOptions: ['noatime'] })
  await addClaim(client, 'data', { storageClassName: 'kept' })
  await addPod(client, 'app', 'data')
  const { metadata, spec } = await volumeInUse(cluster, 'app', 'data')
  assert.deepEqual([spec.persistentVolumeReclaimPolicy, spec.mountOptions], ['Retain', ['noatime']])
  const name = metadata.name ?? ''
  await release(cluster, 'app', 'data')
  await cluster.until(async () => (await client.of(persistentVolumes).get({ name })).status?.phase === 'Released')
  await cluster.clock.advance(60_000)
  assert.equal((await client.of(persistentVolumes).get({ name })).metadata.deletionTimestamp, undefined)
  await client.of(persistentVolumes).delete({ name })
  await cluster.until(() => isGone(client, persistentVolumes, name))
  assert.deepEqual(requestsInHistory(cluster).flat(), [])
})

test('STO-05 a bound volume that a user deletes stays until its claim is deleted', async () => {
  await using cluster = await start()
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const name = (await volumeInUse(cluster, 'app', 'data')).metadata.name ?? ''
  await client.of(persistentVolumes).delete({ name })
  await cluster.clock.advance(60_000)
  assert.equal(await isGone(client, persistentVolumes, name), false)
  assert.deepEqual(requestedRemovals(await client.of(nodes).get({ name: 'n1' })), [])
  await release(cluster, 'app', 'data')
  await cluster.until(() => isGone(client, persistentVolumes, name))
})

test('STO-05 a removal waits for a node that is down, and is not repeated when the controllers restart meanwhile', async () => {
  await using cluster = await start({ nodes: 2 })
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const name = (await volumeInUse(cluster, 'app', 'data')).metadata.name ?? ''
  const nodeName = (await client.of(pods).get({ namespace, name: 'app' })).spec.nodeName ?? ''
  cluster.node(nodeName).crash()
  await client.of(pods).delete({ namespace, name: 'app' }, { gracePeriodSeconds: 0 })
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  const request = async () => requestedRemovals(await client.of(nodes).get({ name: nodeName }))
  await cluster.until(async () => (await request()).length === 1)
  await cluster.restart('kube-controller-manager', 'crash')
  await cluster.clock.advance(10 * 60_000)
  assert.deepEqual(await request(), [name])
  assert.equal((await client.of(persistentVolumes).get({ name })).status?.phase, 'Released')
  cluster.node(nodeName).start()
  await cluster.until(() => isGone(client, persistentVolumes, name))
  assert.deepEqual(await request(), [])
})

test('STO-05 volumes of a deleted node are deleted with an event', async () => {
  await using cluster = await start({ nodes: 2 })
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const name = (await volumeInUse(cluster, 'app', 'data')).metadata.name ?? ''
  const nodeName = (await client.of(pods).get({ namespace, name: 'app' })).spec.nodeName ?? ''
  cluster.node(nodeName).crash()
  await client.of(pods).delete({ namespace, name: 'app' }, { gracePeriodSeconds: 0 })
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  await cluster.until(async () => requestedRemovals(await client.of(nodes).get({ name: nodeName })).length === 1)
  await client.of(nodes).delete({ name: nodeName })
  await cluster.until(() => isGone(client, persistentVolumes, name))
  const { message } = await untilEvent(cluster, name, 'VolumeNodeNotFound')
  assert.equal(message, `node "${nodeName}" not found: deleting the volume without removing its directory`)
})

test('STO-05 a released volume that names no node is deleted with an event', async () => {
  await using cluster = await start()
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const { metadata } = await volumeInUse(cluster, 'app', 'data')
  const name = metadata.name ?? ''
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'skiff.dev/local-path' }
  const claimRef = { kind: 'PersistentVolumeClaim', namespace, name: 'data', uid: '9f6e2c52-8f6b-4f5e-a0a5-9a6f7f6f0001' }
  const spec = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/data' }, persistentVolumeReclaimPolicy: 'Delete', claimRef }
  await client.of(persistentVolumes).create({ metadata: { name: 'pvc-stray', annotations, finalizers: [localPathFinalizer] }, spec })
  await cluster.until(() => isGone(client, persistentVolumes, 'pvc-stray'))
  assert.match((await untilEvent(cluster, 'pvc-stray', 'VolumeNodeNotFound')).message ?? '', /^node "" not found/)
  assert.equal(await isGone(client, persistentVolumes, name), false)
})

test('STO-05 a policy that changes to Retain withdraws the request for the removal', async () => {
  await using cluster = await start()
  const { client } = cluster
  await addClaim(client, 'data')
  await addPod(client, 'app', 'data')
  const name = (await volumeInUse(cluster, 'app', 'data')).metadata.name ?? ''
  cluster.node('n1').crash()
  await client.of(pods).delete({ namespace, name: 'app' }, { gracePeriodSeconds: 0 })
  await client.of(persistentVolumeClaims).delete({ namespace, name: 'data' })
  const request = async () => requestedRemovals(await client.of(nodes).get({ name: 'n1' }))
  await cluster.until(async () => (await request()).length === 1)
  await client.of(persistentVolumes).patch({ name }, 'merge', { spec: { persistentVolumeReclaimPolicy: 'Retain' } })
  await cluster.until(async () => (await request()).length === 0)
  await cluster.clock.advance(60_000)
  assert.equal((await client.of(persistentVolumes).get({ name })).status?.phase, 'Released')
})

test('STO-06 a claim whose selected node does not exist is scheduled again', async () => {
  await using cluster = await start({ scheduler: false })
  const { client } = cluster
  await addClaim(client, 'data')
  const annotations = { 'volume.kubernetes.io/selected-node': 'unknown' }
  await client.of(persistentVolumeClaims).patch({ namespace, name: 'data' }, 'merge', { metadata: { annotations } })
  await cluster.until(async () => (await claimOf(cluster, 'data')).metadata.annotations?.['volume.kubernetes.io/selected-node'] === undefined)
  assert.equal((await untilEvent(cluster, 'data', 'ProvisioningFailed')).message, 'failed to get target node: node "unknown" not found')
  await client
    .of(persistentVolumeClaims)
    .patch({ namespace, name: 'data' }, 'merge', { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } } })
  await cluster.until(async () => (await claimOf(cluster, 'data')).status.phase === 'Bound')
})

const refused: readonly (readonly [name: string, spec: ClaimSpec, problem: string])[] = [
  ['block mode', { volumeMode: 'Block' }, 'skiff.dev/local-path does not support block volume provisioning'],
  ['ReadWriteMany', { accessModes: ['ReadWriteMany'] }, 'skiff.dev/local-path only supports ReadWriteOnce and ReadWriteOncePod access modes'],
  ['a selector', { selector: { matchLabels: { disk: 'fast' } } }, 'claim Selector is not supported'],
  ['a claim as data source', { dataSource: { kind: 'PersistentVolumeClaim', name: 'other' } }, 'skiff.dev/local-path does not support clone operations'],
  [
    'a snapshot as data source',
    { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'other' } },
    'skiff.dev/local-path does not support snapshot restore',
  ],
  ['a VolumeAttributesClass', { volumeAttributesClassName: 'fast' }, 'skiff.dev/local-path does not support VolumeAttributesClass'],
  [
    'immediate binding',
    { storageClassName: 'immediate' },
    'configuration error, no node was specified: StorageClass "immediate" needs volumeBindingMode WaitForFirstConsumer',
  ],
  ['parameters of its class', { storageClassName: 'tuned' }, 'skiff.dev/local-path does not support parameters of a StorageClass'],
]

test('STO-06 claims that local volumes cannot serve stay Pending with an event that says why', async (t) => {
  await using cluster = await start({ scheduler: false })
  const { client } = cluster
  await addClass(client, 'immediate', { volumeBindingMode: 'Immediate' })
  await addClass(client, 'tuned', { parameters: { pathPattern: 'x' } })
  for (const [index, [what, spec, problem]] of refused.entries()) {
    await t.test(what, async () => {
      const name = `claim-${index}`
      await addClaim(client, name, spec)
      const annotations = { 'volume.kubernetes.io/selected-node': 'n1' }
      if (spec.storageClassName !== 'immediate') await client.of(persistentVolumeClaims).patch({ namespace, name }, 'merge', { metadata: { annotations } })
      assert.equal((await untilEvent(cluster, name, 'ProvisioningFailed')).message, problem)
      await cluster.clock.advance(60_000)
      assert.equal((await claimOf(cluster, name)).status.phase, 'Pending')
      // Refused once, not again and again.
      assert.deepEqual(
        (await eventsOf(cluster, name, 'ProvisioningFailed')).map(({ count }) => count),
        [1],
      )
    })
  }
  assert.deepEqual((await client.of(persistentVolumes).list()).items, [])
})

test('STO-06 a refused claim gets its volume when its class is replaced by one that suits', async () => {
  await using cluster = await start()
  const { client } = cluster
  await addClass(client, 'tuned', { parameters: { pathPattern: 'x' } })
  await addClaim(client, 'data', { storageClassName: 'tuned' })
  await addPod(client, 'app', 'data')
  await untilEvent(cluster, 'data', 'ProvisioningFailed')
  await client.of(storageClasses).delete({ name: 'tuned' })
  await addClass(client, 'tuned')
  await cluster.until(() => isRunning(cluster, 'app'))
})

test('CTL-05 STO-15 pods of a StatefulSet come back to the volumes and nodes that they had', async () => {
  await using cluster = await start({ nodes: 3 })
  const { client } = cluster
  const labels = { app: 'db' }
  const volumeMounts = [{ name: 'data', mountPath: '/data' }]
  const template = { metadata: { labels }, spec: { containers: [{ name: 'db', image: 'example.com/db:1', volumeMounts }] } }
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } }
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: claim }] as unknown as PersistentVolumeClaim[]
  const spec = { serviceName: 'db', replicas: 3, selector: { matchLabels: labels }, template, volumeClaimTemplates }
  await client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec })
  const isAvailable = async (replicas: number) => (await client.of(statefulSets).get({ namespace, name: 'db' })).status?.availableReplicas === replicas
  const places = async () => {
    const { items } = await client.of(pods).list({ namespace })
    const place = async ({ metadata, spec: { nodeName } }: Frozen<Pod>) => [
      metadata.name,
      nodeName,
      (await claimOf(cluster, `data-${metadata.name}`)).spec.volumeName,
    ]
    return Promise.all(items.map(place))
  }
  await cluster.until(() => isAvailable(3))
  const before = await places()
  for (const replicas of [0, 3]) {
    await client.of(statefulSets).patch({ namespace, name: 'db' }, 'merge', { spec: { replicas } })
    await cluster.until(async () => (await client.of(pods).list({ namespace })).items.length === replicas)
  }
  await cluster.until(() => isAvailable(3))
  assert.deepEqual(await places(), before)
})

test('STO-05 STO-06 a thousand claims get their volumes, and a node is never asked for more removals than it may be', async () => {
  const many = 1000
  await using cluster = await start({ scheduler: false, recordHistory: true })
  const { client } = cluster
  const annotations = { 'volume.kubernetes.io/selected-node': 'n1' }
  const base = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  for (let index = 0; index < many; index++) {
    await client.of(persistentVolumeClaims).create({ metadata: { namespace, name: `claim-${index}`, annotations }, spec: base })
  }
  const phases = async () => (await client.of(persistentVolumes).list()).items.map(({ status }) => status?.phase)
  await cluster.until(async () => {
    const found = await phases()
    return found.length === many && found.every((phase) => phase === 'Bound')
  })
  cluster.node('n1').crash()
  await client.of(persistentVolumeClaims).deleteCollection({ namespace })
  await cluster.until(async () => (await phases()).every((phase) => phase === 'Released'))
  await cluster.until(async () => requestedRemovals(await client.of(nodes).get({ name: 'n1' })).length === maxRemovals)
  cluster.node('n1').start()
  await cluster.until(async () => (await phases()).length === 0)
  assert.equal(Math.max(...requestsInHistory(cluster).map(({ length }) => length)), maxRemovals)
  assert.deepEqual(cluster.complaints, [])
})

test('STO-06 the default class is created at the first start only', async () => {
  await using cluster = await start()
  const { client } = cluster
  const { signal } = new AbortController()
  const classesOf = async () => (await client.of(storageClasses).list()).items.map(({ metadata }) => metadata.name)
  assert.deepEqual(await classesOf(), ['standard'])
  const changed = { metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'false' } } }
  await client.of(storageClasses).patch({ name: 'standard' }, 'merge', changed)
  await createDefaultStorageClassOnce(client, signal)
  const { metadata } = await client.of(storageClasses).get({ name: 'standard' })
  assert.equal(metadata.annotations?.['storageclass.kubernetes.io/is-default-class'], 'false')
  await client.of(storageClasses).delete({ name: 'standard' })
  await createDefaultStorageClassOnce(client, signal)
  assert.deepEqual(await classesOf(), [])
})

test('STO-06 a cluster that had classes before gets no default class', async () => {
  await using cluster = await startCluster()
  const { client } = cluster
  const { signal } = new AbortController()
  await addClass(client, 'mine')
  await createDefaultStorageClassOnce(client, signal)
  await client.of(storageClasses).delete({ name: 'mine' })
  await createDefaultStorageClassOnce(client, signal)
  assert.deepEqual((await client.of(storageClasses).list()).items, [])
})
