/** Why a volume is not bound, or not usable again (L2). */
import type { PersistentVolume } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { eventText, type View } from './view.ts'

export async function explainVolume(volume: Frozen<PersistentVolume>, view: View): Promise<Explanation> {
  const { phase = 'Pending' } = volume.status ?? {}
  const cause = await causeOf(volume, view)
  return { state: `its phase is ${phase}`, causes: cause ? [cause] : [] }
}

async function causeOf(volume: Frozen<PersistentVolume>, view: View): Promise<Cause | undefined> {
  const { phase = 'Pending', message = '' } = volume.status ?? {}
  const { claimRef, persistentVolumeReclaimPolicy: policy = 'Retain' } = volume.spec
  const name = volume.metadata.name ?? ''
  const owner = `${claimRef?.namespace}/${claimRef?.name}`
  const next = kubectl(undefined, 'describe', 'persistentvolume', name)
  if (phase === 'Released' && policy === 'Retain')
    return {
      text: `its claim ${owner} is deleted, and the policy Retain keeps the volume for that claim: no other claim gets it until spec.claimRef is removed`,
      evidence: `status.phase Released, spec.claimRef ${owner}`,
      next: kubectl(undefined, 'patch', 'persistentvolume', name, '--type=json', '-p', '[{"op":"remove","path":"/spec/claimRef"}]'),
    }
  const failure = await view.warningOf(volume)
  if (phase === 'Failed' || (phase === 'Released' && failure))
    return { text: `it cannot be reclaimed: ${message || (failure?.message ?? '')}`, evidence: failure ? eventText(failure) : `status.phase ${phase}`, next }
  if (phase === 'Released') return { text: `its claim ${owner} is deleted; the policy ${policy} is being carried out`, evidence: 'status.phase Released', next }
  if (phase === 'Available' && claimRef)
    return {
      text: `it is kept for the claim ${owner}, which does not ask for it`,
      evidence: `spec.claimRef ${owner}`,
      next: skiffWhy('pvc', claimRef.name ?? '', claimRef.namespace),
    }
  if (phase === 'Pending')
    return { text: 'the volume binder has not looked at it: check that the controllers run', evidence: 'status.phase Pending', next: 'skiff status' }
  return undefined
}
