/**
 * Carries out what claimPlan.ts decides about one claim (L3). Upstream: pkg/controller/volume/persistentvolume/pv_controller.go syncClaim (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { withDriver } from '../shared/csiMigration.ts'
import { bind, loseClaim, setClaimStatus } from './binding.ts'
import { type ClaimView, planClaim } from './claimPlan.ts'
import { type Provisioning, provision } from './provisioning.ts'

export interface ClaimSyncDeps extends Provisioning {
  readonly dynamicProvisioning: boolean
  readonly claimOf: (key: string) => Frozen<PersistentVolumeClaim> | undefined
  readonly view: ClaimView
}

export function createClaimSync(deps: ClaimSyncDeps): (key: string, signal: AbortSignal) => Promise<undefined> {
  const { claims, events, metrics, view } = deps

  return async (key, signal) => {
    const known = deps.claimOf(key)
    if (!known) return
    const { annotations } = known.metadata
    const marked = withDriver(known, annotations?.[volumeAnnotations.storageProvisioner] ?? annotations?.[volumeAnnotations.betaStorageProvisioner])
    const claim = marked === known ? known : await claims.update(marked, { signal })
    const plan = planClaim(claim, view)
    if (plan.act === 'bind') await bindNow(key, plan.volume, claim, signal)
    else if (plan.act === 'lose') await loseClaim(deps, claim, plan.event, signal)
    else if (plan.act === 'setClass') await assignClass(claim, plan.name, signal)
    else if (plan.act === 'wait') {
      if (plan.event) events.event(claim, plan.event.type, plan.event.reason, plan.event.message)
      if (plan.fault !== undefined) throw new Error(plan.fault)
      await setClaimStatus(claims, claim, 'Pending', undefined, signal)
    } else if (deps.dynamicProvisioning) await provision(deps, claim, signal)
  }

  async function bindNow(key: string, volume: Frozen<PersistentVolume>, claim: Frozen<PersistentVolumeClaim>, signal: AbortSignal): Promise<void> {
    try {
      await bind(deps, volume, claim, signal)
    } catch (error) {
      metrics.failed(key)
      throw error
    }
    metrics.succeeded(key)
  }

  async function assignClass(claim: Frozen<PersistentVolumeClaim>, storageClassName: string, signal: AbortSignal): Promise<void> {
    try {
      await claims.update({ ...claim, spec: { ...claim.spec, storageClassName } }, { signal })
      metrics.assignedClass(true)
    } catch (error) {
      metrics.assignedClass(false)
      throw error
    }
  }
}
