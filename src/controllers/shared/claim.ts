/**
 * Decides ownership of objects (L3): a controller keeps objects that it owns and selects, releases those that it no longer selects, and adopts
 * orphans that it selects.
 * Upstream: pkg/controller/controller_ref_manager.go (v1.36).
 */
import { controllerOf, controllerReference } from '#api/helpers/owners'
import type { Selector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Resource } from '#client/client'
import type { ControllerContext } from '../framework/controller.ts'

export interface ClaimOptions<T extends KubeObject> {
  readonly context: Pick<ControllerContext, 'client'>
  readonly owner: Frozen<KubeObject>
  readonly ownerResource: Resource<KubeObject>
  readonly resource: Resource<T>
  readonly selector: Selector
  readonly signal: AbortSignal
}

/** Returns those of `objects` that belong to the owner, after adopting and releasing. */
export async function claim<T extends KubeObject>(objects: readonly Frozen<T>[], options: ClaimOptions<T>): Promise<Frozen<T>[]> {
  let checked: Promise<void> | undefined
  const mayAdopt = () => {
    checked ??= checkAdoption(options)
    return checked
  }
  const claimed: Frozen<T>[] = []
  for (const object of objects) {
    const decision = decide(object, options.owner, options.selector)
    if (decision === 'keep') claimed.push(object)
    else if (decision === 'release') await release(object, options)
    else if (decision === 'adopt' && (await adopt(object, options, mayAdopt))) claimed.push(object)
  }
  return claimed
}

/** What to do with an object, by its controller reference, its labels, and who is being deleted. */
export function decide(object: Frozen<KubeObject>, owner: Frozen<KubeObject>, selector: Selector): 'keep' | 'release' | 'adopt' | 'ignore' {
  const controller = controllerOf(object)
  const matches = selector.matches(object.metadata.labels ?? {})
  if (controller) {
    if (controller.uid !== owner.metadata.uid) return 'ignore'
    if (matches) return 'keep'
    return owner.metadata.deletionTimestamp ? 'ignore' : 'release'
  }
  const leaving = owner.metadata.deletionTimestamp || object.metadata.deletionTimestamp
  return matches && !leaving && object.metadata.namespace === owner.metadata.namespace ? 'adopt' : 'ignore'
}

/** The cache may be behind: only a live owner with the same uid may adopt, or the garbage collector would be fooled. */
async function checkAdoption<T extends KubeObject>({ context, owner, ownerResource, signal }: ClaimOptions<T>): Promise<void> {
  const { namespace, name = '', uid } = owner.metadata
  const fresh = await context.client.of(ownerResource).get({ namespace, name }, { signal })
  if (fresh.metadata.uid !== uid) throw new Error(`original ${owner.kind} ${namespace}/${name} is gone: got uid ${fresh.metadata.uid}, wanted ${uid}`)
  if (fresh.metadata.deletionTimestamp) throw new Error(`${namespace}/${name} has just been deleted at ${fresh.metadata.deletionTimestamp}.`)
}

async function adopt<T extends KubeObject>(object: Frozen<T>, options: ClaimOptions<T>, mayAdopt: () => Promise<void>): Promise<boolean> {
  await mayAdopt()
  const { namespace, name = '', uid } = object.metadata
  const patch = { metadata: { ownerReferences: [controllerReference(options.owner)], uid } }
  try {
    await options.context.client.of(options.resource).patch({ namespace, name }, 'strategic', patch, { signal: options.signal })
    return true
  } catch (error) {
    if (isStatus(error, 'NotFound')) return false
    throw error
  }
}

async function release<T extends KubeObject>(object: Frozen<T>, options: ClaimOptions<T>): Promise<void> {
  const { namespace, name = '', uid } = object.metadata
  const patch = { metadata: { ownerReferences: [{ $patch: 'delete', uid: options.owner.metadata.uid }], uid } }
  try {
    await options.context.client.of(options.resource).patch({ namespace, name }, 'strategic', patch, { signal: options.signal })
  } catch (error) {
    // Gone, or replaced by another object of that name: nothing of ours is left to release.
    if (!isStatus(error, 'NotFound') && !isStatus(error, 'Invalid')) throw error
  }
}
