/**
 * Places pods where their volumes are or can be (L3), and binds claims that wait for their first consumer once the node is chosen.
 * Upstream: plugins/volumebinding/volume_binding.go (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { CSIStorageCapacity } from '#api/gen/types/storage.v1'
import { claimNameOf, promisedTo, storageClassOf } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { messageOf } from '#base/messageOf'
import { csiDrivers, csiStorageCapacities, persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '#client/builtIn'
import { actions, on, type Requeue } from '../../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../../framework/cycleState.ts'
import { definePlugin } from '../../framework/plugin.ts'
import { isRefusal, unresolvable } from '../../framework/status.ts'
import { volumesText } from '../volumesText.ts'
import { AssumedObjects } from './assumedObjects.ts'
import { isBound, provisionedOn, until, writeVolumes } from './bindVolumes.ts'
import { capacityLimit, findNodeVolumes, type NodeVolumes } from './nodeVolumes.ts'
import { type PodClaims, podClaims } from './podClaims.ts'

/** Clones share it: a result for a node is valid for every clone. */
interface Found extends StateData {
  readonly claims: PodClaims
  readonly byNode: Map<string, NodeVolumes>
}
const key = stateKey<Found>('VolumeBinding')

export const volumeBinding = definePlugin('VolumeBinding', ({ bindTimeoutSeconds }, handle) => {
  const wakers = new Set<() => void>()
  const wake = () => {
    for (const one of [...wakers]) one()
  }
  const claims = new AssumedObjects<PersistentVolumeClaim>(handle, persistentVolumeClaims, () => '', wake)
  const volumes = new AssumedObjects<PersistentVolume>(handle, persistentVolumes, storageClassOf, wake)
  const classes = handle.lister(storageClasses)
  const sources = { claims, volumes, classes, drivers: handle.lister(csiDrivers), capacities: handle.lister(csiStorageCapacities) }
  const podStore = handle.watch(pods, { onDelete: wake })

  return {
    batchSign: volumesText,
    requeueOn,
    preFilter: (state, { pod }) => {
      const found = podClaims(pod, sources)
      if (!found) return 'skip'
      if (isRefusal(found)) return found
      state.write(key, { claims: found, byNode: new Map() })
      return undefined
    },
    filter: (state, _pod, { node, name }) => {
      const found = state.read(key)
      if (!found) return undefined
      const result = findNodeVolumes(found.claims, node, sources)
      if (!('choices' in result)) return unresolvable(...result)
      found.byNode.set(name, result)
      return undefined
    },
    reserve: (state, _pod, nodeName) => {
      const found = state.read(key)
      const here = found?.byNode.get(nodeName)
      if (!found || !here) return undefined
      const choices = here.choices.map((choice) => ({ ...choice, volume: promisedTo(choice.volume, choice.claim) }))
      const provisions = here.provisions.map((claim) => provisionedOn(claim, nodeName))
      for (const { volume } of choices) volumes.assume(volume)
      for (const claim of provisions) claims.assume(claim)
      found.byNode.set(nodeName, { choices, provisions })
      return undefined
    },
    unreserve: (state, _pod, nodeName) => {
      const here = state.read(key)?.byNode.get(nodeName)
      for (const { volume } of here?.choices ?? []) volumes.restore(volume)
      for (const claim of here?.provisions ?? []) claims.restore(claim)
    },
    preBindPreFlight: (state) => ((state.read(key)?.claims.delayed.length ?? 0) === 0 ? 'skip' : undefined),
    preBind: async (state, { key: podKey }, nodeName, signal) => {
      const here = state.read(key)?.byNode.get(nodeName)
      if (!here) throw new Error(`no pod volumes found for node "${nodeName}"`)
      const written = await writeVolumes(handle.client, here, signal)
      const view = { claims, volumes, pod: () => podStore.get(podKey), node: () => handle.snapshot.get(nodeName)?.node }
      try {
        await until(() => isBound(written, nodeName, view), wakers, handle.clock, bindTimeoutSeconds * 1000, signal)
      } catch (error) {
        throw new Error(`binding volumes: ${messageOf(error)}`, { cause: error })
      }
      return undefined
    },
  }
})

const migratedPlugins = 'storage.alpha.kubernetes.io/migrated-plugins'

const requeueOn: readonly Requeue[] = [
  on('StorageClass', actions.Add | actions.Update, (_pod, { old, object }) => {
    return !old || JSON.stringify(old.allowedTopologies) !== JSON.stringify(object?.allowedTopologies)
  }),
  on('PersistentVolumeClaim', actions.Add | actions.Update, (pod, { object }) => object !== undefined && isClaimOf(pod, object)),
  on('PersistentVolume', actions.Add | actions.Update),
  on('Node', actions.Add | actions.UpdateNodeLabel),
  on('CSINode', actions.Add | actions.Update, (_pod, { old, object }) => {
    return !old || old.metadata.annotations?.[migratedPlugins] !== object?.metadata.annotations?.[migratedPlugins]
  }),
  on('CSIDriver', actions.Update, ({ spec }, { old, object }) => {
    const stopped = old?.spec.storageCapacity === true && object?.spec.storageCapacity !== true
    return stopped && spec.volumes?.some(({ csi }) => csi?.driver === object?.metadata.name) === true
  }),
  on('CSIStorageCapacity', actions.Add | actions.Update, (_pod, { old, object }) => !old || !object || hasMore(old, object)),
]

function hasMore(old: Frozen<CSIStorageCapacity>, now: Frozen<CSIStorageCapacity>): boolean {
  const [before, after] = [capacityLimit(old), capacityLimit(now)]
  return after !== undefined && (before === undefined || compareQuantities(after, before) > 0)
}

function isClaimOf(pod: Frozen<Pod>, claim: Frozen<PersistentVolumeClaim>): boolean {
  const key = keyOf(claim)
  return pod.spec.volumes?.some((volume) => key === `${pod.metadata.namespace}/${claimNameOf(pod, volume)}`) === true
}
