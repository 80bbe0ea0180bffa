/** A StatefulSet with claims on simulated nodes: with existing volumes, and with volumes that a driver provisions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims, persistentVolumes, pods, statefulSets, storageClasses } from '#client/builtIn'
import type { Client } from '#client/client'
import { startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'

async function addSet(client: Client, storageClassName: string): Promise<void> {
  const labels = { app: 'db' }
  const volumeMounts = [{ name: 'data', mountPath: '/data' }]
  const template = { metadata: { labels }, spec: { containers: [{ name: 'db', image: 'example.com/db:1', volumeMounts }] } }
  const claim = { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } }
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: claim }] as unknown as PersistentVolumeClaim[]
  const spec = { serviceName: 'db', replicas: 3, selector: { matchLabels: labels }, template, volumeClaimTemplates }
  await client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec })
}

/** Where each pod is, with the volume of its claim. */
async function placement({ client, until }: TestCluster): Promise<Map<string, { node: string; volume: string }>> {
  await until(async () => (await client.of(statefulSets).get({ namespace, name: 'db' })).status?.availableReplicas === 3)
  const found = new Map<string, { node: string; volume: string }>()
  for (const { metadata, spec } of (await client.of(pods).list({ namespace })).items) {
    const claim = await client.of(persistentVolumeClaims).get({ namespace, name: `data-${metadata.name}` })
    assert.equal(claim.status.phase, 'Bound')
    found.set(metadata.name ?? '', { node: spec.nodeName ?? '', volume: claim.spec.volumeName ?? '' })
  }
  return found
}

const onNode = (node: string) => ({ required: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }] } })

test('CTL-05 STO-15 a StatefulSet gets existing volumes, one on each node, and recreated pods use them again', async () => {
  const cluster = await startCluster({ nodes: 3 })
  try {
    const { client, until } = cluster
    const provisioner = 'kubernetes.io/no-provisioner'
    await client.of(storageClasses).create({ metadata: { name: 'disks' }, provisioner, volumeBindingMode: 'WaitForFirstConsumer' })
    for (const { name } of cluster.nodes) {
      const spec = {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        storageClassName: 'disks',
        local: { path: '/disk' },
        nodeAffinity: onNode(name),
      }
      await client.of(persistentVolumes).create({ metadata: { name: `disk-${name}` }, spec })
    }
    await addSet(client, 'disks')
    const first = await placement(cluster)
    assert.deepEqual([...first.values()].map(({ volume }) => volume).sort(), ['disk-n1', 'disk-n2', 'disk-n3'])
    for (const { node, volume } of first.values()) assert.equal(volume, `disk-${node}`)
    const before = await client.of(pods).get({ namespace, name: 'db-1' })
    await client.of(pods).delete({ namespace, name: 'db-1' })
    await until(async () => {
      const pod = await client.of(pods).get({ namespace, name: 'db-1' })
      return pod.metadata.uid !== before.metadata.uid && pod.status.phase === 'Running'
    })
    assert.deepEqual(await placement(cluster), first)
  } finally {
    await cluster.close()
  }
})

/** What csi-provisioner does: makes a volume where the claim names the driver, on the node that the scheduler has chosen. */
async function drive(client: Client, driver: string, made: Set<string>): Promise<void> {
  const { items } = await client.of(persistentVolumeClaims).list({ namespace })
  for (const claim of items) if (isDue(claim, driver) && !made.has(claim.metadata.uid ?? '')) await makeVolume(client, driver, claim, made)
}

function isDue({ metadata, spec }: Frozen<PersistentVolumeClaim>, driver: string): boolean {
  const { annotations = {} } = metadata
  return (
    !spec.volumeName && annotations['volume.kubernetes.io/storage-provisioner'] === driver && annotations['volume.kubernetes.io/selected-node'] !== undefined
  )
}

async function makeVolume(client: Client, driver: string, { metadata, spec }: Frozen<PersistentVolumeClaim>, made: Set<string>): Promise<void> {
  const { uid = '', name, resourceVersion, annotations } = metadata
  made.add(uid)
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion }
  await client.of(persistentVolumes).create({
    metadata: { name: `pvc-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: spec.resources?.requests?.storage ?? '' },
      storageClassName: spec.storageClassName,
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver, volumeHandle: uid },
      claimRef,
      nodeAffinity: onNode(annotations?.['volume.kubernetes.io/selected-node'] ?? ''),
    },
  })
}

test('CTL-05 STO-06 STO-07 a StatefulSet gets volumes that a driver makes where its pods will be', async () => {
  const cluster = await startCluster({ nodes: 2 })
  try {
    const { client, until } = cluster
    const driver = 'disk.example.com'
    await client.of(storageClasses).create({ metadata: { name: 'made' }, provisioner: driver, volumeBindingMode: 'WaitForFirstConsumer' })
    await addSet(client, 'made')
    const made = new Set<string>()
    await until(async () => {
      await drive(client, driver, made)
      return (await client.of(statefulSets).get({ namespace, name: 'db' })).status?.availableReplicas === 3
    })
    const places = await placement(cluster)
    assert.deepEqual([...places.values()].map(({ volume }) => volume).sort(), [...made].map((uid) => `pvc-${uid}`).sort())
    // Its claims outlive the set, and their volumes with them.
    await client.of(statefulSets).delete({ namespace, name: 'db' })
    await until(async () => (await client.of(pods).list({ namespace })).items.length === 0)
    const left = (await client.of(persistentVolumes).list()).items
    assert.deepEqual(
      left.map(({ status }) => status?.phase),
      ['Bound', 'Bound', 'Bound'],
    )
    await client.of(persistentVolumeClaims).delete({ namespace, name: 'data-db-0' })
    await until(async () => (await client.of(persistentVolumes).list()).items.filter(({ status }) => status?.phase === 'Released').length === 1)
  } finally {
    await cluster.close()
  }
})
