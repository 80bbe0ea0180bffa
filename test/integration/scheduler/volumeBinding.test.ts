/** Volumes for pods through the real API server: promised to one pod at a time, written when the node is chosen, and waited for. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '#client/builtIn'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { addNode, isBound, isUnschedulable, newNode, newPod, type RunningScheduler, startScheduler, untilPods } from './cluster.ts'

let api: TestApiServer
let scheduler: RunningScheduler

beforeEach(async () => {
  api = await startTestApiServer()
  for (const name of ['a', 'b']) await addNode(api.client, newNode(name))
})

afterEach(async () => {
  await scheduler.stop()
  await api.close()
})

const key = 'volume.kubernetes.io/selected-node'

async function addClass(provisioner: string): Promise<void> {
  await api.client.of(storageClasses).create({ metadata: { name: 'late' }, provisioner, volumeBindingMode: 'WaitForFirstConsumer' })
}

async function addClaim(name: string): Promise<void> {
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'late', resources: { requests: { storage: '1Gi' } } }
  await api.client.of(persistentVolumeClaims).create({ metadata: { name, namespace: 'default' }, spec })
}

/** Free, and only reachable from one node. */
async function addVolume(name: string, nodeName: string): Promise<void> {
  const required = { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] }] }
  const volume = await api.client.of(persistentVolumes).create({
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      storageClassName: 'late',
      local: { path: '/data' },
      nodeAffinity: { required },
    },
  })
  await api.client.of(persistentVolumes).updateStatus({ ...volume, status: { phase: 'Available' } })
}

async function addPod(name: string, claimName: string): Promise<Pod> {
  return (await api.client.of(pods).create(newPod(name, '100m', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] }))) as Pod
}

/** The object, as soon as it is as wanted. */
async function untilClaim(name: string, right: (claim: Frozen<PersistentVolumeClaim>) => boolean): Promise<Frozen<PersistentVolumeClaim>> {
  const resource = api.client.of(persistentVolumeClaims)
  const list = await resource.list({ namespace: 'default' })
  const there = list.items.find((claim) => claim.metadata.name === name && right(claim))
  if (there) return there
  const { resourceVersion } = list.metadata
  for await (const batch of resource.watch({ namespace: 'default', resourceVersion, signal: AbortSignal.timeout(60_000) }))
    for (const event of batch) if (event.type === 'MODIFIED' && event.object.metadata.name === name && right(event.object)) return event.object
  throw new Error(`claim ${name} did not become as wanted`)
}

/** The volume (or the first one), as soon as it is promised to a claim. */
async function untilPromised(name?: string): Promise<Frozen<PersistentVolume>> {
  const resource = api.client.of(persistentVolumes)
  const list = await resource.list()
  const right = ({ metadata, spec }: Frozen<PersistentVolume>) => spec.claimRef !== undefined && (name === undefined || metadata.name === name)
  const there = list.items.find(right)
  if (there) return there
  for await (const batch of resource.watch({ resourceVersion: list.metadata.resourceVersion, signal: AbortSignal.timeout(60_000) }))
    for (const event of batch) if (event.type === 'MODIFIED' && right(event.object)) return event.object
  throw new Error('no volume was promised')
}

/** What the volume controller does once the scheduler has chosen. */
async function completeBinding(claimName: string, volumeName: string): Promise<void> {
  const ref = { namespace: 'default', name: claimName }
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
  await api.client.of(persistentVolumeClaims).patch(ref, 'merge', { metadata: { annotations }, spec: { volumeName } })
}

test('SCH-09 the volume of the chosen node is promised to the claim, and the pod is bound when the claim is', async () => {
  await addClass('kubernetes.io/no-provisioner')
  await addClaim('data')
  await addVolume('disk', 'b')
  scheduler = startScheduler(api.client)
  await addPod('web', 'data')
  const volume = await untilPromised()
  assert.equal(volume.metadata.annotations?.['pv.kubernetes.io/bound-by-controller'], 'yes')
  const { kind, apiVersion, namespace, name, uid } = volume.spec.claimRef ?? {}
  const claim = await api.client.of(persistentVolumeClaims).get({ namespace: 'default', name: 'data' })
  assert.deepEqual([kind, apiVersion, namespace, name, uid], ['PersistentVolumeClaim', 'v1', 'default', 'data', claim.metadata.uid])
  assert.equal((await api.client.of(pods).get({ namespace: 'default', name: 'web' })).spec.nodeName ?? '', '')
  await completeBinding('data', 'disk')
  const bound = await untilPods(api.client, ['web'], isBound)
  assert.equal(bound.get('web')?.spec.nodeName, 'b')
})

