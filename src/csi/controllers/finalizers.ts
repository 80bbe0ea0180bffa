/** Adds and removes one finalizer (L3). A copy that is older than the object makes the write fail with Conflict, so that others' finalizers stay as they are. */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ResourceClient } from '#client/client'
import { isProtected } from '#controllers/shared/protection'

/** @param more other metadata of the same write. @returns the object as it is then */
export async function setFinalizer<T extends KubeObject>(
  client: ResourceClient<T>,
  object: Frozen<T>,
  finalizer: string,
  isWanted: boolean,
  signal: AbortSignal,
  more: { readonly annotations?: Readonly<Record<string, string>> } = {},
): Promise<Frozen<T>> {
  const { name = '', namespace, resourceVersion, finalizers = [], annotations } = object.metadata
  const isUnchanged = Object.entries(more.annotations ?? {}).every(([key, value]) => annotations?.[key] === value)
  if (isProtected(object, finalizer) === isWanted && isUnchanged) return object
  const others = finalizers.filter((one) => one !== finalizer)
  const metadata = { ...more, resourceVersion, finalizers: isWanted ? [...others, finalizer] : others }
  return client.patch({ namespace, name }, 'merge', { metadata }, { signal })
}
