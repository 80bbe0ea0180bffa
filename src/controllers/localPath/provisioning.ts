/**
 * Creates the PersistentVolume of a claim (L3), as provisionPlan.ts decides, with the events that provisioners record. A refused claim is tried again when it
 * or its class changes. Upstream: sig-storage-lib-external-provisioner, controller/controller.go.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { localPathProvisioner } from '#api/helpers/localPath'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import type { NewObject, ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { unlessGone } from '#client/unlessGone'
import { awaitsVolume, planVolumeFor, selectedNodeOf, volumeNameOf } from './provisionPlan.ts'

type Claim = Frozen<PersistentVolumeClaim>

export interface ProvisioningDeps {
  readonly claims: ResourceClient<PersistentVolumeClaim>
  /** Its writes are in the cache when they return. */
  readonly volumes: ResourceClient<PersistentVolume>
  readonly nodes: ResourceClient<Node>
  readonly events: EventRecorder
  claimOf(key: string): Claim | undefined
  hasVolume(name: string): boolean
  storageClass(name: string): Frozen<StorageClass> | undefined
  cachedNode(name: string): Frozen<Node> | undefined
}

export function createProvisioning(deps: ProvisioningDeps): (key: string, signal: AbortSignal) => Promise<undefined> {
  const { claims, volumes, events } = deps

  return async (key, signal) => void (await provision(key, signal))

  async function provision(key: string, signal: AbortSignal): Promise<void> {
    const claim = deps.claimOf(key)
    if (!claim || !awaitsVolume(claim) || deps.hasVolume(volumeNameOf(claim))) return
    const storageClass = deps.storageClass(storageClassOf(claim))
    if (storageClass?.provisioner !== localPathProvisioner) return
    if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && selectedNodeOf(claim) === undefined) return
    const failed = (problem: string) => events.event(claim, 'Warning', 'ProvisioningFailed', problem)
    if (claim.spec.volumeMode === 'Block') return failed(`${localPathProvisioner} does not support block volume provisioning`)
    events.event(claim, 'Normal', 'Provisioning', `External provisioner is provisioning volume for claim "${key}"`)
    const plan = planVolumeFor(claim, storageClass, await nodeFor(claim, signal))
    if (plan.act === 'leaveToPopulator') events.event(claim, 'Normal', 'Provisioning', 'Assuming an external populator will provision the volume')
    if (plan.act === 'refuse' || plan.act === 'reschedule') failed(plan.problem)
    if (plan.act === 'reschedule') await clearSelectedNode(claim, signal)
    if (plan.act === 'create') await create(claim, plan.volume, failed, signal)
  }

  /** The server is asked before a node counts as unknown: the cache may not have a new one yet. */
  async function nodeFor(claim: Claim, signal: AbortSignal): Promise<Frozen<Node> | undefined> {
    const name = selectedNodeOf(claim)
    return name === undefined ? undefined : (deps.cachedNode(name) ?? (await unlessGone(() => deps.nodes.get({ name }, { signal }))))
  }

  async function create(claim: Claim, volume: NewObject<PersistentVolume>, failed: (problem: string) => void, signal: AbortSignal): Promise<void> {
    try {
      await volumes.create(volume, { signal })
    } catch (error) {
      if (isStatus(error, 'AlreadyExists')) return
      if (!signal.aborted) failed(`Error creating provisioned PV object for claim ${keyOf(claim)}: ${messageOf(error)}`)
      throw error
    }
    events.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${volume.metadata.name}`)
  }

  /** Without the annotation the scheduler selects a node again. */
  async function clearSelectedNode({ metadata }: Claim, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', resourceVersion } = metadata
    const annotations = { [volumeAnnotations.selectedNode]: null }
    await claims.patch({ namespace, name }, 'merge', { metadata: { resourceVersion, annotations } }, { signal })
  }
}
