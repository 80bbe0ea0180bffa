/**
 * Provisions PersistentVolumes as directories of the node that the scheduler selected, and has the directories removed again (L3): provisioning.ts creates volumes,
 * removing.ts deletes them. The kubelet creates and removes the directories; api/helpers/localPath.ts is the protocol between both.
 * Upstream has no such controller; it stands for rancher's local-path-provisioner, and runs where it is named (--controllers).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { isLocalPathVolume, localPathProvisioner as provisioner, requestedRemovals } from '#api/helpers/localPath'
import { storageClassOf } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Component } from '#base/component'
import { nodes, persistentVolumeClaims, persistentVolumes, storageClasses } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { createProvisioning } from './provisioning.ts'
import { awaitsVolume } from './provisionPlan.ts'
import { fateOf, nodeNameOf } from './removalPlan.ts'
import { createRemoving } from './removing.ts'

export const localPathProvisioner: ControllerDescriptor = {
  name: 'local-path-provisioner-controller',
  aliases: [],
  serviceAccount: 'local-path-provisioner',
  disabledByDefault: true,
  create: createLocalPathProvisioner,
}

const goingIndex = 'localPathNodeOfGoing'
const volumeIndexers = { [goingIndex]: (volume: Frozen<PersistentVolume>) => (fateOf(volume) ? [nodeNameOf(volume)] : []) }
const waitingIndex = 'localPathClassOfWaiting'
const claimIndexers = { [waitingIndex]: (claim: Frozen<PersistentVolumeClaim>) => (awaitsVolume(claim) ? [storageClassOf(claim)] : []) }

function createLocalPathProvisioner(context: ControllerContext): Component {
  const { client, clock, informers } = context
  const claimInformer = informers.of(persistentVolumeClaims)
  const volumeInformer = informers.of(persistentVolumes)
  const nodeInformer = informers.of(nodes)
  const classes = informers.of(storageClasses)
  claimInformer.addIndexers(claimIndexers)
  volumeInformer.addIndexers(volumeIndexers)
  const events = context.events(provisioner)
  const volumes = readYourWrites(client.of(persistentVolumes), volumeInformer, clock)
  const nodeClient = readYourWrites(client.of(nodes), nodeInformer, clock)
  const cachedNode = (name: string) => nodeInformer.store.get(name)
  const volume = (name: string) => volumeInformer.store.get(name)
  const provision = createProvisioning({
    ...{ volumes, events, cachedNode },
    nodes: nodeClient,
    claims: client.of(persistentVolumeClaims),
    claimOf: (key) => claimInformer.store.get(key),
    hasVolume: (name) => volume(name) !== undefined,
    storageClass: (name) => classes.store.get(name),
  })
  const remove = createRemoving({
    ...{ volumes, events, cachedNode, volume },
    nodes: nodeClient,
    going: (nodeName) => volumeInformer.store.byIndex(goingIndex, nodeName),
  })
  const { name } = localPathProvisioner
  const claimSync = createReconciler(context, { name, queueName: 'local_path_claims', workers: 4, reconcile: provision })
  // One pass at a time for each node is what the queue gives; several nodes side by side.
  const nodeSync = createReconciler(context, { name, queueName: 'local_path_nodes', workers: 4, reconcile: remove })
  const enqueueClaim = (claim: Frozen<PersistentVolumeClaim>) => {
    if (awaitsVolume(claim)) claimSync.queue.add(keyOf(claim))
  }
  const enqueueClass = ({ metadata }: { readonly metadata: { readonly name?: string | undefined } }) => {
    for (const claim of claimInformer.store.byIndex(waitingIndex, metadata.name ?? '')) claimSync.queue.add(keyOf(claim))
  }
  claimSync.watch(claimInformer, { onAdd: enqueueClaim, onUpdate: (_, claim) => enqueueClaim(claim) })
  claimSync.watch(classes, { onAdd: enqueueClass, onUpdate: (_, one) => enqueueClass(one) })
  claimSync.watch(volumeInformer, {
    // A claim whose volume went before they were bound gets another one.
    onDelete: (gone) => {
      const claimRef = gone.spec?.claimRef
      if (isLocalPathVolume(gone) && claimRef) claimSync.queue.add(`${claimRef.namespace}/${claimRef.name}`)
    },
  })
  claimSync.needs(nodeInformer)
  const enqueueNodeOf = (one: Frozen<PersistentVolume>) => {
    if (isLocalPathVolume(one)) nodeSync.queue.add(nodeNameOf(one))
  }
  nodeSync.watch(volumeInformer, {
    onAdd: (one) => fateOf(one) && enqueueNodeOf(one),
    onUpdate: (old, one) => (fateOf(one) ?? fateOf(old)) && enqueueNodeOf(one),
    onDelete: (one) => fateOf(one) && enqueueNodeOf(one),
  })
  const enqueueIf = (nodeName: string, matters: boolean) => {
    if (matters || volumeInformer.store.countByIndex(goingIndex, nodeName) > 0) nodeSync.queue.add(nodeName)
  }
  nodeSync.watch(nodeInformer, {
    onAdd: (node) => enqueueIf(node.metadata.name ?? '', requestedRemovals(node).length > 0),
    onUpdate: (old, node) => {
      const now = requestedRemovals(node)
      if (now.length + requestedRemovals(old).length > 0) enqueueIf(node.metadata.name ?? '', String(now) !== String(requestedRemovals(old)))
    },
    onDelete: (node) => enqueueIf(node.metadata.name ?? '', false),
  })
  return {
    name,
    run: async (signal) => void (await Promise.all([claimSync.run(signal), nodeSync.run(signal)])),
  }
}
