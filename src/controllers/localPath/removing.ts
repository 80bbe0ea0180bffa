/**
 * Has the directories of deleted volumes removed by their node, then deletes the volumes (L3), as removalPlan.ts decides. One pass handles all volumes of a node,
 * so that a node with many of them gets one change with many annotations.
 */
import type { Node, PersistentVolume } from '#api/gen/types/core.v1'
import { localPathFinalizer, removalChanges } from '#api/helpers/localPath'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ResourceClient } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'
import { unlessGone } from '#client/unlessGone'
import { withoutFinalizer } from '../shared/protection.ts'
import { fateOf, planRemovals } from './removalPlan.ts'

type Volume = Frozen<PersistentVolume>

export interface RemovingDeps {
  readonly volumes: ResourceClient<PersistentVolume>
  /** Its writes are in the cache when they return: a missing annotation must not be one that the cache has not got yet. */
  readonly nodes: ResourceClient<Node>
  readonly events: EventRecorder
  volume(name: string): Volume | undefined
  /** The volumes of a node that have a fate. */
  going(nodeName: string): readonly Volume[]
  cachedNode(name: string): Frozen<Node> | undefined
}

export function createRemoving(deps: RemovingDeps): (nodeName: string, signal: AbortSignal) => Promise<undefined> {
  const { volumes, nodes, events } = deps
  /** Node → volume → uid of the Node that was asked. A restart forgets it, and asks again: removing what is gone succeeds. */
  const askedOf = new Map<string, Map<string, string>>()

  return async (nodeName, signal) => void (await handleNode(nodeName, signal))

  async function handleNode(nodeName: string, signal: AbortSignal): Promise<void> {
    const going = deps.going(nodeName)
    const node = deps.cachedNode(nodeName) ?? (nodeName === '' ? undefined : await unlessGone(() => nodes.get({ name: nodeName }, { signal })))
    if (!node) {
      askedOf.delete(nodeName)
      return finish(going, signal, (volume) => reportLostNode(volume, nodeName))
    }
    const names = new Set(going.map(({ metadata }) => metadata.name ?? ''))
    const asked = askedOf.get(nodeName) ?? new Map<string, string>()
    for (const name of asked.keys()) if (!names.has(name)) asked.delete(name)
    const stays = (name: string) => {
      const volume = deps.volume(name)
      return volume !== undefined && fateOf(volume) !== 'remove'
    }
    const { finished, ask, withdraw, waiting } = planRemovals(node, going, asked, stays)
    if (ask.length + withdraw.length > 0) {
      await nodes.patch({ name: nodeName }, 'merge', { metadata: { annotations: removalChanges(ask, withdraw) } }, { signal })
    }
    for (const name of [...ask, ...waiting]) asked.set(name, node.metadata.uid ?? '')
    if (asked.size > 0) askedOf.set(nodeName, asked)
    else askedOf.delete(nodeName)
    await finish(finished, signal)
  }

  function reportLostNode(volume: Volume, nodeName: string): void {
    if (fateOf(volume) !== 'remove') return
    events.event(volume, 'Warning', 'VolumeNodeNotFound', `node "${nodeName}" not found: deleting the volume without removing its directory`)
  }

  /** One volume that fails, because another client changed it, does not keep the others. */
  async function finish(finished: readonly Volume[], signal: AbortSignal, before: (volume: Volume) => void = () => {}): Promise<void> {
    const faults: unknown[] = []
    for (const volume of finished) {
      before(volume)
      await deleteVolume(volume, signal).catch((error: unknown) => faults.push(error))
      if (signal.aborted) break
    }
    if (faults.length > 0) throw faults[0]
  }

  async function deleteVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    const { name = '', uid, resourceVersion, deletionTimestamp, finalizers } = volume.metadata
    try {
      if (finalizers?.includes(localPathFinalizer)) {
        const kept = withoutFinalizer(volume, localPathFinalizer).metadata.finalizers
        await volumes.patch({ name }, 'merge', { metadata: { resourceVersion, finalizers: kept } }, { signal })
      }
      if (!deletionTimestamp) await volumes.delete({ name }, { preconditions: { uid }, signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }
}
