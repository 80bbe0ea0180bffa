/**
 * Creates volumes for claims that name the driver, and deletes them when they are released (L3): provisioning.ts and deleting.ts.
 * Upstream: external-provisioner.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { storageClassOf } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { csiNodes, nodes, persistentVolumeClaims, persistentVolumes, storageClasses, volumeAttachments } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import { createReconciler, type Reconciler } from '#controllers/framework/reconciler'
import { type CsiContext, retryLimiter } from '../context.ts'
import { createCapacity } from './capacity.ts'
import { contentSourceOf, releaseSource } from './contentSource.ts'
import { createDeleting, isOfDriver } from './deleting.ts'
import { awaitsVolume, Provisioning, type ProvisioningDeps } from './provisioning.ts'
import { createSourceProtection } from './sourceProtection.ts'
import { type ClusterTopology, type TopologyMemory, topologyRequirement } from './topology.ts'

const defaultTimeoutMs = 10_000
const defaultWorkers = 100
const uidIndex = 'csiUid'
const classIndex = 'csiClassOfWaiting'
const attachedIndex = 'csiAttachedVolume'

export function createProvisioner(context: CsiContext): Component {
  const { driver, options } = context
  const name = `${driver.name} provisioner`
  const settings = { name, workers: options.workers ?? defaultWorkers }
  const topology = hasTopology(context) ? clusterTopology(context) : undefined
  const capacity = options.capacity && driver.controller.has('GET_CAPACITY') ? createCapacity(context, name, topology) : undefined
  const provisioning = new Provisioning(provisioningDeps(context, topology, (...args) => capacity?.refresh(...args)))
  const claimSync = createReconciler(context, {
    ...settings,
    queueName: 'claims',
    rateLimiter: retryLimiter(context),
    reconcile: (uid, signal) => provisioning.reconcile(uid, signal),
  })
  watchClaims(context, claimSync)
  const volumeSync = createVolumeSync(context, settings, (...args) => capacity?.refresh(...args))
  const syncs = [claimSync, volumeSync, createSourceProtection(context, name), ...(capacity ? [capacity.sync] : [])]
  return { name, run: async (signal) => void (await Promise.all(syncs.map((sync) => sync.run(signal)))) }
}

function provisioningDeps(context: CsiContext, topology: ClusterTopology | undefined, capacityChanged: ProvisioningDeps['capacityChanged']): ProvisioningDeps {
  const { client, clock, connection, driver, informers, options } = context
  const classes = informers.of(storageClasses)
  const volumeInformer = informers.of(persistentVolumes)
  const claimInformer = informers.of(persistentVolumeClaims)
  claimInformer.addIndexers({
    [uidIndex]: ({ metadata }) => [metadata.uid ?? ''],
    [classIndex]: (claim) => (awaitsVolume(claim, driver.name) ? [storageClassOf(claim)] : []),
  })
  const { topologyOf, forget } = createTopology(context, topology)
  return {
    ...{ client, clock, connection, driver, topologyOf, forget, capacityChanged },
    identity: `${options.identity}-${driver.name}`,
    events: context.events(`${driver.name}_${options.identity}`),
    claims: readYourWrites(client.of(persistentVolumeClaims), claimInformer, clock),
    volumes: readYourWrites(client.of(persistentVolumes), volumeInformer, clock),
    options: { ...options, timeoutMs: options.timeoutMs ?? defaultTimeoutMs },
    hasTopology: topology !== undefined,
    claimOf: (uid) => claimInformer.store.byIndex(uidIndex, uid)[0],
    storageClass: (className) => classes.store.get(className),
    hasVolume: (volumeName) => volumeInformer.store.get(volumeName) !== undefined,
    contentSourceOf: (claim, storageClass, signal) => contentSourceOf({ client, driver }, claim, storageClass, signal),
    releaseSource: (claim, signal) => releaseSource(client, claim, signal),
  }
}

const hasTopology = ({ driver, options }: CsiContext) => options.hasTopology && driver.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')

function clusterTopology({ informers }: CsiContext): ClusterTopology {
  const csiNodeInformer = informers.of(csiNodes)
  const nodeInformer = informers.of(nodes)
  return {
    csiNode: (name) => csiNodeInformer.store.get(name),
    csiNodes: () => csiNodeInformer.store.list(),
    node: (name) => nodeInformer.store.get(name),
    nodes: () => nodeInformer.store.list(),
  }
}

function createTopology({ driver, options }: CsiContext, cluster: ClusterTopology | undefined): Pick<ProvisioningDeps, 'topologyOf' | 'forget'> {
  if (!cluster) return { topologyOf: () => undefined, forget: () => {} }
  const memories = new Map<string, TopologyMemory>()
  return {
    topologyOf: ({ metadata }, { allowedTopologies }, nodeName) => {
      const { uid = '', name = '' } = metadata
      const memory = memories.get(uid) ?? {}
      memories.set(uid, memory)
      const { strictTopology: isStrict, immediateTopology: isImmediate } = options
      return topologyRequirement({ driver: driver.name, claimName: name, allowed: allowedTopologies, nodeName, isStrict, isImmediate, memory }, cluster)
    },
    forget: (uid) => void memories.delete(uid),
  }
}

function watchClaims(context: CsiContext, { queue, watch, needs }: Reconciler): void {
  const { driver, informers } = context
  const claims = informers.of(persistentVolumeClaims)
  const enqueue = (claim: Frozen<PersistentVolumeClaim>) => {
    if (awaitsVolume(claim, driver.name)) queue.add(claim.metadata.uid ?? '')
  }
  watch(claims, { onAdd: enqueue, onUpdate: (_, claim) => enqueue(claim) })
  const enqueueClass = ({ metadata }: { readonly metadata: { readonly name?: string | undefined } }) => {
    for (const claim of claims.store.byIndex(classIndex, metadata.name ?? '')) enqueue(claim)
  }
  watch(informers.of(storageClasses), { onAdd: enqueueClass, onUpdate: (_, one) => enqueueClass(one) })
  needs(informers.of(persistentVolumes))
  if (!hasTopology(context)) return
  needs(informers.of(nodes))
  needs(informers.of(csiNodes))
}

function createVolumeSync(
  context: CsiContext,
  settings: { readonly name: string; readonly workers: number },
  capacityChanged: ProvisioningDeps['capacityChanged'],
): Reconciler {
  const { client, clock, connection, driver, informers, log, options } = context
  const volumeInformer = informers.of(persistentVolumes)
  const classes = informers.of(storageClasses)
  // Without attachments that the driver must end, nothing is waited for.
  const attachments = driver.controller.has('PUBLISH_UNPUBLISH_VOLUME') ? informers.of(volumeAttachments) : undefined
  attachments?.addIndexers({ [attachedIndex]: ({ spec }) => [spec.source.persistentVolumeName ?? ''] })
  const reconcile = createDeleting({
    ...{ client, connection, driver, log, capacityChanged },
    events: context.events(`${driver.name}_${options.identity}`),
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
    volumes: readYourWrites(client.of(persistentVolumes), volumeInformer, clock),
    volume: (name) => volumeInformer.store.get(name),
    storageClass: (name) => classes.store.get(name),
    attachmentOf: (name) => attachments?.store.byIndex(attachedIndex, name)[0],
  })
  const sync = createReconciler(context, { ...settings, queueName: 'volumes', rateLimiter: retryLimiter(context), reconcile })
  const enqueue = (volume: Frozen<PersistentVolume>) => {
    if (isOfDriver(volume, driver.name)) sync.queue.add(volume.metadata.name ?? '')
  }
  sync.watch(volumeInformer, { onAdd: enqueue, onUpdate: (_, volume) => enqueue(volume) })
  sync.needs(classes)
  const detached = ({ spec }: Frozen<VolumeAttachment>) => {
    if (spec.source.persistentVolumeName !== undefined) sync.queue.add(spec.source.persistentVolumeName)
  }
  if (attachments) sync.watch(attachments, { onDelete: detached })
  return sync
}
