/**
 * Carries out what volumePlan.ts decides about one volume (L3). Upstream: pkg/controller/volume/persistentvolume/pv_controller.go syncVolume (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { volumeAnnotations } from '#api/helpers/volumes'
import { type Frozen, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { persistentVolumeClaims } from '#client/builtIn'
import type { ControllerContext } from '../framework/controller.ts'
import { withDeletionFinalizer, withDriver } from '../shared/csiMigration.ts'
import { type Binding, setVolumePhase, unbind } from './binding.ts'
import type { Reclaimer } from './reclaiming.ts'
import { planVolume } from './volumePlan.ts'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

export interface VolumeSyncDeps extends Binding {
  readonly context: ControllerContext
  readonly reclaim: Reclaimer['reclaim']
  readonly volumeOf: (name: string) => Volume | undefined
  readonly claimOf: (key: string) => Claim | undefined
  enqueueClaim(claim: Claim): void
}

export function createVolumeSync(deps: VolumeSyncDeps): (name: string, signal: AbortSignal) => Promise<undefined> {
  const { context, volumes, events, reclaim, claimOf } = deps

  return async (name, signal) => {
    const known = deps.volumeOf(name)
    if (!known) return
    const marked = withDeletionFinalizer(withDriver(known, known.metadata.annotations?.[volumeAnnotations.provisionedBy]))
    const volume = marked === known ? known : await volumes.update(marked, { signal })
    const claim = await claimBehind(volume, signal)
    const plan = planVolume(volume, claim)
    if (plan.act === 'setPhase') await setVolumePhase(volumes, volume, plan.phase, '', signal)
    else if (plan.act === 'unbind') await unbind(deps, volume, signal)
    else if (plan.act === 'reclaim') await reclaim(isOver(volume) ? volume : await setVolumePhase(volumes, volume, 'Released', '', signal), signal)
    else if (claim && plan.act === 'syncClaim') deps.enqueueClaim(claim)
    else if (claim && plan.act === 'reportMode') {
      events.event(volume, 'Warning', 'VolumeMismatch', plan.aboutVolume)
      events.event(claim, 'Warning', 'VolumeMismatch', plan.aboutClaim)
    }
  }

  /** The claim that the volume is bound to. The server is asked before a volume is let go: the cache may not know the newest claim yet. */
  async function claimBehind(volume: Volume, signal: AbortSignal): Promise<Claim | undefined> {
    const { claimRef } = volume.spec
    if (!claimRef?.uid) return undefined
    const key = `${claimRef.namespace}/${claimRef.name}`
    const cached = claimOf(key)
    if (cached?.metadata.uid === claimRef.uid) return cached
    if (!cached && isOver(volume)) return undefined
    try {
      const live = await context.client.of(persistentVolumeClaims).get(refOfKey(key), { signal })
      return live.metadata.uid === claimRef.uid ? live : undefined
    } catch (error) {
      if (isStatus(error, 'NotFound')) return undefined
      throw error
    }
  }
}

/** Let go already; a failure stays to be seen. */
function isOver({ status }: Volume): boolean {
  return status?.phase === 'Released' || status?.phase === 'Failed'
}