test('SCH-09 a claim to be provisioned is annotated with the node, and after a failed provisioning the pod is scheduled again', async () => {
  await addClass('csi.example.com')
  await addClaim('data')
  scheduler = startScheduler(api.client)
  await addPod('web', 'data')
  const chosen = await untilClaim('data', ({ metadata }) => metadata.annotations?.[key] !== undefined)
  const first = chosen.metadata.annotations?.[key]
  assert.ok(first === 'a' || first === 'b')
  const ref = { namespace: 'default', name: 'data' }
  await api.client.of(persistentVolumeClaims).patch(ref, 'merge', { metadata: { annotations: { [key]: null } } })
  const failed = await untilPods(api.client, ['web'], isUnschedulable)
  const condition = failed.get('web')?.status.conditions?.find(({ type }) => type === 'PodScheduled')
  assert.match(condition?.message ?? '', /binding volumes: provisioning failed for PVC "data"$/)
  const again = await untilClaim('data', ({ metadata }) => metadata.annotations?.[key] !== undefined)
  await addVolume('made', again.metadata.annotations?.[key] ?? '')
  await completeBinding('data', 'made')
  const bound = await untilPods(api.client, ['web'], isBound)
  assert.equal(bound.get('web')?.spec.nodeName, again.metadata.annotations?.[key])
})

test('SCH-09 one free volume is reserved for one of two pods, and the other is scheduled when there is a second', async () => {
  await addClass('kubernetes.io/no-provisioner')
  for (const name of ['one', 'two']) await addClaim(name)
  await addVolume('disk', 'a')
  scheduler = startScheduler(api.client)
  await addPod('web-one', 'one')
  await addPod('web-two', 'two')
  const volume = await untilPromised()
  const winner = volume.spec.claimRef?.name ?? ''
  const loser = winner === 'one' ? 'two' : 'one'
  const refused = await untilPods(api.client, [`web-${loser}`], isUnschedulable)
  const { message = '' } = refused.get(`web-${loser}`)?.status.conditions?.find(({ type }) => type === 'PodScheduled') ?? {}
  assert.match(message, /^0\/2 nodes are available: 2 node\(s\) didn't find available persistent volumes to bind\./)
  await completeBinding(winner, 'disk')
  await addVolume('second', 'b')
  await untilPods(api.client, [`web-${winner}`], isBound)
  await untilPromised('second')
  await completeBinding(loser, 'second')
  const bound = await untilPods(api.client, [`web-${loser}`], isBound)
  assert.equal(bound.get(`web-${loser}`)?.spec.nodeName, 'b')
})

test('SCH-09 a pod that waits for its volume can be deleted, and the scheduler stopped', async () => {
  await addClass('csi.example.com')
  await addClaim('data')
  scheduler = startScheduler(api.client)
  await addPod('web', 'data')
  await untilClaim('data', ({ metadata }) => metadata.annotations?.[key] !== undefined)
  await api.client.of(pods).delete({ namespace: 'default', name: 'web' }, { gracePeriodSeconds: 0 })
  // Another pod can have the claim: the node that was chosen stays.
  await addPod('next', 'data')
  const claim = await api.client.of(persistentVolumeClaims).get({ namespace: 'default', name: 'data' })
  await addVolume('made', claim.metadata.annotations?.[key] ?? '')
  await completeBinding('data', 'made')
  const bound = await untilPods(api.client, ['next'], isBound)
  assert.equal(bound.get('next')?.spec.nodeName, claim.metadata.annotations?.[key])
  await addClaim('other')
  await addPod('last', 'other')
  await untilClaim('other', ({ metadata }) => metadata.annotations?.[key] !== undefined)
})
