/**
 * Writes which volumes a pod's claims get, and on which node the others shall be made, and waits until all are bound (L3).
 * Upstream: plugins/volumebinding/binder.go BindPodVolumes, checkBindings (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { isFullyBound, volumeAnnotations, volumeReaches } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import type { Client } from '#client/client'
import { compareResourceVersion } from '#client/resourceVersion'
import type { AssumedObjects } from './assumedObjects.ts'
import type { NodeVolumes, VolumeChoice } from './nodeVolumes.ts'

/** The claim as it will be when its volume shall be made for the node. */
export function provisionedOn(claim: Frozen<PersistentVolumeClaim>, nodeName: string): Frozen<PersistentVolumeClaim> {
  const annotations = { ...claim.metadata.annotations, [volumeAnnotations.selectedNode]: nodeName }
  return { ...claim, metadata: { ...claim.metadata, annotations } }
}

export async function writeVolumes(client: Client, { choices, provisions }: NodeVolumes, signal: AbortSignal): Promise<NodeVolumes> {
  const written: VolumeChoice[] = []
  for (const { claim, volume } of choices) written.push({ claim, volume: await client.of(persistentVolumes).update(volume, { signal }) })
  const claims: Frozen<PersistentVolumeClaim>[] = []
  for (const claim of provisions) claims.push(await client.of(persistentVolumeClaims).update(claim, { signal }))
  return { choices: written, provisions: claims }
}

export interface BindingView {
  readonly pod: () => Frozen<Pod> | undefined
  readonly node: () => Frozen<Node> | undefined
  readonly volumes: AssumedObjects<PersistentVolume>
  readonly claims: AssumedObjects<PersistentVolumeClaim>
}

/**
 * Whether everything is bound, once the cache has seen our writes.
 * @throws Error when it never will be: the pod has to be scheduled again
 */
export function isBound({ choices, provisions }: NodeVolumes, nodeName: string, view: BindingView): boolean {
  const node = view.node()
  if (!node) throw new Error(`failed to get node "${nodeName}": node "${nodeName}" not found`)
  if (!view.pod()) throw new Error('pod does not exist any more')
  return choices.every((choice) => isChoiceBound(choice, node, view)) && provisions.every((claim) => isProvisioned(claim, node, view))
}

function isChoiceBound({ claim, volume }: VolumeChoice, node: Frozen<Node>, { volumes, claims }: BindingView): boolean {
  const now = volumes.confirmed(keyOf(volume))
  const claimNow = claims.confirmed(keyOf(claim))
  if (!now) throw new Error(`failed to check binding: could not find v1.PersistentVolume "${volume.metadata.name}"`)
  if (!claimNow) throw new Error(`failed to check binding: could not find v1.PersistentVolumeClaim "${keyOf(claim)}"`)
  if (isOlder(now, volume)) return false
  requireReach(now, node)
  if (!now.spec.claimRef?.uid) throw new Error(`ClaimRef got reset for pv "${now.metadata.name}"`)
  return isFullyBound(claimNow)
}

function isProvisioned(claim: Frozen<PersistentVolumeClaim>, node: Frozen<Node>, { volumes, claims }: BindingView): boolean {
  const now = claims.confirmed(keyOf(claim))
  if (!now) throw new Error(`failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "${keyOf(claim)}"`)
  if (isOlder(now, claim)) return false
  // A provisioner that fails removes the selected node from the claim.
  if (now.metadata.annotations?.[volumeAnnotations.selectedNode] !== node.metadata.name) throw new Error(`provisioning failed for PVC "${now.metadata.name}"`)
  if (!now.spec.volumeName) return false
  const volume = volumes.confirmed(now.spec.volumeName)
  if (!volume) return false
  requireReach(volume, node)
  return isFullyBound(now)
}

function isOlder(now: Frozen<PersistentVolume | PersistentVolumeClaim>, written: Frozen<PersistentVolume | PersistentVolumeClaim>): boolean {
  return compareResourceVersion(now.metadata.resourceVersion ?? '', written.metadata.resourceVersion ?? '') < 0
}

function requireReach(volume: Frozen<PersistentVolume>, node: Frozen<Node>): void {
  if (volumeReaches(volume, node)) return
  throw new Error(`pv "${volume.metadata.name}" node affinity doesn't match node "${node.metadata.name}"`)
}

/** Resolves once `check` holds, looked at now and whenever one of `wakers` is called; rejects with what `check` throws, or after `timeoutMs`. */
export function until(check: () => boolean, wakers: Set<() => void>, clock: Clock, timeoutMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      wakers.delete(look)
      timer.cancel()
      signal.removeEventListener('abort', stop)
      settle()
    }
    const look = () => {
      try {
        if (check()) end(resolve)
      } catch (error) {
        end(() => reject(error))
      }
    }
    const stop = () => end(() => reject(signal.reason))
    const timer = clock.timer(timeoutMs, () => end(() => reject(new Error('context deadline exceeded'))))
    wakers.add(look)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    else look()
  })
}
